/**
 * Lists the manifests below directories, without reading them: `*.yaml`, `*.yml` and `*.json`, recursively. Names that
 * begin with a dot are skipped. Links are followed, because a mounted ConfigMap is made of them (`web.yaml` leads to
 * `..data/web.yaml`, and `..data` to the newest version); a directory that is reached twice is read once.
 */

import type { BigIntStats, Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../lib/errors.ts";
import { compareBytes } from "../lib/order.ts";
import type { SourceProblem } from "../model/source.ts";

export interface ListedFile {
  readonly path: string;
  /** How people call it: relative to its directory, which comes first when there are several. */
  readonly label: string;
  readonly sizeBytes: number;
  /** Changes whenever the bytes may have changed. */
  readonly signature: string;
}

export interface Listing {
  /** In byte order of their paths, directory by directory. */
  readonly files: readonly ListedFile[];
  /** Directories to watch: path to an identity that changes when another directory takes its place. */
  readonly directories: ReadonlyMap<string, string>;
  /** Paths that could not be looked at; what was known of them and below them still counts. */
  readonly unreadable: readonly string[];
  readonly problems: readonly SourceProblem[];
}

// A directory given by mistake, such as /, must not be walked for minutes.
const maxFiles = 100_000;
// Enough to keep a disk busy, few enough to leave the pool of file operations to others.
const parallelStats = 16;

/** Lists the files below directories. It never throws: what cannot be read is told as a problem. */
export async function listFiles(directories: readonly string[]): Promise<Listing> {
  const walk = new Walk();
  for (const directory of directories) {
    await walk.enter(directory, directories.length > 1 ? directory : "", "root");
  }
  return walk;
}

/** Tells versions of a file apart: size, times in nanoseconds, and which file it is. */
export function signatureOf({ size, mtimeNs, ctimeNs, ino, dev }: BigIntStats): string {
  return [size, mtimeNs, ctimeNs, ino, dev].join(":");
}

class Walk implements Listing {
  readonly files: ListedFile[] = [];
  readonly directories = new Map<string, string>();
  readonly unreadable: string[] = [];
  readonly problems: SourceProblem[] = [];
  readonly #visited = new Set<string>();

  async enter(path: string, label: string, level: "root" | "below"): Promise<void> {
    try {
      const identity = identityOf(await stat(path, { bigint: true }));
      if (this.#visited.has(identity)) return;
      this.#visited.add(identity);
      const entries = await readdir(path, { withFileTypes: true });
      this.directories.set(path, identity);
      await this.#take(entries, path, label);
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      // A directory may go while its parent is read; a root that is gone keeps what was known of it.
      if (code === "ENOENT" && level === "below") return;
      this.#report(
        path,
        label || path,
        `The directory cannot be read (${code}): restore it, or correct its permissions`,
      );
    }
  }

  async #take(entries: readonly Dirent[], directory: string, label: string): Promise<void> {
    const sorted = entries.filter(({ name }) => !name.startsWith(".")).toSorted((a, b) => compareBytes(a.name, b.name));
    for (let at = 0; at < sorted.length; at += parallelStats) {
      const part = sorted.slice(at, at + parallelStats);
      const seen = await Promise.all(part.map((entry) => this.#look(entry, join(directory, entry.name), label)));
      for (const [position, stats] of seen.entries()) {
        const entry = part[position];
        if (entry !== undefined && stats !== undefined) await this.#add(entry.name, { directory, label, stats });
      }
    }
  }

  /** What an entry is, seen through links; undefined for one that is of no interest or gone. */
  async #look(entry: Dirent, path: string, label: string): Promise<BigIntStats | undefined> {
    if (!entry.isDirectory() && !entry.isSymbolicLink() && !isManifest(entry.name)) return undefined;
    try {
      return await stat(path, { bigint: true });
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      // A plain file that is gone was removed a moment ago. A link stays and says that something should be there.
      const isGone = code === "ENOENT" && !entry.isSymbolicLink();
      if (!isGone && isManifest(entry.name)) this.#report(path, join(label, entry.name), unreadableText(code));
      return undefined;
    }
  }

  async #add(name: string, { directory, label, stats }: AddedEntry): Promise<void> {
    const path = join(directory, name);
    if (stats.isDirectory()) return this.enter(path, join(label, name), "below");
    if (!stats.isFile() || !isManifest(name)) return;
    if (this.files.length === maxFiles) {
      this.#report(directory, label || directory, `There are more than ${maxFiles} files: give a smaller directory`);
    }
    if (this.files.length >= maxFiles) return;
    const signature = signatureOf(stats);
    this.files.push({ path, label: join(label, name), sizeBytes: Number(stats.size), signature });
  }

  #report(path: string, origin: string, message: string): void {
    if (this.unreadable.includes(path)) return;
    this.unreadable.push(path);
    this.problems.push({ origin, message });
  }
}

interface AddedEntry {
  readonly directory: string;
  readonly label: string;
  readonly stats: BigIntStats;
}

function unreadableText(code: string): string {
  return code === "ENOENT"
    ? "The link leads to nothing: restore what it leads to, or remove it"
    : `The file cannot be read (${code}): check its permissions`;
}

function isManifest(name: string): boolean {
  return /\.(?:ya?ml|json)$/.test(name);
}

function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}
