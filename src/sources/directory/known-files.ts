/**
 * Knows for each file which version was read, and whether that version counts in full. From a version that counts in
 * full, davit takes over everything. From any other version, davit takes over only changes that make machines wait: the
 * file may be half written, and its first half may be a valid manifest.
 *
 * A version is at rest by these rules:
 *
 * - A version that is already 2 s old when davit first sees it is at rest: somebody moved a finished file here. So is
 *   another file than before (inode) whose ctime is later than its mtime: it was renamed after its last write.
 * - Any other version must have an mtime that is 2 s old, and stay unchanged for 2 s of the monotonic clock. Then davit
 *   reads the bytes once more. If they are the same, the version is at rest.
 * - If an object is missing in a file that was written in place, and no other file has it, these times are 10 s.
 * - A file that is gone is at rest after 2 s, because its writer may be about to replace it.
 *
 * All changed files count in full together, when the last one is at rest. So no change counts before an older one. A
 * file that never rests delays the others for 10 s; no machine installs meanwhile (`SourceView.isChanging`).
 *
 * This file does no I/O and reads no clock.
 */

import { compareBytes } from "../../lib/order.ts";
import { definitionKey, type LookedFile } from "./holdings.ts";
import { type DirectoryListing, isSameFile, type ListedFile, wasRenamed } from "./list-files.ts";
import type { ParsedFile, ParseRequest } from "./parse-worker.ts";
import type { Definition, FileContent } from "./read-file.ts";

/** The wall clock and the monotonic clock at the same moment. */
export interface ClockReading {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

// The time between two listings while a file changes. davit reads the file when the next listing finds it unchanged.
export const pauseMs = 100;
const settleMs = 2_000;
const deletionSettleMs = 10_000;
// How long files at rest wait for others.
const maxOverdueMs = 10_000;
// If the wall clock moves by more than this against the monotonic clock, someone set it, and no file's age is known.
const maxClockDriftMs = 1_000;

/** A file in the last listing. */
interface Sighting {
  readonly file: ListedFile;
  /** Monotonic time of the first listing that had this version. */
  readonly sinceMs: number;
  /** The file's age at that time, by the wall clock; 0 if unknown. */
  readonly ageMs: number;
  readonly isSeenTwice: boolean;
}

/** The last version of a file that counted in full. */
interface SettledVersion {
  readonly definitions: readonly Definition[];
  readonly file: ListedFile;
}

/** The newest version that davit has read of a file. */
interface KnownFile {
  /** Empty if the file could not be read: then davit tries again. */
  readonly signature: string;
  readonly digest: string;
  readonly read: FileContent;
  /** The last version that counted in full: this one if `isSettled`, unless it has only problems. */
  readonly settled: SettledVersion | undefined;
  readonly isSettled: boolean;
  /** False if the bytes were read before the file was at rest, so some may be missing. */
  readonly isVerified: boolean;
  /** The objects of `settled` that this version lacks. */
  readonly missing: readonly string[];
  /** Monotonic time of the first listing without the file. */
  readonly goneMs?: number;
}

type Resting = Pick<KnownFile, "goneMs" | "missing" | "settled">;

const nothing: FileContent = { definitions: [], problems: [], ignored: [] };

export class KnownFiles {
  #files = new Map<string, KnownFile>();
  #sightings: ReadonlyMap<string, Sighting> = new Map();
  /** The signatures of the versions that are being read, by path. */
  readonly #requested = new Map<string, string>();
  /** Files that changed while they were read, so that what was read does not count. */
  readonly #restless = new Set<string>();
  #clockOffsetMs: number | undefined;

  /** Takes in a listing. Files at or below an unreadable path stay as they were known. */
  see({ files, unreadable }: DirectoryListing, { nowMs, monotonicMs }: ClockReading): void {
    const offsetMs = nowMs - monotonicMs;
    const isSteady = Math.abs(offsetMs - (this.#clockOffsetMs ?? offsetMs)) < maxClockDriftMs;
    this.#clockOffsetMs = offsetMs;
    const before = this.#sightings;
    const sightings = files.map((file): [string, Sighting] => {
      const last = before.get(file.path);
      if (last?.file.signature === file.signature) return [file.path, { ...last, isSeenTwice: true }];
      const ageMs = isSteady ? nowMs - file.modifiedMs : 0;
      return [file.path, { file, sinceMs: monotonicMs, ageMs, isSeenTwice: false }];
    });
    const seen = new Map(sightings);
    const isLost = (path: string) => unreadable.some((lost) => path === lost || path.startsWith(`${lost}/`));
    for (const [path, sighting] of before) if (!seen.has(path) && isLost(path)) seen.set(path, sighting);
    this.#sightings = seen;
    for (const [path, known] of this.#files) if (!seen.has(path)) this.#lose(path, known, monotonicMs);
    for (const path of this.#restless) if (!seen.has(path)) this.#restless.delete(path);
  }

  /** True while `take` has not received the results for all files of `due`. */
  get isReading(): boolean {
    return this.#requested.size > 0;
  }

  /** True while a file is read for the first time. A file that changes during each read counts as read. */
  get isReadingNew(): boolean {
    return [...this.#requested.keys()].some((path) => !this.#files.has(path) && !this.#restless.has(path));
  }

  /**
   * Returns the files to read now: changed files whose new version was in two listings, and rested files whose bytes
   * must be read once more.
   */
  due(moment: ClockReading): readonly ParseRequest[] {
    const requests = [...this.#sightings].flatMap(([path, { file, isSeenTwice }]) => {
      const known = this.#files.get(path);
      if (this.#requested.get(path) === file.signature) return [];
      if (known?.signature !== file.signature) return isSeenTwice ? [file] : [];
      const isDue = !known.isSettled && !known.isVerified && this.#leftMs(path, known, moment) <= 0;
      return isDue ? [{ ...file, knownDigest: known.digest }] : [];
    });
    for (const { path, signature } of requests) this.#requested.set(path, signature);
    return requests;
  }

  /**
   * Takes in a parsed file.
   * @returns undefined if nothing new is known: the bytes are unchanged, or do not belong to the listed version. In the
   *   second case the next look finds the newer version and reads it.
   */
  take(request: ParseRequest, parsed: ParsedFile, moment: ClockReading): KnownVersion | undefined {
    const { path, knownDigest } = request;
    const { signature, digest, isUnchanged, ...read } = parsed;
    if (this.#requested.get(path) === request.signature) this.#requested.delete(path);
    const isListed = this.#sightings.get(path)?.file.signature === request.signature;
    if (!isListed || (signature !== undefined && signature !== request.signature)) {
      this.#restless.add(path);
      return undefined;
    }
    this.#restless.delete(path);
    const before = this.#files.get(path);
    if (isUnchanged === true && before !== undefined) {
      this.#files.set(path, { ...before, isVerified: true });
      return undefined;
    }
    // The bytes changed but the signature did not: the file was written within one tick of the file system's clock.
    if (knownDigest !== undefined) this.#beginAnew(path, moment);
    const settled = before?.settled;
    const missing = missingIn(read, settled);
    const known = { signature: signature ?? "", digest, read, settled, missing, isSettled: false };
    this.#files.set(path, { ...known, isVerified: false });
    const leftMs = this.#leftMs(path, known, moment);
    const isVerified = signature === undefined || leftMs <= 0;
    this.#files.set(path, { ...known, isVerified });
    return { before: before?.read, lacksObjects: leftMs > settleMs };
  }

  /**
   * Makes files at rest count in full if all are at rest, or if one has waited too long for others.
   * @returns the labels of the files that the others did not wait for.
   */
  settle(moment: ClockReading): readonly string[] {
    const open = [...this.#files].filter(([, { isSettled }]) => !isSettled);
    const left = new Map(open.map(([path, known]) => [path, this.#leftMs(path, known, moment)]));
    const isRested = ([path, { isVerified }]: readonly [string, KnownFile]) =>
      (isVerified || !this.#sightings.has(path)) && (left.get(path) ?? 0) <= 0;
    const rested = open.filter(isRested);
    const isWhole = rested.length === open.length && !this.isReading && !this.#isChanging();
    if (!isWhole && [...left.values()].every((leftMs) => leftMs >= -maxOverdueMs)) return [];
    for (const [path, known] of rested) {
      const file = this.#sightings.get(path)?.file;
      if (file === undefined && known.goneMs !== undefined) this.#files.delete(path);
      else this.#files.set(path, settled(known, file));
    }
    return open.filter((each) => !isRested(each)).map(([path]) => this.#sightings.get(path)?.file.label ?? path);
  }

  /** Every known file, in byte order of the paths. */
  get looked(): readonly LookedFile[] {
    const sorted = [...this.#files].toSorted(([a], [b]) => compareBytes(a, b));
    return sorted.map(([, { read, isSettled, settled }]) =>
      isSettled ? read : { ...read, before: settled?.definitions ?? [] },
    );
  }

  /** Returns how long to wait for the next look, unless a read ends first; undefined if every file counts in full. */
  waitMs(moment: ClockReading): number | undefined {
    if (this.#isChanging()) return pauseMs;
    const left = [...this.#files].flatMap(([path, known]) =>
      known.isSettled ? [] : [this.#leftMs(path, known, moment)],
    );
    if (left.length === 0 && !this.isReading) return undefined;
    const waits = left.filter((leftMs) => leftMs > 0);
    // The last file is at rest, and its bytes must be read once more.
    if (waits.length === 0 && !this.isReading) return pauseMs;
    return Math.ceil(waits.reduce((least, leftMs) => Math.min(least, Math.max(leftMs, pauseMs)), settleMs));
  }

  /**
   * True while a listed version is neither read nor being read. An unreadable file does not count: it may stay
   * unreadable.
   */
  #isChanging(): boolean {
    return [...this.#sightings].some(([path, { file }]) => {
      const signature = this.#files.get(path)?.signature;
      return ![signature, this.#requested.get(path)].includes(file.signature) && signature !== "";
    });
  }

  #lose(path: string, known: KnownFile, monotonicMs: number): void {
    if (known.goneMs !== undefined) return;
    const gone = { signature: "gone", read: nothing, isSettled: false, isVerified: false, goneMs: monotonicMs };
    this.#files.set(path, { ...known, ...gone });
  }

  /** Returns how long a file must still rest; zero or less if it is at rest. */
  #leftMs(path: string, known: Resting, { nowMs, monotonicMs }: ClockReading): number {
    if (known.goneMs !== undefined) return settleMs - (monotonicMs - known.goneMs);
    const sighting = this.#sightings.get(path);
    if (sighting === undefined) return settleMs;
    const { file, sinceMs, ageMs: firstAgeMs } = sighting;
    const isOther = known.settled === undefined || !isSameFile(file, known.settled.file);
    const restMs = this.#areGone(path, known.missing) ? deletionSettleMs : settleMs;
    const isWhole = isOther ? firstAgeMs >= settleMs || wasRenamed(file) : firstAgeMs >= restMs;
    if (isWhole) return sinceMs - monotonicMs;
    const restedMs = monotonicMs - sinceMs;
    const ageMs = nowMs - file.modifiedMs;
    // An mtime in the future shows no age: it comes from another computer's clock, or from before this clock was set.
    return restMs - (ageMs < 0 ? restedMs : Math.min(restedMs, ageMs));
  }

  /** True if another file has none of one of these objects. An object that moved to another file is not gone. */
  #areGone(path: string, missing: readonly string[]): boolean {
    if (missing.length === 0) return false;
    const others = [...this.#files].filter(([other]) => other !== path).flatMap(([, { read }]) => read.definitions);
    const found = new Set(others.map(definitionKey));
    return missing.some((key) => !found.has(key));
  }

  #beginAnew(path: string, { monotonicMs }: ClockReading): void {
    const sighting = this.#sightings.get(path);
    if (sighting === undefined) return;
    this.#sightings = new Map(this.#sightings).set(path, { ...sighting, sinceMs: monotonicMs, ageMs: 0 });
  }
}

/** What `take` learned from a version. */
interface KnownVersion {
  /** The content of the version that was read before; undefined for a new file. */
  readonly before: FileContent | undefined;
  /** True if the version must rest for longer, because objects are missing. */
  readonly lacksObjects: boolean;
}

/** Returns the objects of the settled version that a version lacks; none for a version that has only problems. */
function missingIn({ definitions, problems }: FileContent, before: SettledVersion | undefined): readonly string[] {
  if (before === undefined || (definitions.length === 0 && problems.length > 0)) return [];
  const found = new Set(definitions.map(definitionKey));
  return before.definitions.map(definitionKey).filter((key) => !found.has(key));
}

/** Marks a version as counting in full. If it has only problems, the previous version's definitions stay. */
function settled(known: KnownFile, file: ListedFile | undefined): KnownFile {
  const { definitions, problems } = known.read;
  const isBroken = definitions.length === 0 && problems.length > 0 && known.settled !== undefined;
  const own = isBroken || file === undefined ? known.settled : { definitions, file };
  return { ...known, settled: own, isSettled: true };
}
