/**
 * Lists the manifests below directories, without reading them: `*.yaml`, `*.yml` and `*.json`, recursively. The case of
 * the ending is irrelevant. It skips names that begin with a dot. It follows links, because a mounted ConfigMap
 * consists of links: `web.yaml` leads to `..data/web.yaml`, and `..data` to the newest version. If two paths lead to
 * one directory, it lists the directory once.
 *
 * If an entry has a manifest's name but is neither a file nor a directory, such as a named pipe or a device, davit
 * reports a problem and never opens the entry. Opening a pipe could take for ever. Skipping the entry would remove the
 * objects of a file that was at this path before.
 *
 * A given directory without a single manifest counts as missing: the mount point of an unmounted volume looks the same
 * as a directory that was emptied on purpose (docs/internals/decisions/0004).
 */

import type { BigIntStats, Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import { compareBytes } from "../../lib/order.ts";
import type { Position } from "../../lib/text/position.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import type { SourceProblem } from "../../model/objects/source.ts";

export interface ListedFile {
  readonly path: string;
  /**
   * The name in messages: the path below the given directory. If davit reads several directories, the directory comes
   * first.
   */
  readonly label: string;
  readonly sizeBytes: number;
  /** The mtime in Unix milliseconds, by the wall clock of the file server. */
  readonly modifiedMs: number;
  /** Changes whenever the bytes may have changed. */
  readonly signature: string;
}

export interface DirectoryListing {
  /** In byte order of their paths, directory by directory. */
  readonly files: readonly ListedFile[];
  /** Directories to watch, by path. The value changes when another directory appears at the same path. */
  readonly directories: ReadonlyMap<string, string>;
  /** Paths that could not be read. What davit knew about files at and below these paths stays. */
  readonly unreadable: readonly string[];
  readonly problems: readonly FileProblem[];
}

// A directory with more files, or more directories, was probably given by mistake, such as /. The walk ends there.
const maxEntries = 100_000;
// Enough to keep a disk busy, and few enough that other file operations of davit do not wait long.
const parallelStats = 16;

/**
 * Lists the files below directories. It never throws: it reports unreadable places as problems.
 * @param limit how many files to list, and how many directories to visit.
 * @param takesFiles true if the paths may be files, too. A server takes none: it watches directories.
 */
export async function listFiles(
  directories: readonly string[],
  limit = maxEntries,
  takesFiles = false,
): Promise<DirectoryListing> {
  const walk = new DirectoryWalk(limit);
  for (const directory of directories) {
    if (takesFiles && (await walk.takeFile(directory))) continue;
    await walk.enterRoot(directory, directories.length > 1 ? directory : "");
  }
  return walk;
}

/** Identifies the version of a file: size, times in nanoseconds, and which file it is. */
export function signatureOf({ size, mtimeNs, ctimeNs, ino, dev }: BigIntStats): string {
  return [size, mtimeNs, ctimeNs, ino, dev].join(":");
}

/** True if two versions have the same inode, as after a write in place. */
export function isSameFile(a: ListedFile, b: ListedFile): boolean {
  return fileIn(a) === fileIn(b);
}

/** True if a file's inode changed after its bytes did, as by a rename. A write sets both times alike. */
export function wasRenamed({ signature }: ListedFile): boolean {
  const [, modifiedNs = "", changedNs = ""] = signature.split(":");
  return BigInt(changedNs) > BigInt(modifiedNs);
}

function fileIn({ signature }: ListedFile): string {
  return signature.split(":").slice(-2).join(":");
}

class DirectoryWalk implements DirectoryListing {
  readonly files: ListedFile[] = [];
  readonly directories = new Map<string, string>();
  readonly unreadable: string[] = [];
  readonly problems: FileProblem[] = [];
  readonly #visited = new Map<string, Visited>();
  readonly #limit: number;
  #root = "";
  /** True once there was more than the limit: the walk looks at nothing more. */
  #isOver = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  async enterRoot(directory: string, label: string): Promise<void> {
    const root = resolve(directory);
    this.#root = root;
    if (this.#isOver) {
      this.unreadable.push(root);
      return;
    }
    const { path, isEmpty } = await this.#enter(root, { label, origin: directory, level: "root" });
    if (isEmpty) this.#report(path, wholeProblem(directory, "empty-directory", emptyText));
  }

  /** Adds a file that was given itself, whatever its ending. @returns false if the path is no file. */
  async takeFile(path: string): Promise<boolean> {
    const stats = await stat(path, { bigint: true }).catch(() => undefined);
    if (stats?.isFile() !== true) return false;
    const file = resolve(path);
    if (this.files.every((known) => known.path !== file)) this.#list(file, path, stats);
    return true;
  }

  async #enter(path: string, { label, origin, level }: Entered): Promise<Visited> {
    try {
      const identity = identityOf(await stat(path, { bigint: true }));
      const visited = this.#visited.get(identity);
      if (visited !== undefined) return visited;
      if (this.#visited.size === this.#limit) {
        this.#endWalk(origin, "directories");
        return { path, isEmpty: false };
      }
      this.#visited.set(identity, { path, isEmpty: true });
      const entries = await readdir(path, { withFileTypes: true });
      this.directories.set(path, identity);
      const entered = { path, isEmpty: await this.#take(entries, path, label) };
      this.#visited.set(identity, entered);
      return entered;
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      // A directory below a given one may vanish while its parent is read. A given directory that vanished is a
      // problem, and its files still count.
      if (code === "ENOENT" && level === "below") return { path, isEmpty: true };
      const message = `The directory cannot be read (${code}): restore it, or correct its permissions`;
      this.#report(path, wholeProblem(origin, "unreadable-file", message));
      return { path, isEmpty: false };
    }
  }

  /**
   * Adds the entries of a directory. @returns true if neither it nor a directory below has a manifest or a problem.
   */
  async #take(entries: readonly Dirent[], directory: string, label: string): Promise<boolean> {
    const knownProblemCount = this.problems.length;
    let isEmpty = true;
    const sorted = entries.filter(({ name }) => !name.startsWith(".")).toSorted((a, b) => compareBytes(a.name, b.name));
    for (let at = 0; at < sorted.length && !this.#isOver; at += parallelStats) {
      const part = sorted.slice(at, at + parallelStats);
      const seen = await Promise.all(part.map((entry) => this.#look(entry, join(directory, entry.name), label)));
      for (const [position, stats] of seen.entries()) {
        const entry = part[position];
        if (entry === undefined || stats === undefined || this.#isOver) continue;
        if (await this.#add(entry, { directory, label, stats })) isEmpty = false;
      }
    }
    return isEmpty && this.problems.length === knownProblemCount;
  }

  /** Returns the status of what an entry leads to; undefined if the entry is irrelevant, vanished or unreadable. */
  async #look(entry: Dirent, path: string, label: string): Promise<BigIntStats | undefined> {
    if (!entry.isDirectory() && !entry.isSymbolicLink() && !isManifest(entry.name)) return undefined;
    try {
      return await stat(path, { bigint: true });
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      // A file or directory that is missing here was removed a moment ago. A dangling link is a problem whatever its
      // name: it may be meant for a directory of manifests, on a volume that is not mounted.
      const isGone = code === "ENOENT" && !entry.isSymbolicLink();
      if (!isGone) this.#report(path, unreadableProblem(join(label, entry.name), code, entry.name));
      return undefined;
    }
  }

  /** Adds a manifest, or the manifests below a directory. @returns true if there are any, usable or not. */
  async #add(entry: Dirent, { directory, label, stats }: AddedEntry): Promise<boolean> {
    const { name } = entry;
    const path = join(directory, name);
    const own = join(label, name);
    if (stats.isDirectory()) return await this.#addBelow(path, own, entry.isSymbolicLink());
    if (!isManifest(name)) return false;
    if (!stats.isFile()) {
      this.#report(path, noFileProblem(own, stats));
      return true;
    }
    if (this.files.length === this.#limit) {
      this.#endWalk(label || directory, "files");
      return true;
    }
    this.#list(path, own, stats);
    return true;
  }

  #list(path: string, label: string, stats: BigIntStats): void {
    const { size, mtimeMs } = stats;
    const signature = signatureOf(stats);
    this.files.push({ path, label, sizeBytes: Number(size), modifiedMs: Number(mtimeMs), signature });
  }

  /**
   * Adds the manifests of a directory below a given one. An empty directory behind a link is a problem: it may be the
   * mount point of a volume that is not mounted.
   */
  async #addBelow(path: string, label: string, isLinked: boolean): Promise<boolean> {
    const below = await this.#enter(path, { label, origin: label, level: "below" });
    const isReachedFirst = below.path === path;
    if (below.isEmpty && isLinked && isReachedFirst) {
      this.#report(path, wholeProblem(label, "empty-directory", emptyText));
    }
    return !below.isEmpty;
  }

  /** What davit knew of files that the walk does not reach stays. */
  #endWalk(origin: string, what: "files" | "directories"): void {
    this.#isOver = true;
    this.unreadable.push(this.#root);
    const message = `There are more than ${this.#limit} ${what}: give a smaller directory`;
    this.problems.push(wholeProblem(origin, "too-large", message));
  }

  #report(path: string, problem: FileProblem): void {
    if (this.unreadable.includes(path)) return;
    this.unreadable.push(path);
    this.problems.push(problem);
  }
}

/** A directory that was entered, with the first path that led to it. Its files are listed under this path. */
interface Visited {
  readonly path: string;
  readonly isEmpty: boolean;
}

interface Entered {
  readonly label: string;
  /** The directory's name in problems. */
  readonly origin: string;
  readonly level: "root" | "below";
}

interface AddedEntry {
  readonly directory: string;
  readonly label: string;
  readonly stats: BigIntStats;
}

const emptyText =
  "The directory holds no manifest, as if its volume were not mounted, so all that came from it stays: restore it, " +
  "or, to delete everything in it, leave one file with a document, such as a ConfigMap";

function unreadableProblem(label: string, code: string, name: string): FileProblem {
  if (code === "ENOENT") {
    return wholeProblem(label, "broken-link", "The link leads to nothing: restore what it leads to, or remove it");
  }
  const what = isManifest(name) ? "The file cannot be read" : "What may be a directory cannot be looked at";
  return wholeProblem(label, "unreadable-file", `${what} (${code}): check its permissions`);
}

/** Returns the problem of an entry that has a manifest's name but is no file. */
export function noFileProblem(label: string, stats: BigIntStats): FileProblem {
  const what = `This is ${kindOf(stats)} and no file`;
  const text = `${what}, so what came from it before stays: put the file back, or remove it`;
  return wholeProblem(label, "unreadable-file", text);
}

function kindOf(stats: BigIntStats): string {
  if (stats.isFIFO()) return "a named pipe";
  if (stats.isSocket()) return "a socket";
  return stats.isDirectory() ? "a directory" : "a device";
}

function isManifest(name: string): boolean {
  return /\.(?:ya?ml|json)$/i.test(name);
}

function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

export interface FileProblem extends SourceProblem {
  readonly code: FindingCode;
  /** The file's name in messages. */
  readonly file: string;
  /** Undefined for a problem of the whole file. */
  readonly at?: Position;
  /** The message without the place. */
  readonly text: string;
}

export function wholeProblem(file: string, code: FindingCode, message: string): FileProblem {
  return { origin: file, message, code, file, text: message };
}
