/**
 * The client of the API server: JSON calls and watches, over shared pools of connections.
 *
 * Every call ends: by an answer, by its time-out or by its signal. The client retries a GET after a failure that may
 * pass, and every request after a 429. After a 401 it reads the credentials again and retries once. If the server's
 * certificate is not trusted, it reads them again for the next request. It returns JSON, and leaves the meaning of
 * objects to its callers.
 */

import { backoffMs, jittered } from "../../../lib/backoff.ts";
import { Deadline } from "../../../lib/deadline.ts";
import { codeOf } from "../../../lib/errors.ts";
import type { Log } from "../../../lib/log.ts";
import type { Metrics } from "../../../lib/metrics/metrics.ts";
import type { Ports } from "../../../lib/ports.ts";
import { type JsonObject, parseJsonObject } from "../../../model/json.ts";
import { ApiError, answeredError } from "./api-error.ts";
import { ConnectionPool, type HttpAnswer } from "./connections.ts";
import type { ClusterAccess, ClusterCredentials } from "./kube-config.ts";

export interface ApiClientOptions extends Pick<Ports, "clock" | "log" | "random"> {
  readonly access: ClusterAccess;
  readonly metrics: Pick<Metrics, "restClientRequests" | "restClientRequestSeconds">;
  /** davit's version, for the User-Agent. */
  readonly version: string;
  readonly limits?: { readonly timeoutMs?: number; readonly maxBodyBytes?: number };
}

export interface ApiRequest {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** The path below the API server's URL, with a slash at its beginning. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly accept?: string;
  readonly body?: { readonly contentType: string; readonly value: object };
  readonly signal: AbortSignal;
  /** How often the client retries after a failure that may pass: 2 times unless given. */
  readonly retries?: number;
}

/** The API server itself gives up after 60 s by default, but no caller should wait that long. */
const presetTimeoutMs = 30_000;
/** Enough for a page of 500 Groups of the largest size. A much longer text would not fit into one string. */
const presetMaxBodyBytes = 400 * 1024 * 1024;
const presetRetries = 2;
const retryDelays = { firstMs: 250, capMs: 2_000 };

export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #connections: ConnectionPool;
  readonly #warnings: ApiWarnings;
  readonly #host: string;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#connections = new ConnectionPool(options.access);
    this.#warnings = new ApiWarnings(options.log);
    this.#host = new URL(options.access.server).host;
  }

  /**
   * Makes one call and returns its answer as JSON.
   * @throws {ApiError} also when the signal aborts, so callers must check their signal.
   */
  async json(request: ApiRequest): Promise<JsonObject> {
    const { retries = presetRetries, signal } = request;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#within(request, (limited) => this.#call(limited));
      } catch (error) {
        if (attempt >= retries || signal.aborted || !mayRetry(request, error)) throw error;
        await this.#options.clock.sleep(this.#retryDelayMs(attempt, error), signal);
      }
    }
  }

  /**
   * Opens a watch. Resolves with a stream of its bytes when the API server has accepted the watch. The time-out covers
   * only the opening.
   * @throws {ApiError}
   */
  async watch(request: ApiRequest): Promise<AsyncIterable<Buffer>> {
    const { body } = await this.#within(request, (limited) => this.#exchange(limited, "watch"));
    return body;
  }

  /** Cuts every connection; idempotent. */
  async stop(): Promise<void> {
    await this.#connections.stop();
  }

  async #call(request: ApiRequest): Promise<JsonObject> {
    const answer = await this.#exchange(request, "call");
    const value = parseJsonObject(await this.#text(answer));
    if (value === undefined) throw new ApiError("protocol", { what: "the answer is no JSON object" });
    return value;
  }

  /** Runs a function with a signal that includes the time-out. Turns every error into an ApiError. */
  async #within<Result>(request: ApiRequest, run: (limited: ApiRequest) => Promise<Result>): Promise<Result> {
    const { clock, limits = {} } = this.#options;
    const deadline = new Deadline({ clock, durationMs: limits.timeoutMs ?? presetTimeoutMs });
    try {
      return await run({ ...request, signal: AbortSignal.any([request.signal, deadline.signal]) });
    } catch (error) {
      if (error instanceof ApiError) throw error;
      if (deadline.hasPassed) throw new ApiError("late", { cause: error });
      throw this.#connectionError(error);
    } finally {
      deadline.cancel();
    }
  }

  #connectionError(error: unknown): ApiError {
    // Only the code, because the message of a network error may quote what was sent.
    const code = codeOf(error);
    if (!isOfCertificates(code)) return new ApiError("unreachable", { what: code, cause: error });
    this.#options.access.renew();
    return new ApiError("untrusted", { what: code, cause: error });
  }

  /** Sends once, and a second time with new credentials after a 401. */
  async #exchange(request: ApiRequest, use: "call" | "watch"): Promise<HttpAnswer> {
    const first = await this.#send(request, use);
    if (first.status !== 401) return this.#admit(request, first);
    await this.#text(first);
    this.#options.access.renew();
    return this.#admit(request, await this.#send(request, use));
  }

  async #admit(request: ApiRequest, answer: HttpAnswer): Promise<HttpAnswer> {
    if (answer.status >= 200 && answer.status < 300) return answer;
    const { status, headers } = answer;
    throw answeredError(request, { status, headers, body: parseJsonObject(await this.#text(answer)) });
  }

  async #send(request: ApiRequest, use: "call" | "watch"): Promise<HttpAnswer> {
    const { clock, metrics, access } = this.#options;
    const { method = "GET", path, query = {}, body, signal } = request;
    const { headers, tls } = await this.#credentials();
    const search = new URLSearchParams(query).toString();
    const startedMs = clock.monotonicMs();
    let code = "<error>";
    try {
      const answer = await this.#connections.send({
        url: `${access.server}${path}${search && `?${search}`}`,
        method,
        headers: { ...headers, ...this.#ownHeaders(request) },
        signal,
        use,
        tls,
        ...(body && { body: JSON.stringify(body.value) }),
      });
      code = String(answer.status);
      this.#warnings.take(answer.headers.warning);
      return answer;
    } finally {
      metrics.restClientRequests.inc({ code, method, host: this.#host });
      const seconds = (clock.monotonicMs() - startedMs) / 1_000;
      metrics.restClientRequestSeconds.observe({ verb: use === "watch" ? "WATCH" : method, host: this.#host }, seconds);
    }
  }

  #ownHeaders({ accept = "application/json", body }: ApiRequest): Record<string, string> {
    const contentType = body === undefined ? {} : { "content-type": body.contentType };
    return { accept, "user-agent": `davit/${this.#options.version}`, ...contentType };
  }

  async #credentials(): Promise<ClusterCredentials> {
    try {
      return await this.#options.access.credentials();
    } catch (error) {
      // The output of a login program is meant for the person who set it up, not for the log.
      throw new ApiError("credentials", { what: codeOf(error), cause: error });
    }
  }

  async #text({ body }: HttpAnswer): Promise<string> {
    const { maxBodyBytes = presetMaxBodyBytes } = this.#options.limits ?? {};
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) throw new ApiError("protocol", { what: "the answer is too long" });
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  #retryDelayMs(attempt: number, error: unknown): number {
    const wantedMs = error instanceof ApiError ? error.retryAfterMs : undefined;
    return wantedMs ?? jittered(backoffMs(attempt, retryDelays), this.#options.random);
  }
}

/**
 * True for the codes of OpenSSL's verification (Node's documentation of tls, "X509 certificate error codes") and of TLS
 * itself. After such an error davit reads the kubeconfig again, because the certificate authority in it may have
 * changed. davit notices such a change in no other way.
 */
function isOfCertificates(code = ""): boolean {
  return /^(CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|INVALID_CA$|ERR_TLS_|ERR_SSL_)/.test(code);
}

/** True if a retry is safe and may help. After a 429 it is safe, because the server did not process the request. */
function mayRetry({ method = "GET" }: ApiRequest, error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status === 429 || (method === "GET" && error.isTransient);
}

// RFC 9111 5.5: code, agent and quoted text. davit logs the text, which the API server writes for people.
const warning = /^\d{3} \S+ "((?:[^"\\]|\\.){1,1000})"/;

// The warnings of API servers are a small set. The limit is for a server that sends new ones again and again.
const maxKnown = 100;

/** Logs each warning in the headers of the API server once, such as about an API version that it will drop. */
class ApiWarnings {
  readonly #log: Log;
  readonly #known = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Takes the `Warning` header of an answer. */
  take(header: string | string[] | undefined): void {
    for (const value of [header ?? []].flat()) {
      const text = warning.exec(value)?.[1];
      if (text === undefined || this.#known.has(text) || this.#known.size >= maxKnown) continue;
      this.#known.add(text);
      this.#log.warn({ warning: text }, "the API server warns");
    }
  }
}
