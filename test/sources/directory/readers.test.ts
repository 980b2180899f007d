import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { systemClock } from "../../../src/lib/clock.ts";
import { assert } from "../../../src/lib/errors.ts";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import { listFiles } from "../../../src/sources/directory/list-files.ts";
import { Readers } from "../../../src/sources/directory/readers.ts";
import { groupText } from "./manifests.ts";
import { replaceFile, SourceUnderTest, temporaryDirectory, writeFiles } from "./source-under-test.ts";

const disposals: (() => Promise<void>)[] = [];

afterEach(async () => {
  while (disposals.length > 0) await disposals.pop()?.();
});

const crds = await readCrds(packagedCrdsDirectory);

/** A ConfigMap of so many keys, which takes a second or more for 40,000 of them. */
function largeText(keys: number, value: string): string {
  const data = Array.from({ length: keys }, (_, at) => `  key${at}: "${value}"\n`).join("");
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n${data}`;
}

const refusedText = (names: number) =>
  groupText(
    "large",
    Array.from({ length: names }, (_, at) => `  name${at}: x\n`)
      .join("")
      .trimEnd(),
  );

it("what is small is answered at once, what is large later, and small before large", async () => {
  const root = await temporaryDirectory(disposals);
  await writeFiles(root, {
    "a.yaml": largeText(30_000, "large"),
    "b.yaml": largeText(15_000, "smaller"),
    "c.yaml": groupText("c"),
  });
  const { files } = await listFiles([root]);
  let answered = () => {};
  const readers = new Readers(crds, () => answered());
  disposals.push(() => readers.stop());
  const order = [(await readers.read(files)).map(({ request }) => request.label)];
  while (order.flat().length < files.length) {
    await new Promise<void>((resolve) => {
      answered = resolve;
    });
    order.push((await readers.read([])).map(({ request }) => request.label));
  }
  expect(order).toEqual([["c.yaml"], ["b.yaml", "a.yaml"]]);
});

it("a version that waits is not read any more when its file has a newer one", async () => {
  const root = await temporaryDirectory(disposals);
  await writeFiles(root, { "a.yaml": largeText(2, "a"), "b.yaml": largeText(2, "b") });
  const [busy, file] = (await listFiles([root])).files;
  assert(busy !== undefined && file !== undefined, "Both are listed");
  let answered = () => {};
  const readers = new Readers(crds, () => answered());
  disposals.push(() => readers.stop());
  await readers.read([{ ...busy, sizeBytes: 2 ** 20 }]);
  for (const signature of ["1", "2", "3"]) await readers.read([{ ...file, sizeBytes: 2 ** 20, signature }]);
  const signatures: string[] = [];
  while (!signatures.includes("3")) {
    await new Promise<void>((resolve) => {
      answered = resolve;
    });
    signatures.push(...(await readers.read([])).map(({ request }) => request.signature));
  }
  expect(signatures).toEqual([busy.signature, "3"]);
});

it.each([
  { name: "a ConfigMap of 40,000 keys", large: largeText(40_000, "b") },
  { name: "a refused Group of 40,000 names", large: refusedText(40_000) },
])(
  "a hold in another file counts while $name is read, written before it or with it",
  async ({ large }) => {
    const root = await temporaryDirectory(disposals);
    const held = groupText("node", "  matchAll: true\n  hold: true");
    await writeFiles(root, { "large.yaml": largeText(2, "a"), "node.yaml": groupText("node", "  matchAll: true") });
    const tested = await SourceUnderTest.start({ directories: [root], clock: systemClock });
    disposals.push(() => tested.source.stop());
    await tested.until(() => tested.listedCount > 0);
    const before = tested.source.view.get("ConfigMap", "default", "large");
    await replaceFile(join(root, "large.yaml"), large);
    await replaceFile(join(root, "node.yaml"), held);
    await tested.until(() => tested.group("node")?.spec.hold === true);
    expect(tested.source.view.get("ConfigMap", "default", "large")).toEqual(before);
    expect(tested.problems()).toEqual([]);
    await tested.until(
      () => tested.problems().length > 0 || tested.source.view.get("ConfigMap", "default", "large") !== before,
    );
    expect(await readFile(join(root, "large.yaml"), "utf8")).toBe(large);
  },
  60_000,
);
