/** Every example as a user starts with it: davit takes all of it, and answers what each Profile promises. */

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";

const examples = join(import.meta.dirname, "../../manifests/examples");
const parts = { boot: ["ipxe", "grub"], ignition: ["ignition"], cloudConfig: ["cloud"], generic: ["generic"] } as const;

interface Example {
  readonly file: string;
  readonly group: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly endpoints: readonly string[];
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
      found.push({ file, group: metadata.name, labels: spec.selector.matchLabels, endpoints });
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
    davit = await startDavit({ manifests: examples, dataDir: folder });
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
      "install-then-local-boot.yaml",
      "kickstart.yaml",
      "talos.yaml",
      "ubuntu-autoinstall.yaml",
    ]);
  });

  it("are taken without a word of complaint", async () => {
    expect(davit.log.filter(({ level }) => Number(level) > 30)).toEqual([]);
    expect(await (await fetch(`${davit.opsUrl}/readyz?verbose`)).text()).not.toMatch(/Profile|Group/);
  });

  it.each(all.flatMap((example) => example.endpoints.map((endpoint) => ({ ...example, endpoint }))))(
    "$file: /$endpoint for $group",
    async ({ endpoint, labels }) => {
      const query = new URLSearchParams({ uuid: "a1b2c3d4-0000-4000-8000-000000000999", ...labels });
      const response = await fetch(`${davit.bootUrl}/${endpoint}?${query}`);
      expect(response.status).toBe(200);
      expect(await response.text()).toMatch(
        {
          ipxe: /^#!ipxe\nkernel \//,
          grub: /^default=0\n/,
          ignition: /^\{\n/,
          cloud: /^#cloud-config\n/,
          generic: /\n$/,
          "generic/user-data": /^#cloud-config\nautoinstall:\n/,
          "generic/meta-data": /^instance-id: "ubuntu-1"\n$/,
          "generic/vendor-data": /^#cloud-config\n$/,
          "generic/network-config": /^\{\}\n$/,
        }[endpoint] ?? /^never$/,
      );
    },
  );
});
