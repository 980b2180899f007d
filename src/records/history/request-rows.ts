/**
 * Stores recorded requests: rows of 80 bytes in one block of memory, and strings that the rows share. The rows of one
 * machine or address form a ring: each row links to the next newer row, and the newest links to the oldest. So davit
 * finds and reuses the oldest row without a search, and recording a request allocates no object.
 *
 * A ring is in the order in which answers ended. This davit's own requests arrive in this order. Those of followers
 * come seconds late, so davit inserts them at their place.
 */

import { assert } from "../../lib/errors.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { LabelSets } from "./label-sets.ts";
import { SharedTexts } from "./shared-texts.ts";

/** A finished request, for the history. */
export interface SeenRequest {
  /** When the head of the request arrived, by the monotonic clock. */
  readonly startedMs: number;
  readonly durationMs: number;
  /** The client's address, as the socket reports it. */
  readonly address: string;
  /** The endpoint's name in metrics: `ipxe`, `ignition.sig`, `assets`. */
  readonly endpoint: string;
  /**
   * The path without its query; undefined if the endpoint alone identifies the content. Of a script that davit refused:
   * the path of the file that is missing.
   */
  readonly path: string | undefined;
  readonly isHead: boolean;
  readonly status: number;
  /** `namespace/name`. */
  readonly group: string | undefined;
  /** Bytes of the body that the network has accepted. */
  readonly sentBytes: number;
  /** The announced length of the body; undefined without one. */
  readonly ofBytes: number | undefined;
  /** True if the client disconnected before it had the whole answer. */
  readonly isCut: boolean;
  /** A number for the reason of the refusal, which the caller chooses: 1 to 31; 0 for none. */
  readonly refusal: number;
  /** The name of the follower that answered; undefined if this davit did. */
  readonly via: string | undefined;
  /** The number of the boot, as in `NumberedBoot`; 0 if none is known. */
  readonly boot: number;
}

/** A recorded request. */
export interface KeptRequest extends SeenRequest {
  /**
   * Start of the last repetition, if the same request was refused several times in a row. `durationMs`, `via` and
   * `boot` are those of the last one, too.
   */
  readonly lastStartedMs: number;
  readonly times: number;
  /** The reserved labels of the machine. */
  readonly labels: Labels;
}

/** The rows of one machine or address. */
export interface Ring {
  /** The row of the newest request; 0 for none. */
  newest: number;
  count: number;
}

export interface RequestRowsOptions {
  /** Limits the memory of all rows, without their strings. */
  readonly maxBytes: number;
  /** Limits the rows of one ring. A full ring reuses its oldest row. */
  readonly maxRowsOfRing: number;
}

const rowBytes = 80;
const rowFloats = 10;
const rowWords = 20;
// The positions of a request's values in its row: five floats of 8 bytes, then nine words of 4 bytes.
const float = { started: 0, lastStarted: 1, duration: 2, sent: 3, of: 4 } as const;
const word = {
  newer: 10,
  endpoint: 11,
  path: 12,
  group: 13,
  address: 14,
  labels: 15,
  marks: 16,
  times: 17,
  boot: 18,
} as const;
// The marks: 10 bits for the status, 2 for flags, 5 for the refusal, and 15 for the number of the follower's name.
const statusMask = 0x3ff;
const headMark = 1 << 10;
const cutMark = 1 << 11;
const refusalShift = 12;
const refusalMask = 0x1f;
const viaShift = 17;
const maxVia = 0x7fff;
const answerMask = (1 << viaShift) - 1;
/** Stands for the names of further followers, if there are more than the marks can number. */
const anotherFollower = "another follower";

export class RequestRows {
  readonly #maxRows: number;
  readonly #maxRowsOfRing: number;
  readonly #floats: Float64Array;
  readonly #words: Uint32Array;
  readonly texts = new SharedTexts();
  readonly #vias = new SharedTexts();
  readonly #anotherVia = this.#vias.take(anotherFollower, 0);
  readonly labelSets = new LabelSets();
  /** This row and all after it were never used. The system allocates their memory on first use. */
  #unused = 1;
  /** The first free row, which links to the next free row; 0 for none. */
  #free = 0;
  #count = 0;

  constructor({ maxBytes, maxRowsOfRing }: RequestRowsOptions) {
    this.#maxRows = Math.floor(maxBytes / rowBytes);
    this.#maxRowsOfRing = maxRowsOfRing;
    // Row 0 means no row.
    const memory = new ArrayBuffer((this.#maxRows + 1) * rowBytes);
    this.#floats = new Float64Array(memory);
    this.#words = new Uint32Array(memory);
  }

  /** Estimated memory of the recorded requests. */
  get sizeBytes(): number {
    return this.#count * rowBytes + this.texts.sizeBytes + this.#vias.sizeBytes + this.labelSets.sizeBytes;
  }

  /** False if a ring must be released before the next `append`. */
  get hasRoom(): boolean {
    return this.#count < this.#maxRows;
  }

  /**
   * Adds a request to a ring. If the ring is full, the oldest request makes room, which can be the added one.
   * @param labels the number of its label set; 0 for none. A new row counts as one more use of the set.
   */
  append(ring: Ring, seen: SeenRequest, labels: number): void {
    const before = ring.newest;
    if (before !== 0 && seen.startedMs + seen.durationMs < this.#endMs(before)) this.#insert(ring, seen, labels);
    else if (this.#repeats(before, seen, labels)) this.#countAgain(before, seen);
    else this.#write(this.#nextRow(ring), seen, { labels, before });
  }

  /** Frees all rows of a ring. */
  release(ring: Ring): void {
    if (ring.newest === 0) return;
    for (const row of this.#rowsOf(ring)) this.#releaseTexts(row);
    const oldest = this.#word(ring.newest, word.newer);
    this.#words[ring.newest * rowWords + word.newer] = this.#free;
    this.#free = oldest;
    this.#count -= ring.count;
    ring.newest = 0;
    ring.count = 0;
  }

  /** Returns the requests of a ring, the oldest first. */
  read(ring: Ring): readonly KeptRequest[] {
    return [...this.#rowsOf(ring)].map((row) => this.#read(row));
  }

  /** Returns the newest request of a ring; undefined if it has none. */
  newest({ newest }: Ring): KeptRequest | undefined {
    return newest === 0 ? undefined : this.#read(newest);
  }

  /** Returns the start times of a ring's requests, the oldest first. */
  startTimes(ring: Ring): readonly number[] {
    return [...this.#rowsOf(ring)].map((row) => this.#float(row, float.started));
  }

  *#rowsOf({ newest, count }: Ring): Generator<number> {
    let row = newest;
    for (let at = 0; at < count; at++) {
      row = this.#word(row, word.newer);
      yield row;
    }
  }

  /** Adds a request that is older than the newest one of the ring. */
  #insert(ring: Ring, seen: SeenRequest, labels: number): void {
    const before = this.#lastEndedUntil(ring, seen.startedMs + seen.durationMs);
    const after = this.#word(before === 0 ? ring.newest : before, word.newer);
    const isWithin = this.#word(after, word.times) > 1 && this.#float(after, float.started) < seen.startedMs;
    if (this.#repeats(after, seen, labels)) this.#countAgain(after, seen);
    else if (!isWithin && this.#repeats(before, seen, labels)) this.#countAgain(before, seen);
    else {
      const place = isWithin ? this.#splitBefore(ring, before, seen.startedMs) : before;
      const row = this.#rowAfter(ring, place);
      if (row !== 0) this.#write(row, seen, { labels, before: ring.newest });
    }
  }

  /** Returns the last row whose answer had ended by then; 0 if none had. The newest row had not. */
  #lastEndedUntil(ring: Ring, timeMs: number): number {
    let last = 0;
    for (const row of this.#rowsOf(ring)) {
      if (this.#endMs(row) > timeMs) break;
      last = row;
    }
    return last;
  }

  /**
   * Splits repeated refusals, between which another request came: the last one keeps the row after `before`, the
   * earlier ones get a row of their own. Only the times of the first and the last one are known.
   * @returns the row of the earlier ones; `before` if the ring is full, and they are its oldest.
   */
  #splitBefore(ring: Ring, before: number, timeMs: number): number {
    const last = this.#word(before === 0 ? ring.newest : before, word.newer);
    const times = this.#word(last, word.times);
    const all = this.#read(last);
    const labels = this.#word(last, word.labels);
    const earlierMs = times === 2 ? all.startedMs : Math.min(timeMs, all.lastStartedMs);
    this.#floats[last * rowFloats + float.started] = all.lastStartedMs;
    this.#words[last * rowWords + word.times] = 1;
    // The caller takes a row, too.
    const row = this.#count + 1 < this.#maxRows ? this.#rowAfter(ring, before) : 0;
    if (row === 0) return before;
    this.#write(row, all, { labels, before: last });
    this.#floats[row * rowFloats + float.lastStarted] = earlierMs;
    this.#words[row * rowWords + word.times] = times - 1;
    return row;
  }

  /**
   * Returns a row for a new request, linked after `before`, which is not the newest; 0 means as the oldest. A full ring
   * gives its oldest row.
   * @returns 0 if the ring is full, and the request would be its oldest.
   */
  #rowAfter(ring: Ring, before: number): number {
    const { newest } = ring;
    const isFull = ring.count >= this.#maxRowsOfRing;
    if (isFull && before === 0) return 0;
    const oldest = this.#word(newest, word.newer);
    const row = isFull ? oldest : this.#takeRow();
    if (isFull) this.#releaseTexts(row);
    else ring.count++;
    // The oldest row of a full ring stays where it is.
    if (isFull && before === oldest) return row;
    if (isFull) this.#words[newest * rowWords + word.newer] = this.#word(oldest, word.newer);
    const place = before === 0 ? newest : before;
    this.#words[row * rowWords + word.newer] = this.#word(place, word.newer);
    this.#words[place * rowWords + word.newer] = row;
    return row;
  }

  /** Returns a row for a new request, linked as the newest of the ring. */
  #nextRow(ring: Ring): number {
    const { newest, count } = ring;
    if (count >= this.#maxRowsOfRing) {
      ring.newest = this.#word(newest, word.newer);
      this.#releaseTexts(ring.newest);
      return ring.newest;
    }
    const row = this.#takeRow();
    const oldest = newest === 0 ? row : this.#word(newest, word.newer);
    this.#words[row * rowWords + word.newer] = oldest;
    if (newest !== 0) this.#words[newest * rowWords + word.newer] = row;
    ring.newest = row;
    ring.count = count + 1;
    return row;
  }

  #takeRow(): number {
    assert(this.hasRoom, "a row is there for each request");
    this.#count++;
    if (this.#free === 0) return this.#unused++;
    const row = this.#free;
    this.#free = this.#word(row, word.newer);
    return row;
  }

  /** @param besides.before the row of the machine's previous request, which usually has the same strings. */
  #write(
    row: number,
    seen: SeenRequest,
    { labels, before }: { readonly labels: number; readonly before: number },
  ): void {
    const { texts } = this;
    const floats = row * rowFloats;
    this.#floats[floats + float.started] = seen.startedMs;
    this.#floats[floats + float.lastStarted] = seen.startedMs;
    this.#floats[floats + float.duration] = seen.durationMs;
    this.#floats[floats + float.sent] = seen.sentBytes;
    this.#floats[floats + float.of] = seen.ofBytes ?? Number.NaN;
    const words = row * rowWords;
    this.#words[words + word.endpoint] = texts.take(seen.endpoint, this.#word(before, word.endpoint));
    this.#words[words + word.path] = texts.take(seen.path, 0);
    this.#words[words + word.group] = texts.take(seen.group, this.#word(before, word.group));
    this.#words[words + word.address] = texts.take(seen.address, this.#word(before, word.address));
    this.#words[words + word.labels] = this.labelSets.use(labels);
    this.#words[words + word.marks] = answerOf(seen) | (this.#via(seen.via) << viaShift);
    this.#words[words + word.times] = 1;
    this.#words[words + word.boot] = seen.boot;
  }

  /** True for a repeated refusal. Repeats share one row, so that they do not displace other requests. */
  #repeats(row: number, seen: SeenRequest, labels: number): boolean {
    if (row === 0 || seen.status < firstRefusal) return false;
    return (
      (this.#word(row, word.marks) & answerMask) === answerOf(seen) &&
      this.#word(row, word.labels) === labels &&
      this.#text(row, word.endpoint) === seen.endpoint &&
      this.#text(row, word.path) === seen.path &&
      this.#text(row, word.group) === seen.group &&
      this.#text(row, word.address) === seen.address
    );
  }

  #countAgain(row: number, seen: SeenRequest): void {
    const floats = row * rowFloats;
    const words = row * rowWords;
    this.#words[words + word.times] = this.#word(row, word.times) + 1;
    this.#floats[floats + float.started] = Math.min(this.#float(row, float.started), seen.startedMs);
    if (seen.startedMs < this.#float(row, float.lastStarted)) return;
    this.#floats[floats + float.lastStarted] = seen.startedMs;
    this.#floats[floats + float.duration] = seen.durationMs;
    const marks = this.#word(row, word.marks);
    this.#vias.release(marks >>> viaShift);
    this.#words[words + word.marks] = (marks & answerMask) | (this.#via(seen.via) << viaShift);
    this.#words[words + word.boot] = seen.boot;
  }

  /** Returns the number of a follower's name, and counts one use of it; 0 for undefined. */
  #via(name: string | undefined): number {
    const id = this.#vias.take(name, 0);
    if (id <= maxVia) return id;
    this.#vias.release(id);
    return this.#vias.take(anotherFollower, this.#anotherVia);
  }

  #endMs(row: number): number {
    return this.#float(row, float.lastStarted) + this.#float(row, float.duration);
  }

  #read(row: number): KeptRequest {
    const marks = this.#word(row, word.marks);
    const ofBytes = this.#float(row, float.of);
    return {
      startedMs: this.#float(row, float.started),
      lastStartedMs: this.#float(row, float.lastStarted),
      durationMs: this.#float(row, float.duration),
      sentBytes: this.#float(row, float.sent),
      ofBytes: Number.isNaN(ofBytes) ? undefined : ofBytes,
      endpoint: this.#text(row, word.endpoint) ?? "",
      path: this.#text(row, word.path),
      group: this.#text(row, word.group),
      address: this.#text(row, word.address) ?? "",
      labels: this.labelSets.get(this.#word(row, word.labels)),
      status: marks & statusMask,
      isHead: (marks & headMark) !== 0,
      isCut: (marks & cutMark) !== 0,
      refusal: (marks >> refusalShift) & refusalMask,
      via: this.#vias.get(marks >>> viaShift),
      times: this.#word(row, word.times),
      boot: this.#word(row, word.boot),
    };
  }

  #releaseTexts(row: number): void {
    // Written without a loop, because it runs for each request of a machine with a full ring.
    this.texts.release(this.#word(row, word.endpoint));
    this.texts.release(this.#word(row, word.path));
    this.texts.release(this.#word(row, word.group));
    this.texts.release(this.#word(row, word.address));
    this.labelSets.release(this.#word(row, word.labels));
    this.#vias.release(this.#word(row, word.marks) >>> viaShift);
  }

  #text(row: number, member: number): string | undefined {
    return this.texts.get(this.#word(row, member));
  }

  #word(row: number, member: number): number {
    return this.#words[row * rowWords + member] ?? 0;
  }

  #float(row: number, member: number): number {
    return this.#floats[row * rowFloats + member] ?? 0;
  }
}

/** The lowest status that is a refusal. */
const firstRefusal = 400;

/** The part of the marks that is the same for the same answer, whoever gave it. */
function answerOf({ status, isHead, isCut, refusal }: SeenRequest): number {
  return status | (isHead ? headMark : 0) | (isCut ? cutMark : 0) | (refusal << refusalShift);
}
