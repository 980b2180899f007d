/**
 * davit's client of etcd v3, over one or more endpoints. Reads are linearizable. A request that fails at one endpoint
 * goes on at the next one; a watch does not: its caller knows from where. Other code imports only this file.
 */

import type { CallOptions } from "@connectrpc/connect";
import { type EtcdCallOptions, EtcdCalls } from "./calls.ts";
import type { EtcdTls } from "./connection.ts";
import { EtcdEndpoint, EtcdEndpoints } from "./endpoint.ts";
import { EtcdError } from "./etcd-error.ts";
import type { EtcdClock, EtcdWarnings } from "./host.ts";
import { type EtcdCredentials, EtcdLogin } from "./login.ts";
import {
  bytesOf,
  compareMessage,
  type EtcdDelete,
  type EtcdHeader,
  type EtcdRange,
  type EtcdRangeAnswer,
  type EtcdTxn,
  type EtcdTxnAnswer,
  headerOf,
  keyOf,
  operationAnswer,
  operationMessage,
  rangeMessage,
} from "./messages.ts";
import type { ResponseHeader } from "./rpc_pb.ts";
import { type EtcdWatch, type EtcdWatchPart, watchAt } from "./watch.ts";

export { EtcdError, type EtcdFailure } from "./etcd-error.ts";
export type { EtcdCompare, EtcdKey, EtcdTxn, EtcdTxnAnswer } from "./messages.ts";
export type { EtcdWatchPart } from "./watch.ts";

export interface EtcdClientOptions {
  /** Origins, `http:` or `https:`; at least one. */
  readonly endpoints: readonly URL[];
  /** For `https:` endpoints. */
  readonly tls?: EtcdTls;
  readonly credentials?: EtcdCredentials | undefined;
  readonly clock: EtcdClock;
  readonly log: EtcdWarnings;
  readonly random: () => number;
  /** The limit of one try at one endpoint; 1,000 unless given. */
  readonly tryMs?: number;
  /** The limit of all tries of a request; 7,000 unless given. */
  readonly withinMs?: number;
}

export interface EtcdTxnOptions extends EtcdCallOptions {
  /** A second execution changes nothing, as the transaction's own conditions guarantee: repeat it without knowing. */
  readonly repeat?: boolean;
}

export interface EtcdLease {
  readonly id: bigint;
  /** What etcd granted, from the moment of its answer on. */
  readonly ttlSeconds: number;
}

export interface EtcdRenewal {
  /** When the request was sent, on the monotonic clock: the lease lasts at least `ttlSeconds` from then on. */
  readonly sentAtMs: number;
  readonly ttlSeconds: number;
}

export interface EtcdStatus {
  readonly header: EtcdHeader;
  readonly endpoint: string;
  /** 0n without one. */
  readonly leader: bigint;
  /** The alarm NOSPACE is raised, or etcd reports another error. */
  readonly errors: readonly string[];
}

const presetTryMs = 1_000;
const presetWithinMs = 7_000;
// How often it asks again which endpoint leads. This finds a leader that failed to answer once and works again.
const leaderEveryMs = 30_000;

export class EtcdClient {
  readonly #endpoints: EtcdEndpoints;
  readonly #calls: EtcdCalls;
  readonly #clock: EtcdClock;
  /** The limit of one try at one endpoint. */
  readonly tryMs: number;
  /** The limit of all tries of a request. */
  readonly withinMs: number;
  readonly #closed = new AbortController();
  #term = 0;
  /** When it asks again which endpoint leads. */
  #askAtMs = 0;

  private constructor(options: EtcdClientOptions) {
    const { clock, log, random, tls = {}, tryMs = presetTryMs, withinMs = presetWithinMs } = options;
    const all = options.endpoints.map((url) => new EtcdEndpoint({ url, tls, clock }));
    const endpoints = new EtcdEndpoints(all, random);
    const login = new EtcdLogin({ credentials: options.credentials, clock, log, tryMs });
    this.#clock = clock;
    this.tryMs = tryMs;
    this.withinMs = withinMs;
    this.#endpoints = endpoints;
    this.#calls = new EtcdCalls({ endpoints, login, clock, random, tryMs, withinMs, closed: this.#closed.signal });
  }

  /** A client that connects with its first request. */
  static open(options: EtcdClientOptions): EtcdClient {
    return new EtcdClient(options);
  }

  /** Ends every request and watch, and every connection; idempotent. */
  close(): void {
    this.#closed.abort();
    for (const { connection } of this.#endpoints.all) connection.close();
  }

  /** Reads keys. @throws {EtcdError} */
  async range(range: EtcdRange, options: EtcdCallOptions = {}): Promise<EtcdRangeAnswer> {
    const request = rangeMessage(range);
    const reading = this.#run(options, true, (endpoint, call) => endpoint.kv.range(request, call));
    const answer = await reading.catch((error: unknown) => {
      throw error instanceof EtcdError ? error.withoutEffect() : error;
    });
    return { header: this.#heard(answer.header), keys: answer.kvs.map(keyOf), more: answer.more };
  }

  /**
   * Runs a transaction. It is repeated without knowing its outcome only if `repeat`.
   * @throws {EtcdError} `mayBeDone` when its outcome is unknown.
   */
  async txn(txn: EtcdTxn, { repeat = false, ...options }: EtcdTxnOptions = {}): Promise<EtcdTxnAnswer> {
    const request = {
      compare: (txn.when ?? []).map(compareMessage),
      success: txn.success.map(operationMessage),
      failure: (txn.failure ?? []).map(operationMessage),
    };
    const answer = await this.#run(options, repeat, (endpoint, call) => endpoint.kv.txn(request, call));
    return {
      header: this.#heard(answer.header),
      succeeded: answer.succeeded,
      answers: answer.responses.map(operationAnswer),
    };
  }

  /** Deletes keys; resolves with their number. It may run twice. @throws {EtcdError} */
  async deleteRange({ key, end = "" }: EtcdDelete, options: EtcdCallOptions = {}): Promise<number> {
    const request = { key: bytesOf(key), rangeEnd: bytesOf(end) };
    return Number((await this.#run(options, true, (at, call) => at.kv.deleteRange(request, call))).deleted);
  }

  /** Removes all older revisions of keys; nothing to do where they are gone. @throws {EtcdError} */
  async compact(revision: number, options: EtcdCallOptions = {}): Promise<void> {
    const request = { revision: BigInt(revision) };
    await unless(
      "compacted",
      this.#run(options, true, (at, call) => at.kv.compact(request, call)),
    );
  }

  /** A new lease. A try without an answer may leave another one, which ends by itself. @throws {EtcdError} */
  async leaseGrant(ttlSeconds: number, options: EtcdCallOptions = {}): Promise<EtcdLease> {
    const request = { TTL: BigInt(ttlSeconds) };
    const { ID, TTL } = await this.#run(options, true, (at, call) => at.lease.leaseGrant(request, call));
    return { id: ID, ttlSeconds: Number(TTL) };
  }

  /** Ends a lease and its keys; nothing to do when it has ended. @throws {EtcdError} */
  async leaseRevoke(id: bigint, options: EtcdCallOptions = {}): Promise<void> {
    await unless(
      "leaseNotFound",
      this.#run(options, true, (at, call) => at.lease.leaseRevoke({ ID: id }, call)),
    );
  }

  /** Renews a lease once. @throws {EtcdError} `leaseNotFound` when it has ended. */
  async leaseRenew(id: bigint, options: EtcdCallOptions = {}): Promise<EtcdRenewal> {
    return await this.#run(options, true, async (endpoint, call) => {
      const sentAtMs = this.#clock.monotonicMs();
      const ttlSeconds = await renewedTtl(endpoint, id, call);
      if (ttlSeconds > 0) return { sentAtMs, ttlSeconds };
      const details = { reason: "leaseNotFound", mayBeDone: false, endpoint: endpoint.origin } as const;
      throw new EtcdError("the lease has ended", details);
    });
  }

  /**
   * Renews a lease at once and then every `everyMs`; gives each renewal. A renewal that fails is tried again until the
   * lease is known to be gone: only the consumer knows until when it may count on the last one.
   * @throws {EtcdError} when etcd says that the lease has ended, or denies its renewal.
   */
  async *keepAlive(
    id: bigint,
    { everyMs, signal }: { readonly everyMs: number; readonly signal: AbortSignal },
  ): AsyncGenerator<EtcdRenewal, void> {
    while (!signal.aborted && !this.#closed.signal.aborted) {
      const renewal = await this.#renewal(id, { signal, withinMs: Math.max(everyMs, this.tryMs) });
      if (renewal !== undefined) yield renewal;
      const sinceMs = renewal === undefined ? 0 : this.#clock.monotonicMs() - renewal.sentAtMs;
      if (renewal !== undefined) await this.#clock.sleep(Math.max(0, everyMs - sinceMs), signal);
    }
  }

  /** The state of the endpoint that is asked first, from its own knowledge. @throws {EtcdError} */
  async status(options: EtcdCallOptions = {}): Promise<EtcdStatus> {
    return await this.#run(options, true, async (endpoint, call) => {
      const { header, leader, errors } = await endpoint.maintenance.status({}, call);
      return { header: headerOf(header), endpoint: endpoint.origin, leader, errors };
    });
  }

  /**
   * A watch at the endpoint that is asked first. Its first part means that etcd has registered it. It ends without an
   * error when `signal` aborts.
   * @throws {EtcdError} with its end: open another one, which asks the next endpoint.
   */
  async *watch(watch: EtcdWatch, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<EtcdWatchPart, void> {
    const endpoint = this.#endpoints.preferred;
    try {
      yield* watchAt(watch, { endpoint, calls: this.#calls, tryMs: this.tryMs, signal });
    } catch (error) {
      if (error instanceof EtcdError && error.isOfEndpoint) this.#endpoints.failed(endpoint);
      throw error;
    }
  }

  #heard(message: ResponseHeader | undefined): EtcdHeader {
    const header = headerOf(message);
    const { all } = this.#endpoints;
    const nowMs = this.#clock.monotonicMs();
    // A new leader has a new term.
    if (all.length > 1 && (header.raftTerm > this.#term || nowMs >= this.#askAtMs)) {
      this.#term = Math.max(this.#term, header.raftTerm);
      this.#askAtMs = nowMs + leaderEveryMs;
      for (const endpoint of all) void this.#preferLeader(endpoint);
    }
    return header;
  }

  /**
   * Prefers an endpoint whose server leads etcd. It answers a write in about half the time of another endpoint, which
   * forwards the write and learns with the next message that it is committed.
   */
  async #preferLeader(endpoint: EtcdEndpoint): Promise<void> {
    try {
      const asking = this.#calls.at(endpoint, this.tryMs, (call) => endpoint.maintenance.status({}, call));
      const { header, leader } = await asking;
      if (header !== undefined && header.memberId === leader) this.#endpoints.prefer(endpoint);
    } catch (error) {
      // Then another endpoint stays preferred.
      if (!(error instanceof EtcdError)) throw error;
    }
  }

  async #renewal(id: bigint, options: EtcdCallOptions): Promise<EtcdRenewal | undefined> {
    try {
      return await this.leaseRenew(id, options);
    } catch (error) {
      if (error instanceof EtcdError && error.reason === "unavailable") return undefined;
      throw error;
    }
  }

  async #run<T>(
    options: EtcdCallOptions,
    repeat: boolean,
    send: (endpoint: EtcdEndpoint, call: CallOptions) => Promise<T>,
  ): Promise<T> {
    return await this.#calls.run({ ...options, repeat, send });
  }
}

/** The TTL of a renewed lease in seconds; 0 when there is none. The stream is for one renewal. */
async function renewedTtl(endpoint: EtcdEndpoint, id: bigint, { headers, signal }: CallOptions): Promise<number> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal?.addEventListener("abort", abort);
  try {
    const answers = endpoint.lease.leaseKeepAlive(once({ ID: id }), {
      ...(headers && { headers }),
      signal: stop.signal,
    });
    for await (const { TTL } of answers) return Number(TTL);
    throw new Error("no answer");
  } finally {
    signal?.removeEventListener("abort", abort);
    abort();
  }
}

async function* once<T>(value: T): AsyncGenerator<T> {
  yield value;
}

/** Work that needs no doing when etcd says so. */
async function unless(reason: EtcdError["reason"], work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof EtcdError) || error.reason !== reason) throw error;
  }
}
