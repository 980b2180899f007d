/**
 * NOTICES: the licenses of everything in the bundle that has other authors. `npm run notices` writes the file. With
 * `--check` nothing is written: it fails if the file is out of date, or if a license is not allowed.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundledPackages, licenseProblems, type Package, readPackage } from "./third-party.ts";

const root = join(import.meta.dirname, "../..");
const path = join(root, "NOTICES");

if (process.argv[1] === import.meta.filename) {
  const packages = bundledPackages();
  const problems = [...licenseProblems(packages)];
  const text = notices(packages);
  if (!process.argv.includes("--check")) writeFileSync(path, text);
  else if (text !== readNotices()) problems.push("NOTICES is out of date: npm run notices");
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  if (problems.length > 0) process.exitCode = 1;
}

function readNotices(): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Returns the text of NOTICES. Packages with the same license text share one copy of it. */
export function notices(packages: readonly Package[]): string {
  const openpgp = packages.find(({ name }) => name === "openpgp");
  const node = readPackage(join(root, `node_modules/node-linux-${process.arch}`));
  const byText = Map.groupBy(packages, ({ text }) => text);
  const parts = [...byText].map(([text, sharing]) => `${sharing.map(titleOf).join("\n")}\n\n${text}\n`);
  return [head(openpgp, node.version), ...parts].join(`\n${"-".repeat(80)}\n\n`);
}

function head(openpgp: Package | undefined, node: string): string {
  return `Third-party software in davit

\`npm run notices\` makes this file of the packages whose code is in the bundle, dist/bundle/. davit itself is under
the Apache License 2.0: see LICENSE.

Node.js ${node} runs the bundle. The file of its licenses is beside it: licenses/node.txt in archives and the Debian
package, /nodejs/LICENSE in the image.

OpenPGP.js ${openpgp?.version ?? "is missing"} is under the GNU Lesser General Public License, version 3 or later. davit uses it as a library.
It is the file dist/bundle/openpgp.mjs, unchanged, as its authors publish it. You may replace that file with another
version that has the same interface: davit loads it from there. You may modify davit for your own use, and reverse
engineer it to debug such a change. The sources are at ${openpgp?.home ?? ""}, tag v${openpgp?.version ?? ""}. The text of
the license is below, and that of the GNU General Public License, on which it builds, in licenses/GPL-3.0.txt.
`;
}

function titleOf({ name, version, license, home }: Package): string {
  return `${name} ${version} (${license})${home === "" ? "" : ` ${home}`}`;
}
