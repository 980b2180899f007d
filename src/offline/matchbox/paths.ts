/** Makes paths below a matchbox directory, as matchbox does: a name never leads out of the directory. */

import { posix } from "node:path";

/** Returns the path of the file with a name in a folder, such as `ignition/worker.ign`. */
export function dataPath(folder: string, name: string): string {
  return posix.join("/", folder, name).slice(1);
}
