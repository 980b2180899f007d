/** The workflows of GitHub: actionlint finds nothing, and no action can change behind its name. */

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { chartToolPath } from "../../tools/build/chart-tools.ts";
import { missing } from "../helpers/requirements.ts";

const root = join(import.meta.dirname, "../..");
const folder = join(root, ".github/workflows");
const files = [
  ...readdirSync(folder).map((name) => join(folder, name)),
  // For users: docs/use/diff.md.
  join(root, "docs/use/diff-workflow.yaml"),
];

it.skipIf(missing("actionlint"))("are taken by actionlint", () => {
  expect(files.length).toBeGreaterThan(2);
  const words = ["-shellcheck=", "-pyflakes=", ...files];
  expect(execFileSync(chartToolPath("actionlint"), words, { encoding: "utf8" })).toBe("");
});

it("name each action by its commit, give no right by default, and leave no token in the checkout", () => {
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    const actions = [...text.matchAll(/uses: (\S+)( #.*)?$/gm)];
    expect(actions.length).toBeGreaterThan(0);
    for (const [line] of actions) expect(line).toMatch(/@[\da-f]{40} # v[\d.]+$/);
    expect(text).toMatch(/^permissions:\n {2}contents: read$/m);
    const checkouts = text.match(/actions\/checkout@/g) ?? [];
    expect(text.match(/persist-credentials: false/g) ?? []).toHaveLength(checkouts.length);
  }
});
