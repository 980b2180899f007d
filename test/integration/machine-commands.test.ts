/** `davit machine` against a davit serve with objects in files: from a grant to a machine that is installed, and back. */

import { mkdir, mkdtemp, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { runCommand } from "../helpers/command-under-test.ts";

const first = "52:54:00:a1:9c:ae";
const second = "52:54:00:a1:9c:af";
const anInstall = /^200 .*\/assets\/linux/s;
const theDisk = /^200 (?!.*linux).*exit/s;
const nothing = /^503 /;
const soon = { timeout: 30_000, interval: 200 };

let folder: string;
let davit: DavitProcess;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-machine-commands-"));
  await mkdir(join(folder, "objects"));
  await mkdir(join(folder, "assets"));
  for (const name of ["linux", "initrd"]) await writeFile(join(folder, "assets", name), name);
  await put("profile.yaml", {
    kind: "Profile",
    metadata: { name: "flatcar" },
    spec: {
      effect: "Install",
      install: { then: "exit", timeout: "2h" },
      boot: { kernel: "/assets/linux", initrd: ["/assets/initrd"], args: ["installer={{davit.url}}/generic"] },
      generic: { inline: "disk /dev/sda\n" },
    },
  });
  await put("group.yaml", group({}));
  await put("machine.yaml", {
    kind: "Machine",
    metadata: { name: "node7" },
    spec: { identity: { macs: [first] }, labels: { role: "web" } },
  });
  davit = await startDavit(davitOptions());
});

afterEach(async () => {
  await davit?.stop();
  await rm(folder, { recursive: true });
});

function davitOptions() {
  const at = (name: string) => join(folder, name);
  return { manifests: at("objects"), dataDir: at("data"), args: ["--assets-dir", at("assets")] };
}

function group(spec: JsonObject): JsonObject {
  const selector = { matchLabels: { role: "web" } };
  return { kind: "Group", metadata: { name: "web" }, spec: { profileRef: { name: "flatcar" }, selector, ...spec } };
}

/** Puts a file there as by `mv` of a finished one, so that it takes effect at once. */
async function put(name: string, object: JsonObject): Promise<void> {
  const path = join(folder, name);
  await writeFile(path, stringify({ apiVersion: "davit.dev/v1alpha1", ...object }));
  const past = new Date(Date.now() - 10_000);
  await utimes(path, past, past);
  await rename(path, join(folder, "objects", name));
}

async function run(...words: readonly string[]): Promise<string> {
  const { code, output, errors } = await runCommand(["machine", ...words, "--ops-url", davit.opsUrl]);
  expect([code, errors]).toEqual([0, ""]);
  return output;
}

async function script(mac: string): Promise<string> {
  const answer = await fetch(`${davit.bootUrl}/ipxe?role=web&mac=${mac}`);
  return `${answer.status} ${await answer.text()}`;
}

/** Grants an install as a person does: the printed lines go into the Group's file. */
async function grant(...options: readonly string[]): Promise<JsonObject> {
  const output = await run("install", "group/default/web", "--print", ...options);
  const patch: unknown = parse(output.slice(output.indexOf("spec:")));
  const spec = isJsonObject(patch) && isJsonObject(patch.spec) ? patch.spec : {};
  await put("group.yaml", group(spec));
  return isJsonObject(spec.install) ? spec.install : {};
}

async function phases(): Promise<Readonly<Record<string, unknown>>> {
  const { machines } = JSON.parse(await run("list", "--output", "json"));
  return Object.fromEntries(machines.map(({ identities, phase }: JsonObject) => [String(identities), phase]));
}

it("grants, shows, adopts and forgets", async () => {
  expect(await run("ledger")).toMatch(/^ledger {5}[0-9a-f]{8}\nhealth {5}ok\n/);
  expect(await phases()).toEqual({ [`mac/${first}`]: "Waiting" });
  expect(await script(first)).toMatch(nothing);

  expect(await grant()).toMatchObject({ generation: 1, scope: "NeverInstalled" });
  await expect.poll(phases, soon).toEqual({ [`mac/${first}`]: "Permitted" });
  expect(await run("show", "node7")).toContain("next boot  an install: a grant is open\n");
  expect(await script(first)).toMatch(anInstall);
  expect(await phases()).toEqual({ [`mac/${first}`]: "Installing" });
  expect(await run("show", first)).toContain("Claimed 1 by group/default/web");

  // The grant stays open for others, and this machine is said to be installed already.
  expect(await run("adopt", "node7")).toContain("counts as installed");
  expect(await script(first)).toMatch(theDisk);
  expect(await phases()).toEqual({ [`mac/${first}`]: "Installed" });

  // A forgotten machine gets nothing by the grant of now, and an install by the next one.
  expect(await run("forget", first)).toContain("has spent the grants that are open");
  expect(await script(first)).toMatch(nothing);
  expect(await grant("--until", "2h")).toMatchObject({ generation: 2 });
  await expect.poll(() => script(first), soon).toMatch(anInstall);
}, 120_000);

it("after a lost ledger, a Group is adopted and nothing installs", async () => {
  await grant();
  await expect.poll(() => script(second), soon).toMatch(anInstall);
  await davit.stop();
  await rm(join(folder, "data/ledger"), { recursive: true });
  davit = await startDavit(davitOptions());
  await expect.poll(() => script(second), soon).toBe("503 503 no permit to install\n");

  expect(await run("adopt", "group/default/web", "--until", "1h")).toContain("without an entry count as installed");
  expect(await script(second)).toMatch(theDisk);
  await expect.poll(phases, soon).toMatchObject({ [`mac/${second}`]: "Installed" });
  // The machine has an entry now, which the end of the adoption leaves alone; the other one has none.
  expect(await run("forget", "group/default/web")).toBe("Group default/web is no longer adopted\n");
  expect(await script(second)).toMatch(theDisk);
  expect(await script(first)).toMatch(nothing);

  // A new grant installs the machine that nobody has adopted, and not the other one.
  expect(await grant()).toMatchObject({ generation: 2 });
  await expect.poll(() => script(first), soon).toMatch(anInstall);
  expect(await script(second)).toMatch(theDisk);
}, 120_000);

it("lists unknown machines of a Group that enrols, since files have no place for their Machines", async () => {
  await put("group.yaml", group({ approval: "Required", enroll: true }));
  const waiting = async () => (await script(second)).startsWith("503") && (await phases());
  await expect.poll(waiting, soon).toEqual({ [`mac/${first}`]: "Waiting", [`mac/${second}`]: "Waiting" });
  expect(await run("list", "--group", "default/web", "--phase", "Waiting")).toContain(second);
}, 120_000);
