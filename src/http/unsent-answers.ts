/**
 * Counts answers that clients have not read yet. Bytes that the kernel does not take immediately stay in davit's
 * memory: at most 128 MiB for each listener. A client that holds more than remains free gets 503 until it reads. Beyond
 * 128 MiB, davit cuts the largest answer of the client that holds the most bytes, until the rest is within the limit.
 * The kernel takes nearly all answers immediately, and counting these costs one comparison.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Metrics } from "../lib/metrics/metrics.ts";
import { Shares } from "../lib/shares.ts";
import type { Clients, Holder } from "./client-shares.ts";
import { WireResponse } from "./response-headers.ts";

interface UnsentAnswersOptions {
  readonly clients: Clients;
  readonly limitBytes?: number;
  /** A client that takes nothing for this long is cut; undefined where the listener itself cuts such clients. */
  readonly stallMs?: number;
}

const presetLimitBytes = 128 * 1024 * 1024;

/** A config has up to 8 MiB. A thread with less room could never send it. */
const leastLimitBytes = 16 * 1024 * 1024;

/** Returns the limit of each thread, in bytes, if this many threads share a listener. */
export function unsentLimitOf(threads: number): number {
  return Math.max(Math.floor(presetLimitBytes / threads), leastLimitBytes);
}

interface Unsent {
  readonly holder: Holder;
  readonly bytes: number;
}

export class UnsentAnswers {
  /** Counts the bytes by client. Other counters of the same listener may use it, too. */
  readonly shares: Shares;
  readonly #clients: Clients;
  readonly #limitBytes: number;
  readonly #stallMs: number | undefined;
  readonly #unsent = new Map<ServerResponse, Unsent>();
  #measuredBytes = 0;

  constructor({ clients, limitBytes = presetLimitBytes, stallMs }: UnsentAnswersOptions) {
    this.#clients = clients;
    this.#limitBytes = limitBytes;
    this.#stallMs = stallMs;
    this.shares = new Shares({ limit: limitBytes });
  }

  /** The bytes that `shares` counts now. */
  get bytes(): number {
    return this.shares.total;
  }

  /** Adds the change since the last call to a gauge, because other threads add to this gauge, too. */
  measure(gauge: Metrics["unsentBytes"], listener: string): void {
    gauge.inc({ listener }, this.bytes - this.#measuredBytes);
    this.#measuredBytes = this.bytes;
  }

  /** True for a request whose client must first read its earlier answers. */
  refuses(request: IncomingMessage): boolean {
    const free = Math.max(this.#limitBytes - this.bytes, 0);
    return this.bytes > free && this.shares.heldBy(this.#clients.ofRequest(request) ?? "") > free;
  }

  /** The client of an answer. */
  holderOf({ req }: ServerResponse): Holder {
    return this.#clients.ofRequest(req);
  }

  /**
   * Counts the bytes that an answer has in memory now. They count until the answer closes, or `settled` is called.
   * Beyond the limit, answers are cut.
   */
  follow(response: ServerResponse): void {
    this.watchStall(response);
    if (this.#unsent.has(response)) this.settled(response);
    else response.once("close", () => this.settled(response));
    const unsent = { holder: this.holderOf(response), bytes: response.writableLength };
    this.#unsent.set(response, unsent);
    this.shares.add(unsent.holder, unsent.bytes);
    while (this.bytes > this.#limitBytes && this.#unsent.size > 0) this.#cutLargest();
  }

  /** Cuts an answer when its client takes nothing for too long. */
  watchStall({ socket }: ServerResponse): void {
    if (this.#stallMs !== undefined) socket?.setTimeout(this.#stallMs);
  }

  /** Stops counting an answer. Call it when its client has taken everything. */
  settled(response: ServerResponse): void {
    const unsent = this.#unsent.get(response);
    if (unsent === undefined) return;
    this.#unsent.delete(response);
    this.shares.release(unsent.holder, unsent.bytes);
  }

  /**
   * Cuts the largest answer of the client that holds the most. Clients without a limit of their own have no sum, so
   * each of their answers is compared alone.
   */
  #cutLargest(): void {
    const weight = ({ holder, bytes }: Unsent) => (holder === undefined ? bytes : this.shares.heldBy(holder));
    let largest: [ServerResponse, Unsent] | undefined;
    for (const entry of this.#unsent) {
      const [, unsent] = entry;
      const lead = largest === undefined ? 1 : weight(unsent) - weight(largest[1]) || unsent.bytes - largest[1].bytes;
      if (lead > 0) largest = entry;
    }
    if (largest === undefined) return;
    this.settled(largest[0]);
    largest[0].destroy();
  }
}

/** Returns the response class for a listener whose unread answers are counted. */
export function countedResponses(unsent: UnsentAnswers): typeof WireResponse {
  return class<Request extends IncomingMessage = IncomingMessage> extends WireResponse<Request> {
    override end(done?: () => void): this;
    override end(chunk: unknown, done?: () => void): this;
    override end(chunk: unknown, encoding: BufferEncoding, done?: () => void): this;
    override end(chunk?: unknown, encoding?: BufferEncoding | (() => void), done?: () => void): this {
      if (typeof encoding === "string") super.end(chunk, encoding, done);
      else super.end(chunk, encoding ?? done);
      // Without a chunk, `end` adds no bytes. The callers of `write` count their bytes themselves.
      if (chunk !== undefined && !this.isCountedElsewhere && this.writableLength > 0) unsent.follow(this);
      return this;
    }
  };
}
