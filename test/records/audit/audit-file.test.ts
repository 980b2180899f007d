/** The file of the audit log on a real disk: rotated by size, whole lines only, and readable by its owner alone. */

import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../../src/lib/clock.ts";
import { diskFiles, type Files } from "../../../src/lib/files/files.ts";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { AuditFile, type AuditFileOptions } from "../../../src/records/audit/audit-file.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { silentLog } from "../../helpers/test-store.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "davit-audit-file-"));
  path = join(folder, "audit.log");
});
afterEach(() => rmSync(folder, { recursive: true }));

const metrics = createMetrics("1");
const lostLine = (count: number) => JSON.stringify({ event: "lost", lines: count });

function open(more: Partial<AuditFileOptions> = {}): Promise<AuditFile> {
  return AuditFile.open({ path, files: diskFiles, clock: systemClock, log: silentLog, metrics, lostLine, ...more });
}

function linesOf(name: string): readonly string[] {
  return readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1);
}

const writable = async () => /^davit_audit_writable (\d)$/m.exec(await metrics.text())?.[1];

it("is rotated by its size, and keeps the newest lines in so many files", async () => {
  const file = await open({ limits: { maxBytes: 100, maxOldFiles: 2 } });
  const lines = Array.from({ length: 50 }, (_, at) => `{"line":${String(at).padStart(10, "0")}}`);
  for (const line of lines) file.write(line);
  await file.stop();
  expect(readdirSync(folder).toSorted()).toEqual(["audit.log", "audit.log.1", "audit.log.2"]);
  const kept = ["audit.log.2", "audit.log.1", "audit.log"].flatMap(linesOf);
  expect(kept).toEqual(lines.slice(-kept.length));
  expect(kept.length).toBeGreaterThan(8);
  for (const name of readdirSync(folder)) {
    expect(statSync(join(folder, name)).size).toBeLessThanOrEqual(100);
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  }
});

it("goes on in a file that cannot be renamed, and keeps the older ones", async () => {
  const lines = Array.from({ length: 50 }, (_, at) => `{"line":${String(at).padStart(10, "0")}}`);
  for (const number of [1, 2]) appendFileSync(`${path}.${number}`, `older ${number}\n`);
  const mounted = Object.assign(new Error("mounted"), { code: "EBUSY" });
  let isMounted = true;
  // A file that is mounted by itself, as in a container, cannot be renamed.
  const rename: Files["rename"] = async (from, to) => {
    if (isMounted && from === path) throw mounted;
    await diskFiles.rename(from, to);
  };
  const warnings: unknown[][] = [];
  const log = { ...silentLog, warn: (...said: unknown[]) => void warnings.push(said) };
  const limits = { maxBytes: 100, maxOldFiles: 2 };
  const file = await open({ files: { ...diskFiles, rename }, log, limits });
  for (const line of lines) file.write(line);
  await expect.poll(() => linesOf("audit.log").length).toBe(50);
  expect(linesOf("audit.log")).toEqual(lines);
  expect(["audit.log.1", "audit.log.2"].map(linesOf)).toEqual([["older 1"], ["older 2"]]);
  expect(warnings).toEqual([[{ path }, expect.stringMatching(/^audit log cannot be renamed, so it grows: /)]]);
  expect(await writable()).toBe("1");
  isMounted = false;
  for (const line of lines) file.write(line);
  await file.stop();
  expect(statSync(path).size).toBeLessThanOrEqual(100);
  expect(linesOf("audit.log").at(-1)).toBe(lines.at(-1));
});

it("stays at the file that a link leads to, and never renames the link", async () => {
  mkdirSync(join(folder, "disk"));
  symlinkSync(join(folder, "disk", "real.log"), path);
  writeFileSync(join(folder, "disk", "real.log"), "");
  const file = await open({ limits: { maxBytes: 100, maxOldFiles: 2 } });
  for (let at = 0; at < 20; at++) file.write(`{"line":${String(at).padStart(10, "0")}}`);
  await file.stop();
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(readdirSync(folder).toSorted()).toEqual(["audit.log", "disk"]);
  expect(readdirSync(join(folder, "disk")).toSorted()).toEqual(["real.log", "real.log.1", "real.log.2"]);
});

it("begins a new line after a run that was killed in the middle of one", async () => {
  appendFileSync(path, '{"whole":1}\n{"ha');
  const file = await open();
  file.write('{"next":1}');
  await file.stop();
  expect(linesOf("audit.log")).toEqual(['{"whole":1}', '{"ha', '{"next":1}']);
});

it("counts what it drops while the disk is full, and says so when there is room", async () => {
  let isFull = true;
  const full = Object.assign(new Error("full"), { code: "ENOSPC" });
  // The half of a write that a full disk takes is cut off again.
  const files: Files = {
    ...diskFiles,
    openAppend: async (at) => {
      const opened = await diskFiles.openAppend(at);
      const append = async (bytes: Uint8Array) => {
        await opened.append(isFull ? bytes.subarray(0, 5) : bytes);
        if (isFull) throw full;
      };
      return { ...opened, append };
    },
  };
  const clock = new FakeClock();
  let failures = 0;
  const log = { ...silentLog, warn: () => void failures++ };
  const file = await open({ files, clock, log, limits: { maxWaitingBytes: 100 } });
  expect(await writable()).toBe("1");
  const lines = Array.from({ length: 20 }, (_, at) => `{"line":"${at + 10}"}`);
  for (const line of lines) file.write(line);
  await expect.poll(() => failures).toBe(1);
  expect(linesOf("audit.log")).toEqual([]);
  expect(await writable()).toBe("0");
  isFull = false;
  const again = async () => {
    await clock.advance(5_000);
    return linesOf("audit.log");
  };
  await expect.poll(again).toEqual([...lines.slice(0, 7), lostLine(13)]);
  await file.stop();
  expect(await writable()).toBe("1");
  expect(await metrics.text()).toContain("davit_audit_lost_total 13\n");
});

it("delays neither start nor stop while the disk does not answer, and logs what it could not write", async () => {
  const answered = Promise.withResolvers<void>();
  const files: Files = {
    ...diskFiles,
    openAppend: (at) => answered.promise.then(() => diskFiles.openAppend(at)),
  };
  const clock = new FakeClock();
  const warnings: unknown[][] = [];
  const log = { ...silentLog, warn: (...said: unknown[]) => void warnings.push(said) };
  const opening = open({ files, clock, log });
  await expect.poll(() => clock.sleeping).toBe(1);
  await clock.advance(4_000);
  const file = await opening;
  expect(await writable()).toBe("0");
  expect(warnings).toEqual([[{ path }, "audit log cannot be written, its lines wait: the disk does not answer"]]);
  file.write('{"late":1}');
  await clock.advance(5_000);
  const stopping = file.stop();
  await clock.advance(4_000);
  await stopping;
  expect(warnings.at(-1)).toEqual([
    { path, lines: 1 },
    "lines of the audit log are lost: davit stopped before it could write them",
  ]);
  answered.resolve();
  await expect.poll(() => linesOf("audit.log")).toEqual(['{"late":1}']);
  await expect.poll(writable).toBe("1");
});

it("is no pipe, because opening one could wait for ever", async () => {
  execFileSync("mkfifo", [path]);
  await expect(open()).rejects.toThrow(`Cannot write "${path}" for --audit-log: it is a device or a pipe`);
});
