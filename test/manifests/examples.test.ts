/** Every example as a user starts with it: davit takes all of it, and answers what each Profile promises. */

import { mkdir, mkdtemp, readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { runCommand } from "../helpers/command-under-test.ts";

const examples = join(import.meta.dirname, "../../manifests/examples");
const parts = { boot: ["ipxe", "grub"], ignition: ["ignition"], cloudConfig: ["cloud"], generic: ["generic"] } as const;

interface Example {
  readonly file: string;
  readonly group: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly endpoints: readonly string[];
  /** True if the Profile installs by permits. */
  readonly needsPermit: boolean;
}

async function readExamples(): Promise<readonly Example[]> {
  const found: Example[] = [];
  for (const file of (await readdir(examples)).toSorted()) {
    const objects = parseAllDocuments(await readFile(join(examples, file), "utf8")).map((document) => document.toJS());
    const profiles = new Map(
      objects.filter(({ kind }) => kind === "Profile").map((each) => [each.metadata.name, each]),
    );
    for (const { kind, metadata, spec } of objects) {
      if (kind !== "Group") continue;
      const profile: unknown = profiles.get(spec.profileRef.name)?.spec;
      const endpoints = isJsonObject(profile) ? endpointsOf(profile) : [];
      const needsPermit = isJsonObject(profile) && "install" in profile;
      // A uuid of its own: one that two machines send names none of them.
      const uuid = `a1b2c3d4-0000-4000-8000-0000000009${String(found.length).padStart(2, "0")}`;
      const labels = { uuid, ...spec.selector.matchLabels };
      found.push({ file, group: metadata.name, labels, endpoints, needsPermit });
    }
  }
  return found;
}

function endpointsOf(spec: JsonObject): readonly string[] {
  const { genericParts } = spec;
  const names = Array.isArray(genericParts)
    ? genericParts.filter(isJsonObject).map(({ name }) => `generic/${name}`)
    : [];
  return [...Object.entries(parts).flatMap(([part, endpoints]) => (part in spec ? endpoints : [])), ...names];
}

const all = await readExamples();

describe("the examples", () => {
  let davit: DavitProcess;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-examples-"));
    const manifests = join(folder, "manifests");
    await mkdir(manifests);
    for (const file of await readdir(examples)) await put(file, await readFile(join(examples, file), "utf8"));
    davit = await startDavit({ manifests, dataDir: join(folder, "data") });
  }, 60_000);
  afterAll(async () => {
    await davit?.stop();
    await rm(folder, { recursive: true });
  });

  it("are all of the systems that the documents name", async () => {
    expect([...new Set(all.map(({ file }) => file))]).toEqual([
      "debian-preseed.yaml",
      "fedora-coreos.yaml",
      "flatcar.yaml",
      "kickstart.yaml",
      "talos.yaml",
      "ubuntu-autoinstall.yaml",
    ]);
  });

  it("are taken without a word of complaint", async () => {
    expect(davit.log.filter(({ level }) => Number(level) > 30)).toEqual([]);
    expect(await (await fetch(`${davit.opsUrl}/readyz?verbose`)).text()).not.toMatch(/Profile|Group/);
  });

  it("install nothing without a permit", async () => {
    for (const { labels } of all.filter(({ needsPermit }) => needsPermit)) {
      const response = await ask("ipxe", labels);
      expect([response.status, await response.text()]).toEqual([503, "503 no permit to install\n"]);
    }
  });

  it("install by the grants that davit machine install prints", async () => {
    const installers = all.filter(({ needsPermit }) => needsPermit);
    expect(installers.map(({ file }) => file)).toEqual([
      "debian-preseed.yaml",
      "fedora-coreos.yaml",
      "flatcar.yaml",
      "kickstart.yaml",
      "ubuntu-autoinstall.yaml",
    ]);
    for (const { file, group } of installers) await grant(file, group);
    // In the order of their Groups' names: the last one is read with the others.
    for (const { group } of installers) {
      await expect.poll(() => generationOf(group), { timeout: 30_000, interval: 200 }).toBe(1);
    }
  }, 60_000);

  it.each(all.flatMap((example) => example.endpoints.map((endpoint) => ({ ...example, endpoint }))))(
    "$file: /$endpoint for $group",
    async ({ endpoint, labels }) => {
      const response = await ask(endpoint, labels);
      expect(response.status).toBe(200);
      expect(await response.text()).toMatch(
        {
          ipxe: /^#!ipxe\nkernel \//,
          grub: /^default=0\n/,
          ignition: /^\{/,
          cloud: /^#cloud-config\n/,
          generic: /\n$/,
          "generic/installed.ign": /^\{\n/,
          "generic/user-data": /^#cloud-config\nautoinstall:\n/,
          "generic/meta-data": /^instance-id: "ubuntu-1"\n$/,
          "generic/vendor-data": /^#cloud-config\n$/,
          "generic/network-config": /^\{\}\n$/,
        }[endpoint] ?? /^never$/,
      );
    },
  );

  it.each(all.filter(({ needsPermit }) => needsPermit))(
    "$file reports by its configs, and then boots its disk",
    async ({ endpoints, labels }) => {
      const configs = endpoints.filter((endpoint) => endpoint !== "ipxe" && endpoint !== "grub");
      const texts = await Promise.all(configs.map(async (endpoint) => (await ask(endpoint, labels)).text()));
      const urls = new Set(texts.flatMap((text) => text.match(/http:\/\/[^\s"]+\/report\/[\w-]+/g) ?? []));
      expect(urls.size).toBe(1);
      const [url = ""] = urls;
      const response = await fetch(`${davit.bootUrl}${new URL(url).pathname}`, {
        method: "POST",
        body: "state=installed",
      });
      expect(response.status).toBe(200);
      expect(await (await ask("ipxe", labels)).text()).toBe("#!ipxe\nexit\n");
    },
  );

  function ask(endpoint: string, labels: Example["labels"]): Promise<Response> {
    return fetch(`${davit.bootUrl}/${endpoint}?${new URLSearchParams(labels)}`);
  }

  /** Puts the printed lines into the Group's document, whose last field is one of `spec`. */
  async function grant(file: string, group: string): Promise<void> {
    const { output } = await runCommand([
      "machine",
      "install",
      `group/${group}`,
      "--print",
      "--operations-url",
      davit.opsUrl,
    ]);
    const [, lines = ""] = output.split("\nspec:\n");
    const documents = (await readFile(join(folder, "manifests", file), "utf8")).split(/^---\n/m);
    const ofGroup = (text: string) => text.includes("kind: Group\n") && text.includes(`  name: ${group}\n`);
    await put(file, documents.map((text) => (ofGroup(text) ? `${text.trimEnd()}\n${lines}` : text)).join("---\n"));
  }

  /** Moves a file in that is at rest. */
  async function put(file: string, text: string): Promise<void> {
    const elsewhere = join(folder, file);
    await writeFile(elsewhere, text);
    await utimes(elsewhere, 1, 1);
    await rename(elsewhere, join(folder, "manifests", file));
  }

  /** The generation of a Group's grant, as davit has read it. */
  async function generationOf(group: string): Promise<unknown> {
    const answer = await fetch(`${davit.opsUrl}/ledger?grant=group/default/${group}`);
    const { grant } = parseJsonObject(await answer.text()) ?? {};
    return isJsonObject(grant) && isJsonObject(grant.object) ? grant.object.generation : undefined;
  }
});
