/** Requests over several endpoints: each try has a limit, and a failed one goes on at the next endpoint. */

import type { CallOptions } from "@connectrpc/connect";
import type { EtcdEndpoint, EtcdEndpoints } from "./endpoint.ts";
import { asEtcdError, EtcdError, isAboutToken } from "./etcd-error.ts";
import { type EtcdClock, timeLimit } from "./host.ts";
import type { EtcdLogin } from "./login.ts";

export interface EtcdCallOptions {
  /** The limit of all tries together, in milliseconds. */
  readonly withinMs?: number;
  /** Ends the request with an error `unavailable`. */
  readonly signal?: AbortSignal;
}

export interface EtcdCall<T> extends EtcdCallOptions {
  /**
   * The request has no effect, or its second execution has none: it is repeated even if it may have been carried out.
   */
  readonly repeat: boolean;
  readonly send: (endpoint: EtcdEndpoint, options: CallOptions) => Promise<T>;
}

interface EtcdCallsOptions {
  readonly endpoints: EtcdEndpoints;
  readonly login: EtcdLogin;
  readonly clock: EtcdClock;
  readonly random: () => number;
  readonly tryMs: number;
  readonly withinMs: number;
  /** The client was closed: nothing is tried again. */
  readonly closed: AbortSignal;
}

// Once every endpoint has failed. An election takes about a second, so waits stay short.
const firstWaitMs = 25;
const longestWaitMs = 200;
// A member that has not noticed the loss of its leader does not answer. So after a failure, tries are short for as long
// as an election lasts. Later tries have their whole time again, because etcd may only be slow.
const shortTryMs = 250;
const shortTriesMs = 3_000;

export class EtcdCalls {
  readonly #options: EtcdCallsOptions;

  constructor(options: EtcdCallsOptions) {
    this.#options = options;
  }

  get hasCredentials(): boolean {
    return this.#options.login.hasCredentials;
  }

  /**
   * Sends a request until an endpoint answers it.
   * @throws {EtcdError} at once for what another endpoint would not answer differently, and when a request that may not
   *   be repeated may have been carried out; otherwise once the time is over.
   */
  async run<T>({ repeat, send, signal, withinMs = this.#options.withinMs }: EtcdCall<T>): Promise<T> {
    const { clock, endpoints, tryMs } = this.#options;
    const endsAtMs = clock.monotonicMs() + withinMs;
    const failures = new EtcdFailures(endpoints.all.length);
    let failedAtMs: number | undefined;
    for (let tries = 1; ; tries++) {
      const endpoint = endpoints.preferred;
      const limitMs = this.#limitMs(endsAtMs, failedAtMs);
      try {
        return await this.within(limitMs, signal, (limit) => this.#attempt(endpoint, send, limit));
      } catch (thrown) {
        const error = asEtcdError(thrown, endpoint.origin, true);
        failures.add(error, limitMs === tryMs);
        failedAtMs ??= clock.monotonicMs();
        if (error.isOfEndpoint) endpoints.failed(endpoint);
        if (!failures.mayRepeat(repeat)) throw failures.outcome;
        if (!(await this.#mayGoOn({ tries, endsAtMs, signal }))) throw failures.outcome;
      }
    }
  }

  /** Sends a request to one endpoint, once. @throws {EtcdError} */
  async at<T>(endpoint: EtcdEndpoint, limitMs: number, send: (options: CallOptions) => Promise<T>): Promise<T> {
    try {
      return await this.within(limitMs, undefined, (limit) => this.#attempt(endpoint, (_, call) => send(call), limit));
    } catch (error) {
      throw asEtcdError(error, endpoint.origin, true);
    }
  }

  /** Runs `work` with a signal that aborts after `limitMs`, with `signal`, or when the client is closed. */
  async within<T>(
    limitMs: number,
    signal: AbortSignal | undefined,
    work: (limit: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const limit = timeLimit(this.#options.clock, limitMs);
    const any = new AbortController();
    const stop = () => any.abort();
    const signals = [limit.signal, this.#options.closed, ...(signal === undefined ? [] : [signal])];
    for (const each of signals) each.addEventListener("abort", stop);
    if (signals.some((each) => each.aborted)) stop();
    try {
      return await work(any.signal);
    } finally {
      limit.cancel();
      for (const each of signals) each.removeEventListener("abort", stop);
    }
  }

  /**
   * The headers for a request, once the endpoint is connected.
   * @throws {EtcdError} whose `mayBeDone` is false.
   */
  async prepare(endpoint: EtcdEndpoint, limit: AbortSignal): Promise<Readonly<Record<string, string>>> {
    try {
      await unlessAborted(endpoint.connection.ready(), limit);
      const { login } = this.#options;
      return headers(login.hasCredentials ? await unlessAborted(login.token(endpoint), limit) : undefined);
    } catch (error) {
      throw asEtcdError(error, endpoint.origin, false);
    }
  }

  /** The same headers with another token. @throws {EtcdError} whose `mayBeDone` is false. */
  async renew(
    endpoint: EtcdEndpoint,
    { token }: Readonly<Record<string, string>>,
    limit: AbortSignal,
  ): Promise<Readonly<Record<string, string>>> {
    try {
      return headers(await unlessAborted(this.#options.login.renewed(token, endpoint), limit));
    } catch (error) {
      throw asEtcdError(error, endpoint.origin, false);
    }
  }

  /** A token that was refused is renewed once. */
  async #attempt<T>(endpoint: EtcdEndpoint, send: EtcdCall<T>["send"], limit: AbortSignal): Promise<T> {
    const sent = await this.prepare(endpoint, limit);
    try {
      return await send(endpoint, { headers: sent, signal: limit });
    } catch (error) {
      if (!isAboutToken(error) || !this.#options.login.hasCredentials) throw this.#unanswered(error, endpoint, limit);
    }
    const renewed = await this.renew(endpoint, sent, limit);
    try {
      return await send(endpoint, { headers: renewed, signal: limit });
    } catch (error) {
      throw this.#unanswered(error, endpoint, limit);
    }
  }

  /** The time for the next try. @param failedAtMs when the first one failed. */
  #limitMs(endsAtMs: number, failedAtMs: number | undefined): number {
    const { clock, tryMs } = this.#options;
    const nowMs = clock.monotonicMs();
    const isShort = failedAtMs !== undefined && nowMs < failedAtMs + shortTriesMs;
    return Math.min(isShort ? shortTryMs : tryMs, tryMs, Math.max(1, endsAtMs - nowMs));
  }

  #unanswered(error: unknown, endpoint: EtcdEndpoint, limit: AbortSignal): EtcdError {
    if (!limit.aborted) return asEtcdError(error, endpoint.origin, true);
    endpoint.connection.suspect();
    return new EtcdError("no answer in time", { reason: "unavailable", mayBeDone: true, endpoint: endpoint.origin });
  }

  /** Waits a little once each endpoint has failed. False when the time is over. */
  async #mayGoOn(of: {
    readonly tries: number;
    readonly endsAtMs: number;
    readonly signal: AbortSignal | undefined;
  }): Promise<boolean> {
    const { clock, random, endpoints, closed } = this.#options;
    const rounds = of.tries / endpoints.all.length;
    if (Number.isInteger(rounds)) {
      const mostMs = Math.min(firstWaitMs * 2 ** (rounds - 1), longestWaitMs);
      const waitMs = (mostMs / 2) * (1 + random());
      const leftMs = Math.max(0, of.endsAtMs - clock.monotonicMs());
      await this.within(Math.min(waitMs, leftMs), of.signal, (limit) => aborted(limit));
    }
    return clock.monotonicMs() < of.endsAtMs && of.signal?.aborted !== true && !closed.aborted;
  }
}

/** etcd refuses a request with `hasleader` at once when it has no leader. */
function headers(token: string | undefined): Readonly<Record<string, string>> {
  return token === undefined ? { hasleader: "true" } : { hasleader: "true", token };
}

/** What the tries of one request ended with. */
class EtcdFailures {
  readonly #endpoints: number;
  #last: EtcdError | undefined;
  /** Denied tries in a row: another endpoint may have another certificate, or know the user. */
  #denials = 0;
  #mayBeDone = false;
  #informative: EtcdError | undefined;

  constructor(endpoints: number) {
    this.#endpoints = endpoints;
  }

  /** @param isWhole the try had its whole time. A last try that was cut short says nothing about the cause. */
  add(error: EtcdError, isWhole: boolean): void {
    this.#last = error;
    this.#mayBeDone ||= error.mayBeDone;
    this.#denials = error.reason === "denied" ? this.#denials + 1 : 0;
    // A reason from etcd itself is better than that of an endpoint that is down.
    const isBetter = isWhole && (error.isAnswer || !(this.#informative?.isAnswer ?? false));
    if (isBetter || this.#informative === undefined) this.#informative = error;
  }

  mayRepeat(repeat: boolean): boolean {
    if (this.#last?.mayBeDone === true && !repeat) return false;
    if (this.#last?.reason === "denied") return this.#denials < this.#endpoints;
    return this.#last?.reason === "unavailable";
  }

  get outcome(): EtcdError | undefined {
    const error = this.#last?.reason === "unavailable" ? this.#informative : this.#last;
    return this.#mayBeDone ? error?.afterEarlierTry() : error;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Rejects at once when the signal aborts; the work goes on for others who wait for it. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new Error("aborted"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
