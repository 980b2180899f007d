/**
 * Finds and reads the CRD files. A cluster gets the same files, so both sources admit the same objects.
 */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The directory `crds/` of the package. The same relative path leads to it from `src/` and from `dist/`. */
export const packagedCrdsDirectory = fileURLToPath(new URL("../../crds/", import.meta.url));

/**
 * Reads every CRD file of a directory, in order of name.
 * @throws {Error} when the directory or a file cannot be read: then davit's installation is incomplete.
 */
export async function readCrds(directory: string): Promise<readonly string[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith(".yaml")).toSorted();
  return Promise.all(names.map((name) => readFile(join(directory, name), "utf8")));
}
