/** What davit ships of others is allowed, and NOTICES and the list of parts name it. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { sbom } from "../../tools/packaging/sbom.ts";
import { bundledPackages, licenseProblems, readPackage } from "../../tools/packaging/third-party.ts";

const root = join(import.meta.dirname, "../..");

it("lists exactly the packages of the bundle, and Node, as parts; twice the same", { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-parts-"));
  try {
    const rolldown = join(root, "node_modules/rolldown/bin/cli.mjs");
    const words = [rolldown, "--config", "rolldown.config.js", "--log-level", "warn", "--dir", folder];
    execFileSync(process.execPath, words, { cwd: root });
    const text = sbom(folder, 1_700_000_000);
    const { components, metadata } = JSON.parse(text);
    expect(metadata.timestamp).toBe("2023-11-14T22:13:20.000Z");
    const packages = bundledPackages(folder);
    const refs = [...packages, readPackage(join(root, `node_modules/node-linux-${process.arch}`))].map(
      ({ name, version }) => `${name.replace(/^node-linux-.*/, "node")}@${version}`,
    );
    expect(components.map((each: Record<string, unknown>) => each["bom-ref"]).sort()).toEqual(refs.sort());
    expect(sbom(folder, 1_700_000_000)).toBe(text);
    const notices = readFileSync(join(root, "NOTICES"), "utf8");
    expect(packages.filter(({ name, version }) => !notices.includes(`\n${name} ${version} (`))).toEqual([]);
    expect(packages.length).toBeGreaterThan(100);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("refuses a license that is not allowed, and a package without the text of its license", () => {
  const fine = { name: "a", version: "1.0.0", license: "MIT", home: "", text: "MIT License" };
  expect(licenseProblems([fine, { ...fine, name: "openpgp", license: "LGPL-3.0+" }])).toEqual([]);
  expect(licenseProblems([{ ...fine, license: "LGPL-3.0+" }])).toEqual([
    expect.stringMatching(/^a 1\.0\.0 has the license "LGPL-3\.0\+", which .* does not allow/),
  ]);
  expect(licenseProblems([{ ...fine, text: "" }])).toEqual([
    "a 1.0.0 has no file with its license: write its copyright and license to licenses/a.txt",
  ]);
});
