/** `make release-dry-run`, the checks before a release and its notes, in a repository of its own. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { notesOf, release } from "../../tools/release.ts";

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

it("runs the steps that build, and no other, and says what to push", () => {
  const { code, lines, commands } = dryRun("0.2.0");
  expect(code).toBe(0);
  expect(lines.filter((line) => /^\d\./.test(line)).map((line) => line.replace(/:.*?( \(|$)/, "$1"))).toEqual([
    "1. checks, generated files and licenses among them (not in a dry run)",
    "2. every suite (not in a dry run)",
    "3. archives, Debian packages, the list of parts",
    "4. the package in a bare Debian, and a second build of the same bytes (not in a dry run)",
    "5. the image (not in a dry run)",
    "6. the chart",
    "7. the workflows",
    "8. the tag (not in a dry run)",
  ]);
  expect(commands).toEqual([
    "make dist",
    expect.stringMatching(/\/helm package charts\/davit --destination dist$/),
    expect.stringMatching(/\/actionlint$/),
  ]);
  expect(lines.at(-1)).toBe("   git push origin main v0.2.0");
  expect(git("tag", "--list")).toBe("");
});

it("takes the version of package.json in a dry run, and ends at a step that fails", () => {
  const { code, lines } = dryRun("", 1);
  expect(code).toBe(1);
  expect(lines.filter((line) => line.startsWith("not ready"))).toEqual([]);
  expect(lines.at(-1)).toBe("failed: archives, Debian packages, the list of parts");
});

it.each([
  ["no version", "next", () => undefined, 'VERSION is "next": give it as in VERSION=0.2.0'],
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
  expect(lines).toContain(`not ready: ${problem}`);
  expect(code).toBe(0);
});

it("runs no step of a release that is not ready", () => {
  const lines: string[] = [];
  const commands: string[] = [];
  const run = (command: readonly string[]) => {
    commands.push(command.join(" "));
    return 0;
  };
  const write = (line: string) => lines.push(line);
  expect(release({ version: "0.4.0", isDry: false, root, write, run })).toBe(1);
  expect(lines.filter((line) => !line.startsWith("not ready: "))).toEqual([]);
  expect(commands).toEqual([]);
});

it("takes the notes of one version from the changelog, with links to the tag", () => {
  const changelog =
    "# Changelog\n\n## 0.2.0\n\n- new ([page](docs/a.md#b), [web](https://x.example))\n\n## 0.1.0\n\n- old\n";
  expect(notesOf(changelog, "0.2.0", "")).toBe("- new ([page](docs/a.md#b), [web](https://x.example))");
  expect(notesOf(changelog, "0.2.0", "a/davit")).toBe(
    "- new ([page](https://github.com/a/davit/blob/v0.2.0/docs/a.md#b), [web](https://x.example))",
  );
  expect(notesOf(changelog, "0.1.0", "")).toBe("- old");
  expect(() => notesOf(changelog, "0.3.0", "")).toThrow('CHANGELOG.md has no "## 0.3.0"');
});

function dryRun(version: string, exitCode = 0) {
  const lines: string[] = [];
  const commands: string[] = [];
  const run = (command: readonly string[]) => {
    commands.push(command.join(" "));
    return exitCode;
  };
  const code = release({ version, isDry: true, root, write: (line) => lines.push(line), run });
  return { code, lines, commands };
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
