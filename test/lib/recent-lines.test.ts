import { describe, expect, it } from "vitest";
import type { Log } from "../../src/lib/log.ts";
import { RecentLines } from "../../src/lib/logging/recent-lines.ts";
import { silentLog } from "../helpers/test-store.ts";

function kept(write: (log: Log) => void) {
  const lines = new RecentLines({ nowMs: () => 5 });
  write(lines.over(silentLog));
  return lines.latestFirst;
}

describe("the recent lines of a log", () => {
  it("are its warnings and errors, the last one first, with the part and the data", () => {
    const lines = kept((log) => {
      log.debug({}, "first");
      log.info({}, "second");
      log.warn({ waitedMs: 7, gone: undefined, why: ["a", 1] }, "third");
      log.child({ part: "store" }).error({ path: "/livez" }, "fourth");
    });
    expect(lines).toEqual([
      { atMs: 5, level: "error", part: "store", message: "fourth", data: "path=/livez" },
      { atMs: 5, level: "warn", part: undefined, message: "third", data: 'waitedMs=7 why=["a",1]' },
    ]);
  });

  it("are passed on to the log, whatever its level is", () => {
    const passed: string[] = [];
    const note = (_data: object, message: string) => void passed.push(message);
    const log = { debug: note, info: note, warn: note, error: note, child: () => log };
    const over = new RecentLines({ nowMs: () => 5 }).over(log).child({ part: "store" });
    over.debug({}, "debug");
    over.info({}, "info");
    over.warn({}, "warn");
    over.error({}, "error");
    expect(passed).toEqual(["debug", "info", "warn", "error"]);
  });

  it("have no text of an error, which may quote something", () => {
    const err = Object.assign(new Error("password is hunter2"), { code: "ECONNRESET" });
    const [line] = kept((log) => log.error({ err }, "request failed"));
    expect(line?.data).toBe("err=Error ECONNRESET");
  });

  it("are few and short", () => {
    const lines = kept((log) => {
      for (let at = 0; at < 1_000; at++)
        log.warn({ at, long: "x".repeat(10_000), more: ["y".repeat(10_000)] }, "again");
    });
    expect(lines).toHaveLength(50);
    expect(lines[0]?.data).toMatch(/^at=999 long=x{200}\.\.\. more=/);
    expect(Math.max(...lines.map(({ data }) => data.length))).toBeLessThanOrEqual(1_003);
  });
});
