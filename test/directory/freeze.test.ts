/** While the controller plans a step, the view stays as it is. Changes of the files take effect afterwards. */

import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { groupText, profileText, stream } from "./manifests.ts";
import { replaceFile, SourceUnderTest, temporaryDirectory, writeFiles } from "./source-under-test.ts";

const disposals: (() => Promise<void>)[] = [];

afterEach(async () => {
  while (disposals.length > 0) await disposals.pop()?.();
});

it("shows no change while it is frozen, and all changes at once afterwards", async () => {
  const root = await temporaryDirectory(disposals);
  const before = Array.from({ length: 10 }, (_, number) => groupText(`node${number}`));
  await writeFiles(root, { "a.yaml": stream(profileText("web"), ...before) });
  const tested = await SourceUnderTest.start({ directories: [root] });
  disposals.push(() => tested.source.stop());
  const { view } = tested.source;
  expect(tested.names("Group")).toHaveLength(10);

  const thaw = tested.source.freeze();
  const held = before.map((text) => `${text}  hold: true\n`);
  await replaceFile(join(root, "a.yaml"), stream(profileText("web"), ...held));
  const isHeld = (number: number) => view.get("Group", "default", `node${number}`)?.spec.hold;
  const heldCount = () => [0, 5, 9].filter(isHeld).length;
  const looked = tested.look(3);
  for (let turn = 0; turn < 50; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(heldCount()).toBe(0);
  }
  thaw();
  await looked;
  expect(heldCount()).toBe(3);
});
