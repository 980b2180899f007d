import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { FileError, WatchedFiles } from "../../src/lib/files/watched-files.ts";
import { StartError } from "../../src/lib/start-error.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { silentLog } from "../helpers/test-store.ts";

let folder: string;
let files: WatchedFiles<string> | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-watched-"));
});

afterEach(async () => {
  files?.stop();
  files = undefined;
  await rm(folder, { recursive: true });
});

/** Joins the texts; a text that says "bad" is refused. */
function parse(texts: readonly string[]): string {
  if (texts.includes("bad")) throw new FileError("it says bad");
  return texts.join("+");
}

async function follow(paths: readonly string[], clock = systemClock) {
  const values: string[] = [];
  const error = vi.fn<(data: object) => void>();
  const log = { ...silentLog, error };
  files = new WatchedFiles({ paths, parse, changed: (value) => values.push(value), clock, log });
  return { first: await files.start(), values, error };
}

const soon = { timeout: 10_000 };

describe("watched files", () => {
  it("are one value, read again when any of them changes", async () => {
    const [a, b] = [join(folder, "a"), join(folder, "b")];
    await Promise.all([writeFile(a, "1"), writeFile(b, "2")]);
    const { first, values } = await follow([a, b]);
    expect(first).toBe("1+2");
    await writeFile(b, "3");
    await expect.poll(() => values, soon).toEqual(["1+3"]);
  });

  it("may be replaced by others of the same name", async () => {
    const path = join(folder, "a");
    await writeFile(path, "old");
    const { values } = await follow([path]);
    await writeFile(join(folder, "next"), "new");
    await rename(join(folder, "next"), path);
    await expect.poll(() => values, soon).toEqual(["new"]);
  });

  it("may be links into a directory that is exchanged, as Kubernetes does", async () => {
    await Promise.all(["v1", "v2"].map((name) => mkdir(join(folder, name))));
    await Promise.all([writeFile(join(folder, "v1/a"), "old"), writeFile(join(folder, "v2/a"), "new")]);
    await symlink("v1", join(folder, "..data"));
    await symlink("..data/a", join(folder, "a"));
    const { first, values } = await follow([join(folder, "a")]);
    expect(first).toBe("old");
    await symlink("v2", join(folder, "..next"));
    await rename(join(folder, "..next"), join(folder, "..data"));
    await expect.poll(() => values, soon).toEqual(["new"]);
  });

  it("keep their last good value while they are bad or gone, which is logged once each", async () => {
    const path = join(folder, "a");
    await writeFile(path, "good");
    const { values, error } = await follow([path]);
    await writeFile(path, "bad");
    await expect.poll(() => error.mock.calls.length, soon).toBe(1);
    await rm(path);
    await expect.poll(() => error.mock.calls.length, soon).toBe(2);
    expect(error.mock.calls.map(([data]) => data)).toEqual([
      { problem: `Cannot use "${path}": it says bad` },
      { problem: `Cannot read "${path}": there is no such file or directory: create it, or correct the path` },
    ]);
    expect(values).toEqual([]);
    await writeFile(path, "better");
    await expect.poll(() => values, soon).toEqual(["better"]);
  });

  it("are found by a rescan where nothing stirred", async () => {
    const path = join(folder, "a");
    await writeFile(path, "old");
    const clock = new FakeClock();
    const { values } = await follow([path], clock);
    await writeFile(path, "new");
    const afterARescan = async () => {
      await clock.advance(30_000);
      return values;
    };
    await expect.poll(afterARescan, soon).toEqual(["new"]);
  });

  it.each([
    {
      name: "missing",
      make: async () => {},
      said: /^Cannot read ".*a": there is no such file or directory: create it/,
    },
    { name: "a directory", make: (path: string) => mkdir(path), said: /it is not a file$/ },
    { name: "bad", make: (path: string) => writeFile(path, "bad"), said: /^Cannot use ".*a": it says bad$/ },
    {
      name: "larger than 1 MiB",
      make: (path: string) => writeFile(path, "x".repeat(1024 * 1024 + 1)),
      said: /it is larger than 1048576 bytes$/,
    },
  ])("that are $name at the start end it", async ({ make, said }) => {
    const path = join(folder, "a");
    await make(path);
    const started = follow([path]);
    await expect(started).rejects.toThrow(StartError);
    await expect(started).rejects.toThrow(said);
  });
});
