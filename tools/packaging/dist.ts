/**
 * `make dist`: for each processor a directory with davit and its own Node, the same as .tar.gz, and a Debian package; the
 * list of parts, and SHA256SUMS. The same commit gives the same bytes: all times are SOURCE_DATE_EPOCH, by default that
 * of the commit. Words: processors (x64, arm64; default both), and `--output DIR` (default dist/release).
 */

import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { isJsonObject, parseJsonObject } from "../../src/model/json.ts";
import { debianPackage } from "./debian-package.ts";
import { copy, type Processor, root, run, setModes } from "./files.ts";
import { sbom } from "./sbom.ts";

const processors: readonly Processor[] = ["x64", "arm64"];

interface Release {
  readonly version: string;
  readonly epochSeconds: number;
  /** Where everything is written. */
  readonly output: string;
}

if (process.argv[1] === import.meta.filename) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { output: { type: "string" } } });
  const wanted = processors.filter((each) => positionals.length === 0 || positionals.includes(each));
  const unknown = positionals.filter((word) => !processors.some((each) => each === word));
  if (unknown.length > 0) throw new Error(`Unknown processor ${unknown.join(", ")}: it is ${processors.join(" or ")}`);
  await makeDist(resolve(root, values.output ?? "dist/release"), wanted);
}

async function makeDist(output: string, wanted: readonly Processor[]): Promise<void> {
  const { version } = parseJsonObject(readFileSync(join(root, "package.json"), "utf8")) ?? {};
  const epochSeconds = Number(process.env.SOURCE_DATE_EPOCH || run("git", "log", "-1", "--format=%ct"));
  const release: Release = { version: String(version), epochSeconds, output };
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  const bundle = join(output, "bundle");
  run("node_modules/.bin/node", "node_modules/rolldown/bin/cli.mjs", "--config", "rolldown.config.js", "--dir", bundle);
  const parts = join(output, `davit-${release.version}.cdx.json`);
  writeFileSync(parts, sbom(bundle, epochSeconds));
  const made = [parts];
  for (const processor of wanted) {
    const tree = makeTree(release, processor, bundle, parts);
    made.push(makeArchive(tree, epochSeconds), await debianPackage({ ...release, processor, tree }));
  }
  rmSync(bundle, { recursive: true });
  const sums = made.map((path) => {
    const digest = createHash("sha256").update(readFileSync(path)).digest("hex");
    return `${digest}  ${path.slice(output.length + 1)}\n`;
  });
  writeFileSync(join(output, "SHA256SUMS"), sums.join(""));
  process.stdout.write(sums.join(""));
}

/** The directory that is davit: bin/davit starts it, wherever it lies. */
function makeTree({ version, output }: Release, processor: Processor, bundle: string, parts: string): string {
  const tree = join(output, `davit-${version}-linux-${processor}`);
  const node = nodePackage(processor, output);
  const copies: Readonly<Record<string, string>> = {
    [join(node, "bin/node")]: "bin/node",
    [join(node, "LICENSE")]: "licenses/node.txt",
    [bundle]: "dist/bundle",
    [parts]: "davit.cdx.json",
  };
  for (const [from, to] of Object.entries(copies)) copy(from, join(tree, to));
  for (const name of ["bin/davit", "crds", "console", "package.json", "LICENSE", "NOTICES", "CHANGELOG.md"])
    copy(join(root, name), join(tree, name));
  copy(join(root, "licenses"), join(tree, "licenses"));
  // The alerts of a davit on a host are in manifests/prometheus.
  for (const name of ["quickstart", "examples", "prometheus"])
    copy(join(root, "manifests", name), join(tree, "manifests", name));
  setModes(tree);
  for (const name of ["davit", "node"]) chmodSync(join(tree, "bin", name), 0o755);
  return tree;
}

/** Where Node for a processor is: the installed one, or what the lockfile names for another processor. */
function nodePackage(processor: Processor, output: string): string {
  const name = `node-linux-${processor}`;
  const installed = join(root, "node_modules", name);
  if (existsSync(installed)) return installed;
  const folder = join(output, `.${processor}`);
  copy(join(root, "package-lock.json"), join(folder, "package-lock.json"));
  // Only Node: npm checks it against the lockfile.
  const manifest = parseJsonObject(readFileSync(join(root, "package.json"), "utf8")) ?? {};
  const optional = isJsonObject(manifest.optionalDependencies) ? manifest.optionalDependencies : {};
  const spec = `${name}@${String(optional[name])}`;
  const integrity = integrityOf(name);
  const [packed = ""] = run("npm", "pack", "--silent", "--pack-destination", folder, spec).split("\n");
  const archive = readFileSync(join(folder, packed));
  const found = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
  if (found !== integrity) throw new Error(`${spec} is ${found}, and ${integrity} in package-lock.json`);
  run("tar", "--extract", "--gzip", "--directory", folder, "--file", join(folder, packed));
  return join(folder, "package");
}

function integrityOf(name: string): string {
  const { packages } = parseJsonObject(readFileSync(join(root, "package-lock.json"), "utf8")) ?? {};
  const entry = isJsonObject(packages) ? packages[`node_modules/${name}`] : undefined;
  return isJsonObject(entry) ? String(entry.integrity) : "not";
}

/** @returns the path of the archive. */
function makeArchive(tree: string, epochSeconds: number): string {
  const path = `${tree}.tar.gz`;
  const tar = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu", `--mtime=@${epochSeconds}`];
  const name = tree.slice(dirname(tree).length + 1);
  run(
    "tar",
    "--create",
    "--use-compress-program=gzip -n -6",
    "--file",
    path,
    ...tar,
    "--directory",
    dirname(tree),
    name,
  );
  return path;
}
