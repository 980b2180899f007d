import { describe, expect, it } from "vitest";
import { readTable } from "../../src/options/parsing.ts";
import { bootOptions, serveOptions } from "../../src/options/table.ts";

const read = (args: readonly string[], environment = {}) => readTable(serveOptions, args, environment);

describe("--limit", () => {
  it("takes several limits, and each other one has its default", () => {
    const { values, problems } = read(["--limit", "watch-silence=3s", "--limit=backup-keep=9"]);
    expect(problems).toEqual([]);
    expect(values.limits).toMatchObject({ watchSilenceMs: 3_000, backupKeep: 9, sourceGraceMs: 10_000 });
  });

  it("comes from a variable with commas, and a flag replaces the variable as a whole", () => {
    const environment = { DAVIT_LIMIT: "watch-silence=3s,,backup-keep=9" };
    expect(read([], environment).values.limits).toMatchObject({ watchSilenceMs: 3_000, backupKeep: 9 });
    const { limits } = read(["--limit", "backup-keep=2"], environment).values;
    expect(limits).toMatchObject({ watchSilenceMs: 150_000, backupKeep: 2 });
  });

  it.each([
    ["source-grace=500ms", { sourceGraceMs: 500 }],
    ["source-grace=2m", { sourceGraceMs: 120_000 }],
    ["watch-silence=5m", { watchSilenceMs: 300_000 }],
    ["assets-cache-bytes=0", { assetsCacheBytes: 0 }],
    ["assets-cache-bytes=17179869184", { assetsCacheBytes: 17_179_869_184 }],
    ["store-max-watchers=50", { storeMaxWatchers: 50 }],
    ["backup-keep=30", { backupKeep: 30 }],
  ])("%s is read", (text, expected) => {
    expect(read(["--limit", text]).values.limits).toMatchObject(expected);
  });

  it.each([
    ["watch-silense=3s", 'no limit "watch-silense": write watch-silence; all names are source-grace, '],
    ["zzz=1", 'no limit "zzz": the names are source-grace, assets-max-bytes, '],
    ["watch-silence", "must be NAME=VALUE"],
    ["watch-silence=", "watch-silence must not be empty"],
    ["watch-silence=500ms", "watch-silence must be 1s or longer"],
    ["source-grace=10", "source-grace must be a whole number with ms, s, m or h"],
    ["store-max-value-bytes=0", "store-max-value-bytes must be a positive number of bytes"],
    ["assets-cache-bytes=1G", "assets-cache-bytes must be a number of bytes; 0 is none"],
    ["store-max-watchers=0", "store-max-watchers must be a positive number"],
    ["backup-keep=0", "backup-keep must be a positive number"],
  ])("%s is refused", (text, rule) => {
    const { values, problems } = read(["--limit", text]);
    expect(problems).toEqual([expect.stringContaining(`Bad value "${text}" for --limit: ${rule}`)]);
    expect(values.limits).toMatchObject({ watchSilenceMs: 150_000 });
  });

  it("refuses a limit that is given twice", () => {
    const { problems } = read(["--limit", "backup-keep=2", "--limit", "backup-keep=3"]);
    expect(problems).toEqual([
      'Bad value "backup-keep=2,backup-keep=3" for --limit: backup-keep is given twice: keep one',
    ]);
  });

  it("of davit boot has only the limits that davit boot has", () => {
    const { problems } = readTable(bootOptions, ["--limit", "backup-keep=2"], {});
    expect(problems).toEqual([
      'Bad value "backup-keep=2" for --limit: no limit "backup-keep": the names are source-grace, assets-max-bytes, ' +
        "assets-cache-bytes",
    ]);
  });
});
