/** A matchbox data directory: the port to its files, and its implementation for a directory on disk. */

import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, posix, sep } from "node:path";
import { codeOf } from "../../../src/lib/errors.ts";
import { compareBytes } from "../../../src/lib/order.ts";

export interface DataDirectory {
  /** Returns the entries of a folder, sorted; none if the folder does not exist. */
  list(folder: string): readonly InputEntry[];
  /** @param path such as `groups/default.json`. */
  read(path: string): InputFile;
}

export interface InputEntry {
  readonly name: string;
  readonly isDirectory: boolean;
}

export type InputFile =
  | { readonly kind: "text"; readonly text: string }
  /** `problem` says what is wrong, and after a colon what to do. */
  | { readonly kind: "unusable"; readonly problem: string }
  | { readonly kind: "missing" };

/**
 * Returns the path of the file with a name in a folder, such as `ignition/worker.ign`. As in matchbox, a name never
 * leads out of the directory.
 */
export function dataPath(folder: string, name: string): string {
  return posix.join("/", folder, name).slice(1);
}

/** davit accepts no larger template. */
const maxFileBytes = 1024 * 1024;

/**
 * Opens a directory on disk. Like matchbox, it follows links, but never out of the directory.
 * @throws a system error if the directory cannot be read. `list` throws one for an unreadable folder.
 */
export function openDirectory(path: string): DataDirectory {
  const root = realpathSync(path);
  return { list: (folder) => listFolder(join(root, folder)), read: (file) => readBelow(root, file) };
}

function listFolder(path: string): readonly InputEntry[] {
  try {
    return readdirSync(path)
      .toSorted(compareBytes)
      .map((name) => ({ name, isDirectory: isDirectory(join(path, name)) }));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** False for an entry that cannot be inspected, such as a link to itself: reading it reports why. */
function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return false;
  }
}

function readBelow(root: string, file: string): InputFile {
  if (file.includes("\0")) return { kind: "missing" };
  try {
    const path = realpathSync(join(root, file));
    if (!path.startsWith(root === sep ? sep : root + sep)) {
      return unusable("is a link out of the directory: put the file itself in its place");
    }
    return readText(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) throw error;
    if (code === "ENOENT" || code === "ENOTDIR") return { kind: "missing" };
    return unusable(`cannot be read (${code}): check its permissions and its disk`);
  }
}

function readText(path: string): InputFile {
  // Without O_NONBLOCK, the call would wait for a writer if the file is a named pipe.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return unusable("is not a file: put the file itself in its place");
    if (stat.size > maxFileBytes) return unusable("is larger than 1 MiB, and davit takes no such text: shorten it");
    return decoded(readFileSync(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

function decoded(bytes: Uint8Array): InputFile {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!text.includes("\0")) return { kind: "text", text };
  } catch (error) {
    if (codeOf(error) !== "ERR_ENCODING_INVALID_ENCODED_DATA") throw error;
  }
  return unusable("is not text in UTF-8: davit serves such a file from its assets directory");
}

function unusable(problem: string): InputFile {
  return { kind: "unusable", problem };
}
