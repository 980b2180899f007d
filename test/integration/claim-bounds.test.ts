/**
 * What a claim is for: one revision of one Profile, one machine, and one grant. Machines ask davit, its second thread
 * and a follower all the time.
 */

import { mkdir, writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DavitBootProcess, type DavitProcess, storeOf } from "../../tools/davit-process.ts";
import { hourMs, InstallWorld, ledgerId } from "../helpers/install-world.ts";

let world: InstallWorld;
let davit: DavitProcess;
let follower: DavitBootProcess;
let ledger: string;
let number = 0;
const texts = new Map<string, string>();

beforeAll(async () => {
  world = await InstallWorld.make();
  await mkdir(world.at("assets"), { recursive: true });
  await writeFile(world.at("assets", "k"), "kernel");
  await writeFile(world.at("assets", "i"), "initrd");
  const args = ["--assets-dir", world.at("assets"), "--boot-threads", "2"];
  davit = await world.serve(args);
  follower = await world.boot(...storeOf(davit), "--assets-dir", world.at("assets"));
  ledger = await ledgerId(davit);
});
afterAll(() => world?.stop());

describe("a claim", () => {
  it.each([
    {
      change: "another Group without a grant takes the machine",
      steps: (n: number) => put(`h${n}`, group(`h${n}`, n, `wipe${n}`, "  priority: 5\n")),
    },
    { change: "its Group gets another Profile", steps: (n: number) => put(`g${n}`, group(`g${n}`, n, `wipe${n}`)) },
    {
      change: "its Group gets another Profile, and keeps its grant",
      steps: (n: number) => put(`g${n}`, group(`g${n}`, n, `wipe${n}`, grant(1))),
    },
    { change: "its Profile changes", steps: (n: number) => put(`p${n}`, installers(n, "wipes")) },
  ])("gives no config of another Profile or revision: $change", { timeout: 60_000 }, async ({ steps }) => {
    const n = await claimedMachine();
    expect(await ask(davit, "generic", n)).toMatch(/^200 keeps http/);
    const seen = new Set<string>();
    await steps(n);
    const untilMs = Date.now() + 3_000;
    for (let at = 0; Date.now() < untilMs; at++) {
      const endpoint = ["generic", "ignition", "cloud", "generic.sig"][at % 4] ?? "generic";
      seen.add(await ask(at % 3 === 0 ? follower : davit, endpoint, n));
    }
    expect([...seen].filter((each) => each.includes("wipes"))).toEqual([]);
    await expect.poll(() => ask(davit, "generic", n), slow).toMatch(/^503 no permit to install/);
    expect(await ask(davit, "ipxe", n)).not.toContain("wipes");
  });

  it("of the same revision gives its config", async () => {
    const n = await claimedMachine();
    await put(`p${n}`, `# a comment\n${installers(n, "keeps")}`);
    await expect.poll(() => ask(davit, "generic", n), slow).toMatch(/^503 objects are changing/);
    await expect.poll(() => ask(davit, "generic", n), slow).toMatch(/^200 keeps http/);
  });

  it.each(["a Group", "a Machine"])("counts under the new name of %s, too", { timeout: 60_000 }, async (kind) => {
    const n = ++number;
    const objects = (name: string, generation: number, until = later) =>
      kind === "a Group"
        ? group(name, n, `p${n}`, grant(generation, until))
        : group(`g${n}`, n, `p${n}`) + machine(name, n, grant(generation, until).replace(", scope: All", ""));
    await put(`p${n}`, installer(`p${n}`, "keeps"));
    await put(`g${n}`, objects(`old${n}`, 1));
    await expect.poll(() => ask(davit, "ipxe", n), slow).toMatch(/^200 .*keeps/s);
    expect(await report(n, "installed")).toBe(200);
    expect(await ask(davit, "ipxe", n)).toMatch(/exit/);
    await put(`g${n}`, objects(`new${n}`, 1, new Date(Date.now() + 2 * hourMs).toISOString()));
    const seen = new Set<string>();
    const isDisk = async () => {
      const answers = await Promise.all([davit, follower].map((each) => ask(each, "ipxe", n)));
      for (const answer of answers) seen.add(answer);
      return answers.every((answer) => answer.includes("exit"));
    };
    const isRenamed = async () => (await preview(n)).includes(`default/new${n} `);
    while (!(await isRenamed())) await isDisk();
    for (let exits = 0; exits < 200; exits += (await isDisk()) ? 1 : 0) {
      if ([...seen].some((each) => each.includes("keeps"))) break;
      await pause(10);
    }
    expect([...seen].filter((each) => each.includes("keeps"))).toEqual([]);
    await put(`g${n}`, objects(`new${n}`, 2));
    await expect.poll(() => ask(davit, "ipxe", n), slow).toMatch(/^200 .*keeps/s);
  });

  it("ends by a kernel only if its URL names the claim", { timeout: 60_000 }, async () => {
    const [lost, other] = [await claimedMachine(), await claimedMachine()];
    for (const url of [fileOf(await script(other)), "/assets/k", "/assets/i", "/assets/i?claim=x"]) {
      for (const each of [davit, follower]) expect((await fetch(each.bootUrl + url)).status).toBe(200);
    }
    await pause(300);
    expect(await ask(davit, "ipxe", lost)).toMatch(/^200 .*keeps/s);
    expect(await ask(davit, "ipxe", other)).toMatch(/exit/);
    expect((await fetch(follower.bootUrl + fileOf(await script(lost)))).status).toBe(200);
    await expect.poll(() => ask(davit, "ipxe", lost)).toMatch(/exit/);
  });

  it("is named in the last file of GRUB, too", async () => {
    const n = await claimedMachine();
    const config = await ask(davit, "grub", n);
    expect(config).toMatch(/"[^"]*\/assets\/k" [^\n]*\n/);
    const [, file = ""] = /initrd(?:efi)? "[^"]*(\/assets\/i\?claim=[\w-]{32})"/.exec(config) ?? [];
    expect((await fetch(davit.bootUrl + file)).status).toBe(200);
    await expect.poll(() => ask(davit, "ipxe", n)).toMatch(/exit/);
  });
});

const later = new Date(Date.now() + hourMs).toISOString();
const slow = { timeout: 20_000, interval: 50 };

async function claimedMachine(): Promise<number> {
  const n = ++number;
  await put(`p${n}`, installers(n, "keeps"));
  await put(`g${n}`, group(`g${n}`, n, `p${n}`, grant(1)));
  await expect.poll(() => ask(davit, "ipxe", n), slow).toMatch(/^200 .*keeps/s);
  await expect.poll(() => ask(follower, "ipxe", n), slow).toMatch(/^200 .*keeps/s);
  return n;
}

/** The script of a claim, asked again. */
async function script(n: number): Promise<string> {
  return await ask(davit, "ipxe", n);
}

function fileOf(text: string): string {
  return /^initrd (\S+)$/m.exec(text)?.[1] ?? "none";
}

async function ask({ bootUrl }: Pick<DavitBootProcess, "bootUrl">, endpoint: string, n: number): Promise<string> {
  const response = await fetch(`${bootUrl}/${endpoint}?mac=${macOf(n).replaceAll(":", "-")}`);
  const text = (await response.text()).replace(/^503 /, "");
  return `${response.status} ${text}`;
}

/** How davit selects for a machine: the lines that name its objects. */
async function preview(n: number): Promise<string> {
  const text = await (await fetch(`${davit.opsUrl}/preview?mac=${macOf(n)}`)).text();
  return text.split("\n\n")[0] ?? "";
}

async function report(n: number, state: string): Promise<number> {
  const [, url = ""] = /^200 keeps (\S+)$/m.exec(await ask(davit, "generic", n)) ?? [];
  const body = new URLSearchParams({ state });
  return (await fetch(`${davit.bootUrl}${new URL(url).pathname}`, { method: "POST", body })).status;
}

/** Writes one of the files that davit reads, as a whole. */
async function put(name: string, text: string): Promise<void> {
  texts.set(name, text);
  await world.writeText([...texts.values()].join("---\n"));
}

const macOf = (n: number) => `52:54:00:00:01:${String(n).padStart(2, "0")}`;

function object(kind: string, name: string, spec: string): string {
  return `apiVersion: davit.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}\nspec:\n${spec}`;
}

/** The Profile of a machine, and another one. */
function installers(n: number, what: string): string {
  return installer(`p${n}`, what) + installer(`wipe${n}`, "wipes");
}

function installer(name: string, what: string): string {
  const config = `inline: "${what} {{davit.report}}"`;
  const parts = `  generic: {${config}}\n  cloudConfig: {inline: "#cloud-config\\n# ${what}"}\n`;
  const boot = `  boot: {kernel: /assets/k, initrd: [/assets/i], args: ["p=${what}"]}\n`;
  return `${object("Profile", name, `  effect: Install\n  install: {then: exit}\n${boot}${parts}`)}---\n`;
}

function group(name: string, n: number, profile: string, more = ""): string {
  const selector = `  selector: {matchLabels: {mac: "${macOf(n)}"}}\n`;
  return object("Group", name, `  profileRef: {name: ${profile}}\n${selector}${more}`);
}

function machine(name: string, n: number, more: string): string {
  return `---\n${object("Machine", name, `  identity: {macs: ["${macOf(n)}"]}\n${more}`)}`;
}

function grant(generation: number, until = later): string {
  return `  install: {generation: ${generation}, ledger: "${ledger}", until: "${until}", scope: All}\n`;
}
