/** The complete objects that docs/reference/crds/profile.md and group.md begin with: together davit accepts them. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runCommand } from "../helpers/command-under-test.ts";
import { blocksOf, readPage } from "../helpers/page-examples.ts";

it("the Profile and the Group that the pages begin with lint together", async () => {
  const folder = await mkdtemp(join(tmpdir(), "davit-crds-pages-"));
  try {
    for (const kind of ["profile", "group"]) {
      const [first = ""] = blocksOf(readPage(`reference/crds/${kind}.md`), "yaml");
      await writeFile(join(folder, `${kind}.yaml`), `${first}\n`);
    }
    const { errors, output, code } = await runCommand(["lint", "--manifests", folder]);
    expect([errors, code]).toEqual(["davit lint: no errors, no warnings, 1 advice\n", 0]);
    expect(output).toContain("set boot.efiInitrd");
  } finally {
    await rm(folder, { recursive: true });
  }
});
