/**
 * `make release VERSION=X.Y.Z`: checks that the tree is ready for a release, then runs its steps up to the tag. With
 * DRY=1 it runs only the checks, and lists the steps. It never pushes: the last lines are the commands that do.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chartToolPath } from "./build/chart-tools.ts";

interface Release {
  /** Such as `0.2.0`. */
  readonly version: string;
  readonly isDry: boolean;
  /** The working tree. */
  readonly root: string;
  readonly write: (line: string) => void;
}

interface Step {
  readonly what: string;
  readonly command: readonly string[];
}

/** @returns the exit code: 1 where a check or a step failed. */
export function release({ version, isDry, root, write }: Release): number {
  const problems = problemsOf(version, root);
  for (const problem of problems) write(`not ready: ${problem}`);
  if (problems.length > 0 && !isDry) return 1;
  for (const [at, { what, command }] of stepsOf(version).entries()) {
    write(`${at + 1}. ${what}: ${command.join(" ")}`);
    const [program = "", ...words] = command;
    if (!isDry && spawnSync(program, words, { cwd: root, stdio: "inherit" }).status !== 0) {
      write(`failed: ${what}`);
      return 1;
    }
  }
  write("Then push, the image before the chart that names it:");
  write(`   docker push REGISTRY/davit:${version}, from the local image davit:${version}`);
  write(`   helm push dist/davit-${readVersions(root).chart}.tgz oci://REGISTRY/charts`);
  write(`   git push origin main v${version}`);
  return problems.length > 0 ? 1 : 0;
}

function stepsOf(version: string): readonly Step[] {
  return [
    { what: "checks, generated files among them", command: ["make", "check"] },
    { what: "every suite", command: ["make", "test"] },
    { what: "the image", command: ["make", "image", `IMAGE=davit:${version}`] },
    { what: "the chart", command: [chartToolPath("helm"), "package", "charts/davit", "--destination", "dist"] },
    { what: "the tag", command: ["git", "tag", "--annotate", `v${version}`, "--message", `davit ${version}`] },
  ];
}

function problemsOf(version: string, root: string): readonly string[] {
  const git = (...words: readonly string[]) => execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim();
  const { program, lockfile, chart, app, changelog } = readVersions(root);
  const is = (name: string, found: string) =>
    found === version ? [] : [`${name} is "${found}", the release "${version}"`];
  return [
    ...(/^\d+\.\d+\.\d+$/.test(version) ? [] : [`VERSION is "${version}": give it as in VERSION=0.2.0`]),
    ...(git("status", "--porcelain") === "" ? [] : ["the tree has changes: commit or remove them"]),
    ...(git("tag", "--list", `v${version}`) === "" ? [] : [`the tag v${version} exists`]),
    ...is("package.json: version", program),
    ...is("package-lock.json: version", lockfile),
    ...is("charts/davit/Chart.yaml: appVersion", app),
    ...is("CHANGELOG.md: first release", changelog),
    ...(chart === "" ? ["charts/davit/Chart.yaml has no version"] : []),
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
  const write = (line: string) => process.stdout.write(`${line}\n`);
  process.exitCode = release({ version, isDry: words.includes("--dry"), root: join(import.meta.dirname, ".."), write });
}
