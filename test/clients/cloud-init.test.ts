/** Debian's cloud-init reads its user-data and meta-data from a running davit, by the URLs that docs/use/templates.md has. */

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { cloudInitPackages, missing } from "../helpers/requirements.ts";

const program = fileURLToPath(new URL("./cloud-init/seed.py", import.meta.url));
// The packages are Debian's, for its Python.
const python = "/usr/bin/python3";
const run = promisify(execFile);

const head = (kind: string, name: string) =>
  `apiVersion: davit.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}\n`;

/** The Profile of the page's example; a Profile of generic parts for the page's URL with `%s`; and their Groups. */
function manifests(): string {
  const page = readPage("use/templates.md");
  const [spec = ""] = blocksOf(page, "yaml").filter((block) => block.includes("ds=nocloud;"));
  const [parts = ""] = /s=\{\{davit\.url\}\}\/generic\/%s\?\S+?(?=`)/.exec(page) ?? [];
  const kernel = "  boot:\n    kernel: /assets/vmlinuz\n";
  const profiles = [
    `${head("Profile", "cloud")}${spec.replace("  boot:\n", kernel)}\n`,
    `${head("Profile", "parts")}spec:\n${kernel}    args: ["ds=nocloud;${parts}"]\n  genericParts:\n${Object.entries({
      "user-data": '"#cloud-config\\nhostname: {{json hostname}}\\n"',
      "meta-data": '"instance-id: {{json hostname}}\\n"',
      "vendor-data": '"#cloud-config\\n"',
      "network-config": '"{}"',
    })
      .map(([name, inline]) => `    - {name: ${name}, inline: ${inline}}\n`)
      .join("")}`,
  ];
  const group = (name: string, profile: string, mac: string) =>
    `${head("Group", name)}spec:\n  profileRef: {name: ${profile}}\n  selector: {matchLabels: {mac: "${mac}"}}\n` +
    `  metadata: {hostname: ${name}}\n`;
  const groups = [
    group("node-1", "cloud", "52:54:00:00:00:01"),
    group("node-2", "cloud", "52:54:00:00:00:02"),
    group("node-3", "parts", "52:54:00:00:00:03"),
  ];
  return [...profiles, ...groups].join("---\n");
}

describe.skipIf(missing("cloud-init"))("cloud-init", () => {
  let folder: string;
  let davit: DavitProcess;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-cloud-init-"));
    await mkdir(join(folder, "manifests"));
    await writeFile(join(folder, "manifests", "cloud.yaml"), manifests());
    davit = await startDavit({ manifests: join(folder, "manifests"), dataDir: join(folder, "data") });
  }, 60_000);
  afterAll(async () => {
    await davit?.stop();
    await rm(folder, { recursive: true });
  });

  /** The argument that iPXE hands to the kernel of a machine: the script's, with what iPXE fills in. */
  async function argumentOf(mac: string): Promise<string> {
    const script = await (await fetch(`${davit.bootUrl}/ipxe?mac=${mac}`)).text();
    const [argument = ""] = /ds=\S+/.exec(script) ?? [];
    return argument
      .replace(/http:\/\/[^/]+/, davit.bootUrl)
      .replace("$" + "{uuid}", "a1b2c3d4-0000-4000-8000-000000000999")
      .replace("$" + "{mac:hexhyp}", mac);
  }

  async function seed(argument: string): Promise<unknown> {
    const kept = await mkdtemp(join(folder, "kept-"));
    const env = { PYTHONPATH: cloudInitPackages, DEBUG_PROC_CMDLINE: `quiet ${argument} console=ttyS0` };
    const { stdout } = await run(python, [program, kept], { env });
    return JSON.parse(stdout);
  }

  it.each([
    { name: "node-1", mac: "52-54-00-00-00-01", word: "nocloud" },
    { name: "node-2", mac: "52-54-00-00-00-02", word: "nocloud" },
    { name: "node-2", mac: "52-54-00-00-00-02", word: "nocloud-net" },
  ])("gets the files of $name by the argument of its boot script (ds=$word)", async ({ name, mac, word }) => {
    const argument = await argumentOf(mac);
    expect(argument).toMatch(new RegExp(`^ds=nocloud;s=http://[^/]+/nocloud/${mac}/$`));
    expect(await seed(argument.replace("nocloud", word))).toEqual({
      found: true,
      instanceId: mac.replaceAll("-", ":"),
      hostname: name,
      userData: `#cloud-config\nhostname: "${name}"\n`,
      vendorData: "",
    });
  });

  it("gets generic parts by a URL with %s", async () => {
    const argument = await argumentOf("52-54-00-00-00-03");
    expect(argument).toContain("/generic/%s?uuid=a1b2c3d4-0000-4000-8000-000000000999&zone=a");
    expect(await seed(argument.replace("&zone=a", "&mac=52-54-00-00-00-03"))).toEqual({
      found: true,
      instanceId: "node-3",
      hostname: null,
      userData: '#cloud-config\nhostname: "node-3"\n',
      vendorData: "#cloud-config\n",
    });
  });
});
