/** What of other authors the bundle contains: npm packages, with their licenses. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isJsonObject, parseJsonObject } from "../../src/model/json.ts";

const root = join(import.meta.dirname, "../..");

export interface Package {
  readonly name: string;
  readonly version: string;
  /** As package.json has it, an SPDX expression. */
  readonly license: string;
  /** Where its sources are. */
  readonly home: string;
  /** Its license and notice files; of a package without such files, the one of davit's licenses/. */
  readonly text: string;
}

/** Licenses that need no more than their text beside the program. */
const allowed = new Set([
  "(Apache-2.0 AND BSD-3-Clause)",
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "ISC",
  "MIT",
  "Unlicense",
]);

/** What each other license asks for is in NOTICES, and rolldown.config.js does it. */
const exceptions: Readonly<Record<string, string>> = { openpgp: "LGPL-3.0+" };

/** Returns a sentence for each package whose license davit may not ship. */
export function licenseProblems(packages: readonly Package[]): readonly string[] {
  return packages.flatMap(({ name, version, license, text }) => [
    ...(allowed.has(license) || exceptions[name] === license
      ? []
      : [
          `${name} ${version} has the license "${license}", which tools/packaging/third-party.ts does not allow: ` +
            "remove the package, or do what the license asks and add it there",
        ]),
    ...(text === ""
      ? [`${name} ${version} has no file with its license: write its copyright and license to ${ownTextOf(name)}`]
      : []),
  ]);
}

/** Where davit keeps the license of a package that has none in it. */
function ownTextOf(name: string): string {
  return `licenses/${name.replaceAll("/", "+")}.txt`;
}

/**
 * Returns the packages of a bundle, by name and version.
 * @param bundle the directory of the bundle. Without it, one is built in a temporary directory.
 * @throws {Error} if the bundle cannot be built, or has a package that is not installed.
 */
export function bundledPackages(bundle?: string): readonly Package[] {
  if (bundle !== undefined) return readBundle(bundle);
  const folder = mkdtempSync(join(tmpdir(), "davit-bundle-"));
  try {
    const rolldown = join(root, "node_modules/rolldown/bin/cli.mjs");
    const words = [rolldown, "--config", "rolldown.config.js", "--log-level", "warn", "--dir", folder];
    execFileSync(process.execPath, words, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
    return readBundle(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function readBundle(folder: string): readonly Package[] {
  const paths: unknown = JSON.parse(readFileSync(join(folder, "packages.json"), "utf8"));
  if (!Array.isArray(paths)) throw new Error(`Reading ${folder}/packages.json: it is not a list`);
  return paths.map((path) => readPackage(join(root, String(path))));
}

/** Reads an installed package. */
export function readPackage(folder: string): Package {
  const manifest = parseJsonObject(readFileSync(join(folder, "package.json"), "utf8")) ?? {};
  const { name, version, license, repository, homepage } = manifest;
  const source = isJsonObject(repository) ? repository.url : repository;
  const files = readdirSync(folder).filter((file) => /^((un)?licen[cs]e|notice|copying)/i.test(file));
  const ownText = join(root, ownTextOf(String(name)));
  const texts = files.length === 0 && existsSync(ownText) ? [ownText] : files.sort().map((file) => join(folder, file));
  return {
    name: String(name),
    version: String(version),
    license: String(license),
    home: homeOf(String(source ?? homepage ?? "")),
    text: texts.map((path) => readFileSync(path, "utf8").replaceAll("\r\n", "\n").trim()).join("\n\n"),
  };
}

/** The address of a repository as a browser takes it. */
function homeOf(address: string): string {
  const plain = address
    .replace(/^git\+/, "")
    .replace(/^(git|ssh):\/\/(git@)?/, "https://")
    .replace(/\.git$/, "");
  return /^[\w.-]+\/[\w.-]+$/.test(plain)
    ? `https://github.com/${plain}`
    : plain.replace(/^github:/, "https://github.com/");
}
