/**
 * `make release VERSION=X.Y.Z`: checks that the tree is ready for a release, then runs its steps up to the tag. It never
 * pushes: .github/workflows/release.yaml does, for the tag. `make release-dry-run` runs the steps that build, lists the
 * others, and prints the release's notes.
 *
 * The workflow uses two more modes: `--tagged` only checks that the tree agrees with its tag, and `--notes` prints the part
 * of CHANGELOG.md for the version.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chartToolPath } from "./build/chart-tools.ts";

interface Release {
  /** Such as `0.2.0`; in a dry run, empty for the one of package.json. */
  readonly version: string;
  readonly isDry: boolean;
  /** The working tree. */
  readonly root: string;
  readonly write: (line: string) => void;
  /** Runs a command, and returns its exit code. */
  readonly run: (command: readonly string[]) => number | null;
}

interface Step {
  readonly what: string;
  readonly command: readonly string[];
  /** True if it builds and leaves nothing behind outside of dist/. */
  readonly isInDryRun: boolean;
}

/** @returns the exit code: 1 if a step failed, or if a check of a release that is no dry run did. */
export function release({ version: given, isDry, root, write, run }: Release): number {
  const version = given === "" && isDry ? readVersions(root).program : given;
  const problems = problemsOf(version, root);
  for (const problem of problems) write(`not ready: ${problem}`);
  if (problems.length > 0 && !isDry) return 1;
  for (const [at, { what, command, isInDryRun }] of steps(version).entries()) {
    const isLeftOut = isDry && !isInDryRun;
    write(`${at + 1}. ${what}: ${command.join(" ")}${isLeftOut ? " (not in a dry run)" : ""}`);
    if (!isLeftOut && run(command) !== 0) {
      write(`failed: ${what}`);
      return 1;
    }
  }
  write("Then push: .github/workflows/release.yaml builds the same, signs and publishes it.");
  write(`   git push origin main v${version}`);
  return 0;
}

function steps(version: string): readonly Step[] {
  const step = (what: string, isInDryRun: boolean, ...command: readonly string[]) => ({ what, command, isInDryRun });
  return [
    step("checks, generated files and licenses among them", false, "make", "check"),
    step("every suite", false, "make", "test"),
    step("archives, Debian packages, the list of parts", true, "make", "dist"),
    step("the package in a bare Debian, and a second build of the same bytes", false, "make", "test-dist"),
    step("the image", false, "make", "image", `IMAGE=davit:${version}`),
    step("the chart", true, chartToolPath("helm"), "package", "charts/davit", "--destination", "dist"),
    step("the workflows", true, chartToolPath("actionlint")),
    step("the tag", false, "git", "tag", "--annotate", `v${version}`, "--message", `davit ${version}`),
  ];
}

/**
 * Returns the part of a changelog for a version, without its heading. Links to files of the repository lead to the tag.
 * @throws {Error} if the changelog has no such part.
 */
export function notesOf(changelog: string, version: string, repository: string): string {
  const parts = changelog.split(/^## /m).slice(1);
  const part = parts.find((each) => each.split("\n", 1)[0]?.split(" ")[0] === version);
  if (part === undefined) throw new Error(`CHANGELOG.md has no "## ${version}"`);
  const text = part.slice(part.indexOf("\n")).trim();
  if (repository === "") return text;
  return text.replaceAll(/\]\((?!https?:)([^)]+)\)/g, `](https://github.com/${repository}/blob/v${version}/$1)`);
}

/** What of the tree does not fit to its tag. */
function versionProblems(version: string, root: string): readonly string[] {
  const { program, lockfile, chart, app, changelog } = readVersions(root);
  const is = (name: string, found: string) =>
    found === version ? [] : [`${name} is "${found}", the release "${version}"`];
  return [
    ...(/^\d+\.\d+\.\d+$/.test(version) ? [] : [`VERSION is "${version}": give it as in VERSION=0.2.0`]),
    ...is("package.json: version", program),
    ...is("package-lock.json: version", lockfile),
    ...is("charts/davit/Chart.yaml: appVersion", app),
    ...is("CHANGELOG.md: first release", changelog),
    ...(chart === "" ? ["charts/davit/Chart.yaml has no version"] : []),
  ];
}

function problemsOf(version: string, root: string): readonly string[] {
  const git = (...words: readonly string[]) => execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim();
  return [
    ...versionProblems(version, root),
    ...(git("status", "--porcelain") === "" ? [] : ["the tree has changes: commit or remove them"]),
    ...(git("tag", "--list", `v${version}`) === "" ? [] : [`the tag v${version} exists`]),
  ];
}

function readVersions(root: string) {
  const first = (path: string, pattern: RegExp) => pattern.exec(readFileSync(join(root, path), "utf8"))?.[1] ?? "";
  return {
    program: first("package.json", /^ {2}"version": "(.*)"/m),
    lockfile: first("package-lock.json", /^ {2}"version": "(.*)"/m),
    chart: first("charts/davit/Chart.yaml", /^version: "?([^"\n]*)/m),
    app: first("charts/davit/Chart.yaml", /^appVersion: "?([^"\n]*)/m),
    changelog: first("CHANGELOG.md", /^## (\S+)/m),
  };
}

if (process.argv[1] === import.meta.filename) {
  const words = process.argv.slice(2);
  const version = words.find((word) => !word.startsWith("--")) ?? "";
  const root = join(import.meta.dirname, "..");
  const isDry = words.includes("--dry");
  const write = (line: string) => process.stdout.write(`${line}\n`);
  const notes = (of: string) =>
    notesOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), of, process.env.GITHUB_REPOSITORY ?? "");
  if (words.includes("--notes")) {
    write(notes(version));
  } else if (words.includes("--tagged")) {
    const problems = versionProblems(version, root);
    for (const problem of problems) write(`not ready: ${problem}`);
    process.exitCode = problems.length > 0 ? 1 : 0;
  } else {
    const run = ([program = "", ...rest]: readonly string[]) =>
      spawnSync(program, rest, { cwd: root, stdio: "inherit" }).status;
    process.exitCode = release({ version, isDry, root, write, run });
    if (isDry && process.exitCode === 0) {
      const { changelog } = readVersions(root);
      const lines = notes(changelog).split("\n");
      write(`Notes, from "## ${changelog}", ${lines.length} lines:`);
      for (const line of lines.slice(0, 12)) write(`   ${line}`.trimEnd());
    }
  }
}
