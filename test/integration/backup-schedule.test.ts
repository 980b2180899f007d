/** Scheduled backups as an operator has them: real processes, a real disk that fills up, and a restore from a file. */

import { execFile, execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type DavitProcess, davitProgram, startDavit } from "../../tools/davit-process.ts";
import { missing } from "../helpers/requirements.ts";

const run = promisify(execFile);
const soon = { timeout: 20_000, interval: 50 };
const mac = "52:54:00:a1:9c:ae";
const objects = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec: {boot: {kernel: /assets/vmlinuz, args: [quiet]}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec: {profileRef: {name: web}, selector: {matchLabels: {mac: "${mac}"}}}
`;

let folder: string;
const running: DavitProcess[] = [];
const disks: string[] = [];
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-schedule-"));
  await mkdir(at("manifests"));
  await writeFile(at("manifests/objects.yaml"), objects);
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((davit) => davit.stop("SIGKILL")));
  for (const disk of disks.splice(0)) execFileSync("umount", [disk]);
  await rm(folder, { recursive: true });
});

async function serve(dataDir: string, every: string, keep = 2, backups = at("backups")): Promise<DavitProcess> {
  const args = ["--backup-every", every, "--backup-dir", backups, "--limit", `backup-keep=${keep}`];
  const davit = await startDavit({ manifests: at("manifests"), dataDir: at(dataDir), args });
  running.push(davit);
  return davit;
}

async function put({ storeUrl }: DavitProcess, value: string): Promise<number> {
  const body = new URLSearchParams({ value });
  return (await fetch(`${storeUrl}/v2/keys/note`, { method: "PUT", body })).status;
}

const bootScript = async ({ bootUrl }: DavitProcess) => await (await fetch(`${bootUrl}/ipxe?mac=${mac}`)).text();
const ready = async ({ opsUrl }: DavitProcess) => await (await fetch(`${opsUrl}/readyz?verbose`)).text();

async function metric({ opsUrl }: DavitProcess, name: string): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(new RegExp(`^davit_backup_${name} (.*)$`, "m").exec(text)?.[1]);
}

it("are restored from, are private, and a restart takes none before its time", async () => {
  const davit = await serve("data", "1s");
  expect(await put(davit, "kept")).toBe(201);
  const names = () => readdir(at("backups"));
  await expect.poll(async () => (await names()).some((name) => name.includes("-00000004-")), soon).toBe(true);
  expect(await metric(davit, "bytes")).toBeGreaterThan(0);
  expect(await metric(davit, "interval_seconds")).toBe(1);
  await davit.stop();
  const kept = await names();
  expect(kept).toHaveLength(2);
  expect((await stat(at("backups"))).mode & 0o777).toBe(0o700);
  for (const name of kept) expect((await stat(join(at("backups"), name))).mode & 0o777).toBe(0o600);

  const again = await serve("data", "1h");
  expect(await metric(again, "age_seconds")).toBeLessThan(600);
  expect(await names()).toEqual(kept);
  await again.stop();

  const newest = join(at("backups"), kept.at(-1) ?? "");
  const { stdout } = await run(process.execPath, [davitProgram, "inspect", newest], { env: {} });
  expect(stdout).toMatch(/\nsound\n$/);
  await run(process.execPath, [davitProgram, "restore", "--input", newest, "--data-dir", at("restored")], { env: {} });
  const restored = await serve("restored", "1h");
  const answer = await fetch(`${restored.storeUrl}/v2/keys/note`);
  expect(await answer.json()).toMatchObject({ node: { value: "kept" } });
  expect(await bootScript(restored)).toContain("kernel");
  // The restored store is another one: it takes a backup of its own, and those of the lost one stay.
  await expect.poll(names, soon).toHaveLength(3);
  expect(await names()).toEqual(expect.arrayContaining(kept));
});

it.skipIf(missing("tmpfs"))(
  "a full disk for them leaves the last good one, and the store and machines go on",
  async () => {
    const disk = at("disk");
    await mkdir(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]);
    disks.push(disk);
    const backups = join(disk, "backups");
    const davit = await serve("data", "1s", 1, backups);
    const script = await bootScript(davit);
    expect(await put(davit, "x".repeat(600 * 1024))).toBe(201);
    await expect.poll(() => metric(davit, "failures_total"), soon).toBeGreaterThan(1);
    const [good = "", ...others] = await readdir(backups);
    expect(others).toEqual([]);
    await run(process.execPath, [davitProgram, "inspect", join(backups, good)], { env: {} });
    expect(await ready(davit)).toMatch(/backup: Writing to ".*": no space is left on the disk/);
    expect(await put(davit, "small")).toBe(200);
    expect(await bootScript(davit)).toBe(script);
    // There is room for it now: the next try succeeds, and only then does the old one go.
    await expect.poll(() => readdir(backups), soon).not.toContain(good);
    await expect.poll(() => ready(davit), soon).not.toContain("backup:");
    expect(await bootScript(davit)).toBe(script);
  },
);

it("a directory that others may write to gets none, and says what to do", async () => {
  await mkdir(at("backups"));
  await chmod(at("backups"), 0o777);
  const davit = await serve("data", "1s");
  await expect.poll(() => metric(davit, "failures_total"), soon).toBeGreaterThan(0);
  expect(await ready(davit)).toContain(`other users can read or write it: chmod o= "${at("backups")}"`);
  expect(await readdir(at("backups"))).toEqual([]);
  expect(await bootScript(davit)).toContain("kernel");
  await chmod(at("backups"), 0o700);
  await expect.poll(async () => (await readdir(at("backups"))).length, soon).toBeGreaterThan(0);
});
