/** docs/operate/preview.md against davit: a process serves the page's own example, and every answer must be the page's. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bootRefusals, doubts } from "../../src/model/refusals.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { blocksOf, examplesOf, parseCurl, readPage } from "../helpers/page-examples.ts";

const page = readPage("operate/preview.md");
const [objects = ""] = blocksOf(page, "yaml");
const [line = ""] = blocksOf(page, "json");

let folder: string;
let davit: DavitProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-preview-"));
  const manifests = join(folder, "manifests");
  await mkdir(manifests);
  await writeFile(join(manifests, "example.yaml"), objects);
  const args = ["--advertise-address", "192.0.2.10:8080"];
  davit = await startDavit({ manifests, dataDir: join(folder, "data"), args });
}, 60_000);

afterAll(async () => {
  await davit.stop();
  await rm(folder, { recursive: true });
});

it.each(examplesOf(page))("$command", async ({ command, answer }) => {
  const { pathname, search } = parseCurl(command).url;
  const told = async () => (await (await fetch(new URL(`${pathname}${search}`, davit.opsUrl))).text()).trimEnd();
  // A catch-all installs nothing for 10 s after the first list.
  await expect.poll(told, { timeout: 30_000 }).toBe(answer);
});

it("the page has every doubt about an Install", () => {
  for (const text of Object.values(doubts)) expect(page).toContain(`| ${text}`);
});

it("a machine that no Group matches has the page's line in the log", async () => {
  const changed = objects.replace("matchAll: true", "selector: { matchLabels: { arch: x86 } }");
  await writeFile(join(folder, "manifests", "example.yaml"), changed);
  const ask = async () => (await fetch(`${davit.bootUrl}/ipxe?mac=52-54-00-a1-9c-ae&hostname=node7&rack=4`)).status;
  await expect.poll(ask).toBe(404);
  const told = () => davit.log.filter(({ msg }) => msg === "no matching group").map(({ time: _time, ...rest }) => rest);
  await expect.poll(told).toEqual([JSON.parse(line)]);
});

it("the page has every reason for a refusal", () => {
  for (const reason of Object.keys(bootRefusals)) expect(page).toContain(`| \`${reason}\` |`);
});
