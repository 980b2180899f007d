import { execFileSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import { listFiles, wholeProblem } from "../../../src/sources/directory/list-files.ts";
import { ManifestParser } from "../../../src/sources/directory/parser.ts";
import { groupText } from "./manifests.ts";
import { temporaryDirectory, writeFiles } from "./source-under-test.ts";

const crds = await readCrds(packagedCrdsDirectory);
const disposals: (() => Promise<void>)[] = [];

afterEach(async () => {
  while (disposals.length > 0) await disposals.pop()?.();
});

function startParser(texts = crds): ManifestParser {
  const parser = new ManifestParser(texts);
  disposals.push(() => parser.stop());
  return parser;
}

async function listed(files: Readonly<Record<string, string>>) {
  const root = await temporaryDirectory(disposals);
  await writeFiles(root, files);
  return { root, files: (await listFiles([root])).files };
}

it("answers are in the order of the files, over several batches", async () => {
  const { files } = await listed(
    Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`${at}.yaml`, groupText(`g${at}`)])),
  );
  const parsed = await startParser().parse(files);
  expect(parsed.map(({ signature }) => signature)).toEqual(files.map(({ signature }) => signature));
  expect(parsed.map(({ definitions }) => definitions.length)).toEqual(files.map(() => 1));
});

it("a file that cannot be read is a problem without a version, so that it is tried again", async () => {
  const { root } = await listed({});
  const gone = { path: join(root, "gone.yaml"), label: "gone.yaml", sizeBytes: 1, modifiedMs: 0, signature: "1" };
  expect(await startParser().parse([gone])).toEqual([
    {
      definitions: [],
      problems: [
        wholeProblem(
          "gone.yaml",
          "unreadable-file",
          "The file cannot be read (ENOENT): check its permissions and its disk",
        ),
      ],
      ignored: [],
      signature: undefined,
      digest: "",
    },
  ]);
});

it("a named pipe that took a file's place after the listing is not waited for, and has a version of its own", async () => {
  const { root, files } = await listed({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
  await rm(join(root, "a.yaml"));
  execFileSync("mkfifo", [join(root, "a.yaml")]);
  const [pipe, file] = await startParser().parse(files);
  expect(pipe?.definitions).toEqual([]);
  expect(pipe?.problems).toMatchObject([{ file: "a.yaml", code: "unreadable-file" }]);
  expect(pipe?.signature).not.toBe(files[0]?.signature);
  expect(pipe?.signature).toBeDefined();
  expect(file?.definitions).toHaveLength(1);
});

it("a file that kills the thread is a problem, and the others of its batch are read", async () => {
  const { files } = await listed({ "a.yaml": groupText("a"), "deadly.yaml": groupText("b"), "z.yaml": groupText("z") });
  const parser = new ManifestParser(crds, { worker: new URL("./mortal-worker.ts", import.meta.url) });
  disposals.push(() => parser.stop());
  const parsed = await parser.parse(files);
  expect(parsed.map(({ problems }) => problems)).toEqual([
    [],
    [
      wholeProblem(
        "deadly.yaml",
        "too-large",
        "The file cannot be parsed: it needs more memory than a manifest may, split it",
      ),
    ],
    [],
  ]);
});

it("a file of more values than a manifest may have is refused before it is parsed", async () => {
  const heavy = `a: [${"{b: [c, d]},".repeat(400_000)}]`;
  const { files } = await listed({ "a.yaml": groupText("a"), "heavy.yaml": heavy });
  const parsed = await startParser().parse(files);
  expect(parsed.map(({ definitions }) => definitions.length)).toEqual([1, 0]);
  expect(parsed[1]?.problems).toEqual([
    wholeProblem("heavy.yaml", "too-large", "The file has more than 500000 lines and values: split it"),
  ]);
});

it("CRDs that cannot be enforced fail loudly", async () => {
  const { files } = await listed({ "a.yaml": groupText("a") });
  await expect(startParser(["spec: {}"]).parse(files)).rejects.toThrow("Start the parser's thread");
});

it("nothing is parsed after `stop()`, which may be called twice", async () => {
  const { files } = await listed({ "a.yaml": groupText("a") });
  const parser = startParser();
  await parser.stop();
  await parser.stop();
  const [file] = await parser.parse(files);
  expect(file?.definitions).toEqual([]);
});
