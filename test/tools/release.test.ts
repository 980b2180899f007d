/** The dry run of `make release`, in a repository of its own. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { release } from "../../tools/release.ts";

let root = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "davit-release-"));
  mkdirSync(join(root, "charts/davit"), { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) write(name, '{\n  "version": "0.2.0"\n}\n');
  write("charts/davit/Chart.yaml", 'version: 0.3.1\nappVersion: "0.2.0"\n');
  write("CHANGELOG.md", "# Changelog\n\n## 0.2.0\n\n## 0.1.0\n");
  git("init", "--quiet");
  commit();
});
afterEach(() => rmSync(root, { recursive: true }));

it("lists the steps, runs none of them, and says what to push", () => {
  const { code, lines } = dryRun("0.2.0");
  expect(code).toBe(0);
  expect(lines.filter((line) => /^\d\./.test(line)).map((line) => line.replace(/:.*/, ""))).toEqual([
    "1. checks, generated files among them",
    "2. every suite",
    "3. the image",
    "4. the chart",
    "5. the tag",
  ]);
  expect(lines.at(-1)).toBe("   git push origin main v0.2.0");
  expect(lines.join("\n")).toContain("davit-0.3.1.tgz");
  expect(git("tag", "--list")).toBe("");
});

it.each([
  ["no version", "", () => undefined, 'VERSION is "": give it as in VERSION=0.2.0'],
  ["a change", "0.2.0", () => write("new", ""), "the tree has changes: commit or remove them"],
  ["a tag of before", "0.2.0", () => git("tag", "v0.2.0"), "the tag v0.2.0 exists"],
  [
    "another version of the chart's program",
    "0.2.0",
    () => write("charts/davit/Chart.yaml", "version: 0.3.1\nappVersion: 0.1.0\n"),
    'charts/davit/Chart.yaml: appVersion is "0.1.0", the release "0.2.0"',
  ],
  [
    "a changelog that is not done",
    "0.2.0",
    () => write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n"),
    'CHANGELOG.md: first release is "Unreleased", the release "0.2.0"',
  ],
])("names %s", (_name, version, change, problem) => {
  change();
  const { code, lines } = dryRun(version);
  expect(code).toBe(1);
  expect(lines).toContain(`not ready: ${problem}`);
});

it("runs no step of a release that is not ready", () => {
  const lines: string[] = [];
  expect(release({ version: "0.4.0", isDry: false, root, write: (line) => lines.push(line) })).toBe(1);
  expect(lines.filter((line) => !line.startsWith("not ready: "))).toEqual([]);
});

function dryRun(version: string): { code: number; lines: readonly string[] } {
  const lines: string[] = [];
  const code = release({ version, isDry: true, root, write: (line) => lines.push(line) });
  return { code, lines };
}

function write(name: string, text: string): void {
  writeFileSync(join(root, name), text);
}

function git(...words: readonly string[]): string {
  return execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim();
}

function commit(): void {
  git("add", ".");
  git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "all");
}
