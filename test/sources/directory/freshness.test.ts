/** Since when a directory is proven, and whether somebody can name what is in it. */

import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import "./kept-parsers.ts";
import { groupText, profileText } from "./manifests.ts";
import { replaceFile, SourceUnderTest, temporaryDirectory, writeFiles } from "./source-under-test.ts";

const disposals: (() => Promise<void>)[] = [];
let root: string;
let tested: SourceUnderTest;

beforeEach(async () => {
  root = await temporaryDirectory(disposals);
  await writeFiles(root, { "web.yaml": profileText("web"), "a.yaml": groupText("a") });
  tested = await SourceUnderTest.start({ directories: [root] });
  disposals.push(() => tested.source.stop());
});

afterEach(async () => {
  while (disposals.length > 0) await disposals.pop()?.();
});

it("is proven by each look that missed nothing", async () => {
  const { source, clock } = tested;
  const first = source.provenAtMs ?? Number.NaN;
  expect(first).toBeLessThanOrEqual(clock.monotonicMs());
  await tested.look();
  await tested.lookUntil(() => (source.provenAtMs ?? 0) > first);
  expect(source.provenAtMs).toBe(clock.monotonicMs());
});

it("is not proven while a file is being written that was not read yet", async () => {
  const { source } = tested;
  const before = source.provenAtMs;
  for (let round = 0; round < 5; round++) {
    await writeFile(join(root, "a.yaml"), groupText("a", `  selector: {matchLabels: {role: r${round}}}`));
    await tested.look();
    expect([source.provenAtMs, tested.group("a")?.spec.selector]).toEqual([before, { role: "a" }]);
  }
  await tested.lookUntil(() => source.provenAtMs !== before);
  expect(tested.group("a")?.spec.selector).toEqual({ role: "r4" });
});

it("is half while a file cannot be parsed, or the directory is gone", async () => {
  const { view } = tested.source;
  expect(view.isHalf).toBe(false);
  await replaceFile(join(root, "b.yaml"), "kind: [");
  await tested.lookUntil(() => view.isHalf);
  expect(view.isHalf).toBe(true);
  await replaceFile(join(root, "b.yaml"), groupText("b"));
  await tested.lookUntil(() => !view.isHalf);
  expect(view.isHalf).toBe(false);
  await rename(root, `${root}-away`);
  await tested.lookUntil(() => view.isHalf);
  expect(view.isHalf).toBe(true);
  await rename(`${root}-away`, root);
});

it("is not half for an object that is refused and has a name", async () => {
  const { view } = tested.source;
  await replaceFile(join(root, "a.yaml"), groupText("a", "  selector: {matchLabels: {mac: nonsense}}"));
  await tested.lookUntil(() => view.refusalOf({ kind: "Group", namespace: "default", name: "a" }) !== undefined);
  expect([view.complete, view.isHalf]).toEqual([false, false]);
  const nameless = groupText("a").replace("name: a", "labels: {}");
  await replaceFile(join(root, "a.yaml"), nameless);
  await tested.lookUntil(() => view.isHalf);
  expect(view.isHalf).toBe(true);
});
