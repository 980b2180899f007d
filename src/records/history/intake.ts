/**
 * Queues requests until there is time to record them. Queueing is part of every answer, so it only copies a few numbers
 * and strings into preallocated memory. It does not parse or look up anything, and makes no garbage.
 *
 * Requests leave in the order of their arrival. If there are too many requests, or their strings need too much memory,
 * the oldest requests are dropped and counted.
 */

import { assert } from "../../lib/errors.ts";
import type { SeenRequest } from "./request-rows.ts";
import { TextRing } from "./text-ring.ts";

/** A request that this davit answered. */
export interface AnsweredRequest extends Omit<SeenRequest, "via"> {
  /** The machine's query as sent, without the `?`; undefined if the history does not use it. */
  readonly query: string | undefined;
}

/** Requests that the queue dropped. */
export interface LostRequests {
  readonly count: number;
  /** Start times of the first and the last one, by the monotonic clock. */
  readonly firstMs: number;
  readonly lastMs: number;
}

export interface IntakeLimits {
  readonly maxWaiting: number;
  /** Memory for waiting requests: first for their rows, the rest for their strings. */
  readonly maxWaitingBytes: number;
}

// The positions of a request's values in its row: four floats of 8 bytes, and five words of 4 bytes.
const rowFloats = 4;
const rowWords = 5;
const float = { started: 0, duration: 1, sent: 2, of: 3 } as const;
/** The text of a row is its query followed by its path; either can be missing. */
const word = { marks: 0, textStart: 1, queryLength: 2, pathLength: 3, boot: 4 } as const;
/** Includes three references to strings, and 40 bytes for the address, whose string only this row uses. */
const rowBytes = rowFloats * 8 + rowWords * 4 + 3 * 8 + 40;

const headMark = 1 << 16;
const cutMark = 1 << 17;
const queryMark = 1 << 18;
const pathMark = 1 << 19;
const refusalShift = 20;
const refusalMask = 0x1f;
const statusMask = 0xffff;

export class Intake {
  readonly #limits: IntakeLimits;
  readonly #floats: Float64Array;
  readonly #words: Uint32Array;
  readonly #texts: TextRing;
  readonly #endpoints: string[];
  readonly #addresses: string[];
  readonly #groups: (string | undefined)[];
  #oldest = 0;
  #newest = 0;
  #count = 0;
  #addedCount = 0;
  #lostCount = 0;
  #firstLostMs = 0;
  #lastLostMs = 0;

  constructor(limits: IntakeLimits) {
    const { maxWaiting, maxWaitingBytes } = limits;
    this.#limits = limits;
    this.#floats = new Float64Array(maxWaiting * rowFloats);
    this.#words = new Uint32Array(maxWaiting * rowWords);
    this.#texts = new TextRing(maxWaitingBytes - maxWaiting * rowBytes);
    this.#endpoints = Array.from({ length: maxWaiting }, () => "");
    this.#addresses = Array.from({ length: maxWaiting }, () => "");
    this.#groups = Array.from({ length: maxWaiting }, () => undefined);
  }

  /** Allocated memory, used or not. It is constant. */
  get sizeBytes(): number {
    return this.#limits.maxWaitingBytes;
  }

  /** The number of waiting requests. */
  get count(): number {
    return this.#count;
  }

  /** The number of requests ever queued. */
  get addedCount(): number {
    return this.#addedCount;
  }

  /** Undefined if the queue never dropped a request. */
  get lost(): LostRequests | undefined {
    if (this.#lostCount === 0) return undefined;
    return { count: this.#lostCount, firstMs: this.#firstLostMs, lastMs: this.#lastLostMs };
  }

  /** Adds a request as the newest. */
  add(request: AnsweredRequest): void {
    const query = request.query ?? "";
    const path = request.path ?? "";
    this.#addedCount++;
    if (!this.#makeRoom(query.length + path.length)) {
      this.#lose(request.startedMs);
      return;
    }
    const at = this.#newest;
    this.#newest = this.#after(at);
    this.#count++;
    const floats = at * rowFloats;
    this.#floats[floats + float.started] = request.startedMs;
    this.#floats[floats + float.duration] = request.durationMs;
    this.#floats[floats + float.sent] = request.sentBytes;
    this.#floats[floats + float.of] = request.ofBytes ?? Number.NaN;
    const words = at * rowWords;
    this.#words[words + word.marks] = marksOf(request);
    this.#words[words + word.textStart] = this.#texts.add(query, path);
    this.#words[words + word.queryLength] = query.length;
    this.#words[words + word.pathLength] = path.length;
    this.#words[words + word.boot] = request.boot;
    this.#endpoints[at] = request.endpoint;
    this.#addresses[at] = request.address;
    this.#groups[at] = request.group;
  }

  /** Removes and returns the oldest request; there must be one. */
  take(): AnsweredRequest & SeenRequest {
    assert(this.#count > 0, "a request waits");
    const at = this.#oldest;
    const marks = this.#word(at, word.marks);
    const queryStart = this.#word(at, word.textStart);
    const pathStart = queryStart + this.#word(at, word.queryLength);
    const pathEnd = pathStart + this.#word(at, word.pathLength);
    const ofBytes = this.#float(at, float.of);
    const request = {
      startedMs: this.#float(at, float.started),
      durationMs: this.#float(at, float.duration),
      address: this.#addresses[at] ?? "",
      endpoint: this.#endpoints[at] ?? "",
      path: (marks & pathMark) === 0 ? undefined : this.#texts.text(pathStart, pathEnd),
      isHead: (marks & headMark) !== 0,
      status: marks & statusMask,
      group: this.#groups[at],
      sentBytes: this.#float(at, float.sent),
      ofBytes: Number.isNaN(ofBytes) ? undefined : ofBytes,
      isCut: (marks & cutMark) !== 0,
      refusal: (marks >> refusalShift) & refusalMask,
      via: undefined,
      boot: this.#word(at, word.boot),
      query: (marks & queryMark) === 0 ? undefined : this.#texts.text(queryStart, pathStart),
    };
    this.#dropOldest();
    return request;
  }

  /** Drops the oldest requests until there is room. @returns false if the strings are longer than the whole memory. */
  #makeRoom(textLength: number): boolean {
    while (this.#count > 0 && (this.#count >= this.#limits.maxWaiting || !this.#texts.hasRoom(textLength))) {
      this.#lose(this.#float(this.#oldest, float.started));
      this.#dropOldest();
    }
    return this.#texts.hasRoom(textLength);
  }

  #lose(startedMs: number): void {
    if (this.#lostCount === 0) this.#firstLostMs = startedMs;
    this.#lastLostMs = startedMs;
    this.#lostCount++;
  }

  #dropOldest(): void {
    this.#oldest = this.#after(this.#oldest);
    this.#count--;
    this.#texts.dropFirst(this.#word(this.#oldest, word.textStart));
  }

  #word(at: number, member: number): number {
    return this.#words[at * rowWords + member] ?? 0;
  }

  #float(at: number, member: number): number {
    return this.#floats[at * rowFloats + member] ?? 0;
  }

  #after(at: number): number {
    return at + 1 === this.#limits.maxWaiting ? 0 : at + 1;
  }
}

function marksOf({ status, isHead, isCut, refusal, query, path }: AnsweredRequest): number {
  return (
    status |
    (isHead ? headMark : 0) |
    (isCut ? cutMark : 0) |
    (refusal << refusalShift) |
    (query === undefined ? 0 : queryMark) |
    (path === undefined ? 0 : pathMark)
  );
}
