/**
 * Finds and reads the CRD files. A cluster gets the same files, so both sources admit the same objects.
 */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageRoot } from "../../lib/package-root.ts";

/** The directory `crds/` of the package. */
export const packagedCrdsDirectory = fileURLToPath(new URL("crds/", packageRoot));

/** The CRDs as JSON texts without descriptions. The bundler writes them here; in a checkout they do not exist. */
declare const DAVIT_CRDS: readonly string[] | undefined;

/**
 * Reads every CRD file of a directory, in order of name; by default davit's own. A bundle has its own as JSON, which
 * is parsed in far less time.
 * @throws {Error} when the directory or a file cannot be read: then davit's installation is incomplete.
 */
export async function readCrds(directory?: string): Promise<readonly string[]> {
  if (directory === undefined && typeof DAVIT_CRDS === "object") return DAVIT_CRDS;
  const from = directory ?? packagedCrdsDirectory;
  const names = (await readdir(from)).filter((name) => name.endsWith(".yaml")).toSorted();
  return Promise.all(names.map((name) => readFile(join(from, name), "utf8")));
}
