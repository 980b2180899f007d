/** The walk over directories: where it ends. */

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { type DirectoryListing, listFiles } from "../../../src/sources/directory/list-files.ts";
import { temporaryDirectory, writeFiles } from "./source-under-test.ts";

const disposals: (() => Promise<void>)[] = [];

afterEach(async () => {
  while (disposals.length > 0) await disposals.pop()?.();
});

async function directoryWith(...names: readonly string[]): Promise<string> {
  const root = await temporaryDirectory(disposals);
  await writeFiles(root, Object.fromEntries(names.map((name) => [name, ""])));
  return root;
}

function found({ files, directories, problems, unreadable }: DirectoryListing, root: string) {
  return {
    files: files.map(({ label }) => label),
    directories: [...directories.keys()].map((path) => path.slice(root.length)),
    problems: problems.map(({ origin, text }) => `${origin}: ${text}`),
    unreadable: unreadable.map((path) => path.slice(root.length)),
  };
}

it("more files than the limit end the walk, and what was known of the others stays", async () => {
  const root = await directoryWith("a/1.yaml", "a/2.yaml", "b/1.yaml", "b/2.yaml", "c/1.yaml", "d/e/1.yaml");
  expect(found(await listFiles([root], 3), root)).toEqual({
    files: ["a/1.yaml", "a/2.yaml", "b/1.yaml"],
    directories: ["", "/a", "/b"],
    problems: ["b: There are more than 3 files: give a smaller directory"],
    unreadable: [""],
  });
});

it("more directories than the limit end the walk, too", async () => {
  const root = await directoryWith("a/1.yaml", "b/c/d/readme", "e/f/readme");
  expect(found(await listFiles([root], 4), root)).toEqual({
    files: ["a/1.yaml"],
    directories: ["", "/a", "/b", "/b/c"],
    problems: ["b/c/d: There are more than 4 directories: give a smaller directory"],
    unreadable: [""],
  });
});

it("no directory after one with too many files is looked at, and as many files as the limit are no problem", async () => {
  const many = await directoryWith("1.yaml", "2.yaml", "3.yaml");
  const other = await directoryWith("1.yaml");
  const { files, directories, unreadable, problems } = await listFiles([many, other], 2);
  expect([files.length, [...directories.keys()], unreadable]).toEqual([2, [many], [many, other]]);
  expect(problems.map(({ origin }) => origin)).toEqual([many]);
  await rm(join(many, "3.yaml"));
  expect((await listFiles([many], 2)).problems).toEqual([]);
});

it("the case of an ending is irrelevant", async () => {
  const root = await directoryWith("a.YAML", "b.Yml", "c.JSON", "d.yaml.off");
  expect(found(await listFiles([root]), root).files).toEqual(["a.YAML", "b.Yml", "c.JSON"]);
});

it("a server takes no file for a directory", async () => {
  const root = await directoryWith("a.yaml");
  expect(found(await listFiles([join(root, "a.yaml")]), root)).toMatchObject({ files: [], unreadable: ["/a.yaml"] });
});
