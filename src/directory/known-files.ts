/**
 * The files that the directory source knows: which version of each was read, and whether that version counts in full
 * yet. A file that is rewritten in place is half written for a while, and its first half may be a valid manifest.
 *
 * - A version that is older than 2 s when it is first seen counts at once: a finished file was moved in.
 * - Any other counts in full once its mtime is 2 s old and nothing about the file changed for 2 s, by a clock that
 *   never steps. Then its bytes are read once more, and must be the same.
 * - If the file became smaller or lacks its final newline, both times are 10 s.
 * - A file that is gone counts as changed for 2 s: it may be about to be replaced.
 *
 * It does no I/O and reads no clock.
 */

import { compareBytes } from "../lib/order.ts";
import type { LookedFile } from "./holdings.ts";
import { type DirectoryListing, isSameFile, type ListedFile } from "./list-files.ts";
import type { ParsedFile, ParseRequest } from "./parse-worker.ts";
import type { Definition, FileContent } from "./read-file.ts";

/** Both clocks at one time. */
export interface ClockReading {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

// Writers need a moment: a file that changed at one listing is read when the next listing finds it unchanged.
export const pauseMs = 100;
const settleMs = 2_000;
const unfinishedSettleMs = 10_000;
// Files that were written or read together count together, unless that delays one of them for long.
const togetherMs = 500;
const maxOverdueMs = 10_000;
// A larger difference between the clocks' paces means that someone set the wall clock: it then shows no file's age.
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

/** A version that counted in full. */
interface SettledVersion {
  readonly definitions: readonly Definition[];
  readonly file: ListedFile;
}

/** A file's newest version. */
interface KnownFile {
  /** Empty for a file that could not be read, which is tried again. */
  readonly signature: string;
  readonly digest: string;
  readonly read: FileContent;
  /** The last version that counted in full; this version, if `isSettled`. */
  readonly settled: SettledVersion | undefined;
  readonly isSettled: boolean;
  /** False while its bytes were read so early that some may be missing. */
  readonly isVerified: boolean;
  /** Why it must be at rest for longer than others. */
  readonly unfinished?: Unfinished | undefined;
  /** Monotonic time at which it was found to be gone. */
  readonly goneMs?: number;
}

type Resting = Pick<KnownFile, "goneMs" | "unfinished">;

export type Unfinished = "shrank" | "unended";

const nothing: FileContent = { definitions: [], problems: [], ignored: [] };

export class KnownFiles {
  #files = new Map<string, KnownFile>();
  #sightings: ReadonlyMap<string, Sighting> = new Map();
  /** Versions that are being read, by their paths. */
  readonly #requested = new Map<string, string>();
  #clockOffsetMs: number | undefined;

  /** Takes in a listing. Everything known below an unreadable place stays. */
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
  }

  /** True while `take` has not had all results of `due`. */
  get isReading(): boolean {
    return this.#requested.size > 0;
  }

  /** The files to read now: changed files at rest, and files that are about to count in full. */
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
   * @returns undefined where nothing new is known: the bytes are unchanged, or belong to another version than the
   *   listed one. The next look sees that version, too, and reads it at rest.
   */
  take(request: ParseRequest, parsed: ParsedFile, moment: ClockReading): KnownVersion | undefined {
    const { path, knownDigest } = request;
    const { signature, digest, isUnchanged, ...read } = parsed;
    if (this.#requested.get(path) === request.signature) this.#requested.delete(path);
    const isListed = this.#sightings.get(path)?.file.signature === request.signature;
    if (!isListed || (signature !== undefined && signature !== request.signature)) return undefined;
    const before = this.#files.get(path);
    if (isUnchanged === true && before !== undefined) {
      this.#files.set(path, { ...before, isVerified: true });
      return undefined;
    }
    // Other bytes under the same times: a write within one tick of the file system's clock.
    if (knownDigest !== undefined) this.#beginAnew(path, moment);
    const unfinished = this.#unfinished(request, read, before?.settled);
    const known = { signature: signature ?? "", digest, read, settled: before?.settled, isSettled: false, unfinished };
    const isVerified = signature === undefined || this.#leftMs(path, { unfinished }, moment) <= 0;
    this.#files.set(path, { ...known, isVerified });
    return { before: before?.read, unfinished: isVerified ? undefined : unfinished };
  }

  /** Lets rested files count in full, as soon as files written or read with them have rested, too. */
  settle(moment: ClockReading): void {
    const rested: [path: string, known: KnownFile][] = [];
    let isNear = this.isReading;
    let isOverdue = false;
    for (const [path, known] of this.#files) {
      if (known.isSettled) continue;
      const leftMs = this.#leftMs(path, known, moment);
      if (known.isVerified && leftMs <= 0) rested.push([path, known]);
      isNear ||= leftMs > 0 && leftMs <= togetherMs;
      isOverdue ||= leftMs < -maxOverdueMs;
    }
    if (isNear && !isOverdue) return;
    for (const [path, known] of rested) this.#files.set(path, settled(known, this.#sightings.get(path)?.file));
  }

  /** Every file, in byte order of its path. */
  get looked(): readonly LookedFile[] {
    const sorted = [...this.#files].toSorted(([a], [b]) => compareBytes(a, b));
    return sorted.map(([, { read, isSettled, settled }]) =>
      isSettled ? read : { ...read, before: settled?.definitions ?? [] },
    );
  }

  /** Milliseconds until there is work, unless an answer comes first; undefined when every file counts. */
  waitMs(moment: ClockReading): number | undefined {
    if (this.#isChanging()) return pauseMs;
    const left = [...this.#files].flatMap(([path, known]) =>
      known.isSettled ? [] : [this.#leftMs(path, known, moment)],
    );
    if (left.length === 0 && !this.isReading) return undefined;
    // While files are being read, rested files wait for the answers.
    const waits = this.isReading ? left.filter((leftMs) => leftMs > 0) : left;
    return Math.ceil(waits.reduce((least, leftMs) => Math.min(least, Math.max(leftMs, pauseMs)), settleMs));
  }

  /** True while a listed version was not read. An unreadable version changes nothing, and is retried now and then. */
  #isChanging(): boolean {
    return [...this.#sightings].some(([path, { file }]) => {
      const signature = this.#files.get(path)?.signature;
      return ![signature, this.#requested.get(path)].includes(file.signature) && signature !== "";
    });
  }

  #lose(path: string, known: KnownFile, monotonicMs: number): void {
    const goneMs = known.goneMs ?? monotonicMs;
    if (monotonicMs - goneMs >= settleMs) this.#files.delete(path);
    else
      this.#files.set(path, {
        ...known,
        signature: "gone",
        read: nothing,
        isSettled: false,
        isVerified: false,
        goneMs,
      });
  }

  /** How long a file must still rest; zero or less when it has rested. */
  #leftMs(path: string, { goneMs, unfinished }: Resting, { nowMs, monotonicMs }: ClockReading): number {
    if (goneMs !== undefined) return settleMs - (monotonicMs - goneMs);
    const sighting = this.#sightings.get(path);
    if (sighting === undefined) return settleMs;
    const restMs = unfinished === undefined ? settleMs : unfinishedSettleMs;
    if (sighting.ageMs >= restMs) return sighting.sinceMs - monotonicMs;
    const restedMs = monotonicMs - sighting.sinceMs;
    const ageMs = nowMs - sighting.file.modifiedMs;
    // A time in the future comes from another machine's clock, or from before the clock was set.
    return restMs - (ageMs < 0 ? restedMs : Math.min(restedMs, ageMs));
  }

  #beginAnew(path: string, { monotonicMs }: ClockReading): void {
    const sighting = this.#sightings.get(path);
    if (sighting === undefined) return;
    this.#sightings = new Map(this.#sightings).set(path, { ...sighting, sinceMs: monotonicMs, ageMs: 0 });
  }

  #unfinished(
    file: ListedFile,
    { advice = [] }: FileContent,
    settled: SettledVersion | undefined,
  ): Unfinished | undefined {
    if (advice.some(({ code }) => code === "unfinished-file")) return "unended";
    if (settled === undefined || file.sizeBytes >= settled.file.sizeBytes) return undefined;
    // A finished file that was moved here is another file.
    const isMovedIn = !isSameFile(file, settled.file) && (this.#sightings.get(file.path)?.ageMs ?? 0) >= settleMs;
    return isMovedIn ? undefined : "shrank";
  }
}

/** The result of reading a version. */
export interface KnownVersion {
  readonly before: FileContent | undefined;
  /** Set where the version counts later because of it. */
  readonly unfinished: Unfinished | undefined;
}

/** Marks a version as counting in full. A version with nothing but a problem keeps the previous definitions. */
function settled(known: KnownFile, file: ListedFile | undefined): KnownFile {
  const { definitions, problems } = known.read;
  const isBroken = definitions.length === 0 && problems.length > 0 && known.settled !== undefined;
  const own = isBroken || file === undefined ? known.settled : { definitions, file };
  return { ...known, settled: own, isSettled: true };
}
