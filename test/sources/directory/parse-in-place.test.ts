import { execFileSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import { type ListedFile, listFiles } from "../../../src/sources/directory/list-files.ts";
import { parseInPlace } from "../../../src/sources/directory/parse-in-place.ts";
import { ManifestParser } from "../../../src/sources/directory/parser.ts";
import { groupText } from "./manifests.ts";
import { temporaryDirectory, writeFiles } from "./source-under-test.ts";

const crds = await readCrds(packagedCrdsDirectory);
const disposals: (() => Promise<void>)[] = [];
let root: string;
let files: readonly ListedFile[];

beforeEach(async () => {
  root = await temporaryDirectory(disposals);
  await writeFiles(root, {
    "broken.yaml": "kind: [",
    "empty.yaml": "",
    "group.yaml": groupText("a"),
    "refused.yaml": groupText("b", "  matchAll: 7"),
  });
  files = (await listFiles([root])).files;
});
afterEach(async () => {
  while (disposals.length > 0) await disposals.pop()?.();
});

it("answers as the thread does", async () => {
  const parser = new ManifestParser(crds);
  disposals.push(() => parser.stop());
  const inPlace = await parseInPlace(crds, files);
  expect(inPlace).toEqual(await parser.parse(files));
  expect(inPlace?.map(({ problems, definitions }) => [problems.length, definitions.length])).toEqual([
    [1, 0],
    [1, 0],
    [0, 1],
    [1, 1],
  ]);
});

describe("leaves to the thread", () => {
  it("files that are large together", async () => {
    expect(await parseInPlace(crds, [...files, { ...files[0], sizeBytes: 32 * 1024 } as ListedFile])).toBeUndefined();
  });

  it.each([
    { what: "one file", texts: { "group.yaml": `# ${"x".repeat(33_000)}` } },
    {
      what: "all of them",
      texts: { "group.yaml": `# ${"x".repeat(20_000)}`, "empty.yaml": `# ${"y".repeat(20_000)}` },
    },
  ])("files that have grown since they were listed: $what", async ({ texts }) => {
    await writeFiles(root, texts);
    expect(await parseInPlace(crds, files)).toBeUndefined();
  });

  it("a file that is gone", async () => {
    await rm(join(root, "group.yaml"));
    expect(await parseInPlace(crds, files)).toBeUndefined();
  });

  it("a named pipe in the place of a file", async () => {
    await rm(join(root, "group.yaml"));
    execFileSync("mkfifo", [join(root, "group.yaml")]);
    expect(await parseInPlace(crds, files)).toBeUndefined();
  });

  it("every file when machines are answered meanwhile", async () => {
    const answers = [true, false];
    expect(await parseInPlace(crds, files, () => answers.shift() ?? false)).toBeUndefined();
    expect(answers).toEqual([]);
  });
});
