/** Where the CRD files are, and their texts: the files that a cluster gets, so that both sources admit the same. */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** `crds/` of the package: two levels up from this file in `src/` and in `dist/` alike. */
export const packagedCrdsDirectory = fileURLToPath(new URL("../../crds/", import.meta.url));

/**
 * Reads every CRD file of a directory, in order of name.
 * @throws {Error} when the directory or a file cannot be read: davit is not installed as a whole.
 */
export async function readCrds(directory: string): Promise<readonly string[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith(".yaml")).toSorted();
  return Promise.all(names.map((name) => readFile(join(directory, name), "utf8")));
}
