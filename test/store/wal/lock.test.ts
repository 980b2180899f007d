/** The lock of a data directory, on a real disk and between real processes. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { WalError } from "../../../src/store/core/log-port.ts";
import { lockDirectory } from "../../../src/store/wal/lock.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "davit-lock-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const path = () => join(directory, "lock.db");
const lockModule = join(import.meta.dirname, "../../../src/store/wal/lock.ts");

/** What another process gets: `locked`, `unusable`, or `held`. */
function inAnotherProcess(): string {
  const script = `
    import { lockDirectory } from ${JSON.stringify(lockModule)};
    try {
      lockDirectory(${JSON.stringify(directory)});
      console.log("held");
    } catch (error) {
      console.log(error.reason);
    }`;
  return execFileSync(process.execPath, ["--input-type=module", "--eval", script], { encoding: "utf8" }).trim();
}

it.each([
  { name: "garbage", content: Buffer.alloc(5_000, "no database ") },
  { name: "a few bytes", content: Buffer.from("x") },
  { name: "nothing", content: Buffer.alloc(0) },
])("a lock file that nobody holds may have $name in it", ({ content }) => {
  writeFileSync(path(), content);
  const lock = lockDirectory(directory);
  expect([lock.isHeld(), inAnotherProcess()]).toEqual([true, "locked"]);
  lock.release();
  expect(inAnotherProcess()).toBe("held");
});

it("garbage that is written into a lock which is held lets nobody in", () => {
  const lock = lockDirectory(directory);
  // By another process: whoever closes a file gives back the locks that it has there itself.
  execFileSync("sh", ["-c", 'yes "no database" | head -c 5000 >"$0"', path()]);
  expect(inAnotherProcess()).toBe("locked");
  expect(lock.isHeld()).toBe(true);
  lock.release();
});

it("whoever only reads leaves garbage as it is", () => {
  writeFileSync(path(), Buffer.alloc(5_000, "no database "));
  expect(() => lockDirectory(directory, { mends: false })).toThrow(WalError);
  expect(readFileSync(path(), "latin1")).toContain("no database");
});

it.each([
  { name: "removed", change: () => rmSync(path()) },
  {
    name: "replaced",
    change: () => {
      writeFileSync(`${path()}.new`, "");
      renameSync(`${path()}.new`, path());
    },
  },
  {
    name: "removed, and locked anew by another process",
    change: () => {
      rmSync(path());
      expect(inAnotherProcess()).toBe("held");
    },
  },
])("a lock that is $name is held no more", ({ change }) => {
  const lock = lockDirectory(directory);
  expect(lock.isHeld()).toBe(true);
  change();
  expect(lock.isHeld()).toBe(false);
  lock.release();
});
