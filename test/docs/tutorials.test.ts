/** The tutorials of docs/use/: the objects that they write lint together without errors. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runCommand } from "../helpers/command-under-test.ts";
import { blocksOf, readPage } from "../helpers/page-examples.ts";

it.each([
  ["first-machine", "objects", "no errors, no warnings, no advice"],
  ["install-once", "installs", "no errors, no warnings, no advice"],
  ["roll-out", "objects", "no errors, no warnings, 1 advice"],
])("docs/use/%s.md: lint finds in its %s %s", async (name, directory, verdict) => {
  const folder = mkdtempSync(join(tmpdir(), "davit-tutorial-"));
  try {
    // Programs that the page starts do nothing here.
    const acted = 'set -eu\nfor name in davit make kubectl; do eval "$name() { :; }"; done\n';
    execFileSync("bash", ["-c", acted + blocksOf(readPage(`use/${name}.md`), "sh").join("\n")], { cwd: folder });
    const { errors } = await runCommand(["lint", "--manifests", join(folder, directory)]);
    expect(errors).toBe(`davit lint: ${verdict}\n`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
