/** docs/reference/api-boot.md against davit: a process serves the page's own example, and every answer must be the page's. */

import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { blocksOf, examplesOf, readPage } from "../helpers/page-examples.ts";
import { ask } from "../http/wire.ts";

const authority = "192.0.2.10:8080";
const page = readPage("reference/api-boot.md");
const [objects = ""] = blocksOf(page, "yaml");
const examples = examplesOf(page);

let folder: string;
let davit: DavitProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-api-"));
  const [manifests, assetsDir] = [join(folder, "manifests"), join(folder, "assets")];
  const kernel = join(assetsDir, "debian", "12", "vmlinuz");
  await mkdir(manifests);
  await mkdir(dirname(kernel), { recursive: true });
  await writeFile(join(manifests, "example.yaml"), objects);
  await writeFile(kernel, "a kernel\n");
  await utimes(kernel, 1_767_225_600, 1_767_225_600);
  const args = ["--assets-dir", assetsDir, "--advertise-address", authority];
  davit = await startDavit({ manifests, dataDir: join(folder, "data"), args });
});
afterAll(async () => {
  await davit.stop();
  await rm(folder, { recursive: true });
});

it("has an example of each endpoint", () => {
  const commands = examples.map(({ command }) => command).join("\n");
  for (const path of ["boot.ipxe", "ipxe", "grub", "ignition", "cloud", "generic", "metadata", "assets"]) {
    expect(commands).toContain(`http://${authority}/${path}`);
  }
});

it.each(examples)("$command", async ({ command, answer }) => {
  expect(await run(command)).toBe(answer);
});

const etagOfPage = 'Etag: "18867251edfa0000-18867251edfa0000-9-1a2b3c"';

/** What curl prints for a command of the page, without the headers that the page leaves out. */
async function run(command: string): Promise<string> {
  const [, options = "", target = ""] =
    new RegExp(`^\\$ curl ((?:-\\S+ (?:'[^']*' |POST )?)*)'?http://${authority}([^' ]*)'?$`).exec(command) ?? [];
  expect(target, `a command that this test can run: ${command}`).not.toBe("");
  const headers = [...options.matchAll(/-H '([^']*)'/g)].map(([, header = ""]) => header);
  const method = options.includes("-I") ? "HEAD" : (/-X (\w+)/.exec(options)?.[1] ?? "GET");
  const { statusLine, headerLines, body } = await ask(Number(new URL(davit.bootUrl).port), target, { method, headers });
  const shown = headerLines
    .filter((line) => !/^(Date|Connection|Keep-Alive):/.test(line))
    // Of a file that was written just now: its times and number are those of this run.
    .map((line) => line.replace(/^Etag: "[0-9a-f]+-[0-9a-f]+-9-[0-9a-f]+"$/, etagOfPage));
  const text = body.toString().replace(/\n$/, "");
  return [statusLine, ...shown, ...(method === "HEAD" ? [] : ["", text])].join("\n");
}
