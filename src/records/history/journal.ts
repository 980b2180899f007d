/**
 * Keeps the recorded requests on disk, so that they survive a restart. The journal is a directory of segments, which
 * together have a limited size: the oldest segment is dropped. Requests are gathered and written about once a second.
 *
 * Nothing waits for this disk. While the disk fails, requests wait in memory up to a limit, and davit tries again. The
 * journal is not synced: a power cut may lose what the system has not written yet, usually about half a minute.
 */

import { join } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { diskSentence } from "../../lib/files/disk-sentence.ts";
import { type Files, ignoreMissing } from "../../lib/files/files.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import type { SeenRequest } from "./request.ts";
import { decodeLine, journalLine } from "./request-text.ts";

export interface JournalLimits {
  /** All segments together, the one that was set aside included. */
  readonly maxBytes: number;
  readonly maxSegmentBytes: number;
  /** Memory for requests that wait for the disk. Beyond it, the journal lacks the newest ones. */
  readonly maxWaitingBytes: number;
}

interface JournalOptions {
  readonly files: Files;
  /** Made if it is missing. Only this process may use it. */
  readonly directory: string;
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs" | "sleep">;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "historyWritable">;
  readonly limits?: Partial<JournalLimits>;
}

const defaults: JournalLimits = {
  maxBytes: 64 * 1024 * 1024,
  maxSegmentBytes: 8 * 1024 * 1024,
  // Enough for a whole queue of the history, which a stop or a query moves at once.
  maxWaitingBytes: 16 * 1024 * 1024,
};

/** Begins each segment. Another davit may use another form. */
const heading = "davit history 1\n";
const segmentName = /^\d{16}\.history$/;
const setAsideName = "unreadable.history";

const gatherMs = 1_000;
/** A failing disk is tried less often. On a full disk, the logs of the store and the ledger need the room more. */
const retryMs = 10_000;
/** The bytes of one write. */
const chunkBytes = 256 * 1024;
/** How many lines are read in one slice, which takes less than a millisecond, and the rest after it. */
const sliceLines = 64;
const restMs = 2;

interface Segment {
  readonly name: string;
  bytes: number;
}

export class Journal {
  readonly #options: JournalOptions;
  readonly #limits: JournalLimits;
  readonly #stopping = new AbortController();
  readonly #hurrying = new AbortController();
  /** The oldest first. New requests go to the last one. */
  readonly #segments: Segment[] = [];
  #lastNumber = 0;
  #setAsideBytes = 0;
  /** True if the last segment may end in the middle of a line. */
  #isTorn = false;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #missing = 0;
  #isFailing = false;
  #writing: Promise<void> | undefined;
  /** Resolves when the names of the segments are known. */
  #listed: Promise<void> | undefined;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#limits = { ...defaults, ...options.limits };
    options.metrics.historyWritable.set(1);
  }

  /**
   * Reads the requests of earlier runs, the oldest first, in slices with rests. A full journal takes about ten seconds.
   * Call it once, before the first `add`. It never throws: what cannot be read is logged and left out.
   * @param add gets each request, with its start time by the monotonic clock.
   */
  async load(add: (seen: SeenRequest) => void): Promise<void> {
    try {
      await this.#list();
    } catch (error) {
      this.#fail(error);
      return;
    }
    for (const segment of [...this.#segments]) await this.#load(segment, add);
  }

  /** Makes `load` continue without rests, because a query waits for it. Idempotent. */
  hurry(): void {
    this.#hurrying.abort();
  }

  /**
   * Adds a request to those that are written soon; never waits.
   * @param text the request, as `encodeRequest` returns it.
   */
  add(text: string, startedMs: number): void {
    const line = journalLine(text, startedMs + this.#offsetMs);
    if (this.#waitingBytes + line.length > this.#limits.maxWaitingBytes) {
      this.#missing++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    this.#writing ??= this.#write();
  }

  /** Writes the waiting requests, and ends. A failing disk is tried once more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#writing;
    await this.#writeWaiting();
  }

  get #offsetMs(): number {
    const { clock } = this.#options;
    return clock.nowMs() - clock.monotonicMs();
  }

  async #write(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (this.#waiting.length > 0 && !signal.aborted) {
      await clock.sleep(this.#isFailing ? retryMs : gatherMs, signal);
      await this.#writeWaiting();
    }
    this.#writing = undefined;
  }

  async #writeWaiting(): Promise<void> {
    try {
      await this.#list();
      while (this.#waiting.length > 0) await this.#writeChunk();
      this.#heal();
    } catch (error) {
      this.#isTorn = true;
      this.#fail(error);
    }
  }

  async #writeChunk(): Promise<void> {
    const { files, directory } = this.#options;
    let count = 0;
    let bytes = 0;
    for (; count < this.#waiting.length && bytes < chunkBytes; count++) bytes += this.#waiting[count]?.length ?? 0;
    const segment = await this.#segmentFor(bytes);
    const path = join(directory, segment.name);
    const text = (segment.bytes === 0 ? heading : "") + this.#waiting.slice(0, count).join("");
    const file = await files.openAppend(path);
    try {
      if (this.#isTorn) await file.truncate(segment.bytes);
      this.#isTorn = true;
      await file.append(Buffer.from(text, "latin1"));
      this.#isTorn = false;
    } finally {
      await file.close();
    }
    segment.bytes += text.length;
    this.#waiting.splice(0, count);
    this.#waitingBytes -= bytes;
  }

  /** Returns the last segment, or a new one if the last one has no room. Drops the oldest segments. */
  async #segmentFor(bytes: number): Promise<Segment> {
    const { files, directory } = this.#options;
    await files.makeDirectory(directory);
    let last = this.#segments.at(-1);
    // A torn segment is cut before anything else is written, or its last requests would be there twice.
    const isFull = last !== undefined && !this.#isTorn && last.bytes + bytes > this.#limits.maxSegmentBytes;
    if (last === undefined || isFull || (await this.#isShort(last))) {
      last = { name: `${String(++this.#lastNumber).padStart(16, "0")}.history`, bytes: 0 };
      this.#segments.push(last);
    }
    const total = () => this.#segments.reduce((sum, segment) => sum + segment.bytes, this.#setAsideBytes + bytes);
    for (let oldest = this.#segments[0]; oldest !== last && oldest !== undefined; oldest = this.#segments[0]) {
      if (total() + heading.length <= this.#limits.maxBytes) break;
      await files.remove(join(directory, oldest.name)).catch(ignoreMissing);
      this.#segments.shift();
    }
    return last;
  }

  /** True if a segment lacks bytes that were written, such as after its directory was replaced. */
  async #isShort({ name, bytes }: Segment): Promise<boolean> {
    if (bytes === 0) return false;
    const { files, directory } = this.#options;
    return !(await files.list(directory)).includes(name) || (await files.sizeOf(join(directory, name))) < bytes;
  }

  /** Finds the segments, once. A failed search is repeated by the next write. @throws a system error. */
  async #list(): Promise<void> {
    this.#listed ??= this.#find();
    try {
      await this.#listed;
    } catch (error) {
      this.#listed = undefined;
      throw error;
    }
  }

  async #find(): Promise<void> {
    const { files, directory } = this.#options;
    const names = await files.list(directory);
    const found: Segment[] = [];
    for (const name of names.filter((each) => segmentName.test(each))) {
      found.push({ name, bytes: await files.sizeOf(join(directory, name)) });
    }
    if (names.includes(setAsideName)) this.#setAsideBytes = await files.sizeOf(join(directory, setAsideName));
    this.#lastNumber = Number.parseInt(found.at(-1)?.name ?? "0", 10);
    this.#segments.push(...found);
  }

  /** Reads a segment. If it cannot be read, sets it aside. */
  async #load(segment: Segment, add: (seen: SeenRequest) => void): Promise<void> {
    const { log } = this.#options;
    try {
      const { damaged, wholeBytes } = await this.#read(segment, add);
      if (damaged > 0) {
        log.warn({ segment: segment.name, damaged }, "history: damaged lines of the journal are left out");
      }
      // A kill in the middle of a write leaves a part of a line.
      if (wholeBytes === segment.bytes || segment !== this.#segments.at(-1)) return;
      segment.bytes = wholeBytes;
      this.#isTorn = true;
    } catch (error) {
      await this.#setAside(segment, error);
    }
  }

  async #rest(): Promise<void> {
    const { signal } = this.#hurrying;
    await (signal.aborted ? nextTurn() : this.#options.clock.sleep(restMs, signal));
  }

  /** @throws a system error, or an error for a file that is no segment. */
  async #read({ name }: Segment, add: (seen: SeenRequest) => void) {
    const { files, directory } = this.#options;
    const lines = new SegmentLines();
    const slices = new Slices(sliceLines);
    let damaged = 0;
    for await (const piece of files.readPieces(join(directory, name))) {
      for (const line of lines.push(piece)) {
        const seen = decodeLine(line, this.#offsetMs);
        if (seen === undefined) damaged++;
        // A time after now is of a clock that was set back.
        else add({ ...seen, startedMs: Math.min(seen.startedMs, this.#options.clock.monotonicMs()) });
        if (slices.isOver(1)) await this.#rest();
      }
    }
    lines.end();
    return { damaged, wholeBytes: lines.wholeBytes };
  }

  async #setAside(segment: Segment, error: unknown): Promise<void> {
    const { files, directory, log } = this.#options;
    const path = join(directory, segment.name);
    const why = diskSentence(error) ?? "it is not a segment of this version of davit";
    this.#segments.splice(this.#segments.indexOf(segment), 1);
    try {
      await files.rename(path, join(directory, setAsideName));
      this.#setAsideBytes = segment.bytes;
      log.warn(
        { segment: path, setAside: setAsideName },
        `history: a segment of the journal cannot be read, set aside: ${why}`,
      );
    } catch {
      log.warn({ segment: path }, `history: a segment of the journal cannot be read, left out: ${why}`);
    }
  }

  #fail(error: unknown): void {
    const { log, directory, metrics } = this.#options;
    metrics.historyWritable.set(0);
    if (this.#isFailing) return;
    this.#isFailing = true;
    const why = diskSentence(error) ?? "the disk fails";
    log.warn({ directory }, `history: the journal is not written, the history is only in memory: ${why}`);
  }

  #heal(): void {
    if (!this.#isFailing) return;
    const { log, directory, metrics } = this.#options;
    this.#isFailing = false;
    metrics.historyWritable.set(1);
    log.info({ directory, missing: this.#missing }, "history: the journal is written again");
    this.#missing = 0;
  }
}

/** Splits a segment into lines after its heading, and counts the bytes of whole lines. */
class SegmentLines {
  #rest = "";
  #hasHeading = false;
  wholeBytes = 0;

  /** Returns the lines that a piece completes, without their newlines. */
  push(piece: Buffer): readonly string[] {
    const lines = (this.#rest + piece.toString("latin1")).split("\n");
    this.#rest = lines.pop() ?? "";
    this.wholeBytes += lines.reduce((sum, line) => sum + line.length + 1, 0);
    if (this.#hasHeading || lines.length === 0) return lines;
    if (`${lines.shift()}\n` !== heading) throw notOurs();
    this.#hasHeading = true;
    return lines;
  }

  /** @throws if the segment is another file. An empty one, or one with a part of the heading, was cut by a kill. */
  end(): void {
    if (!this.#hasHeading && !heading.startsWith(this.#rest)) throw notOurs();
  }
}

function notOurs(): Error {
  return new Error("no segment of this davit");
}
