/**
 * Asks the members of a store short questions, one member after the other, for as long as a machine waits. If there are
 * more questions than connections, clients take turns, so that nobody who floods a follower keeps others waiting.
 */

import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { text } from "node:stream/consumers";
import type { Clock } from "../lib/clock.ts";
import { Deadline } from "../lib/deadline.ts";
import { assert } from "../lib/errors.ts";
import { Places } from "../lib/fair-queue.ts";
import type { Log } from "../lib/log.ts";
import { Shares } from "../lib/shares.ts";
import { networkOf } from "../lib/text/address.ts";
import { type AskWriter, permitQuestions } from "../model/permits/permit-wire.ts";
import { FollowError } from "./follow-error.ts";
import { answerTo, asFollowError, askStore, type StoreCredentials } from "./store-request.ts";

interface WritersOptions {
  /** Of the store's members; at least one. */
  readonly urls: readonly URL[];
  /** Reads the credentials. An error fails the questions of the next seconds. */
  readonly credentials: () => Promise<StoreCredentials>;
  readonly clock: Clock;
  readonly log: Log;
  /** `permits` unless given. A failure with what the writer only shows harms no machine, and is logged as `debug`. */
  readonly about?: "permits" | "shown";
  /** How long a question may take; 1 s unless given. */
  readonly limitMs?: number;
  /** The most questions at a time; 512 unless given. One client has at most half of these places. */
  readonly maxAsking?: number;
}

const presetLimitMs = 1_000;
const presetMaxAsking = 512;
/** Connections to each member. They stay open: a handshake for each machine would cost more than the question. */
const maxConnections = 32;
/** How long credentials are used that were read from files. */
const credentialsMs = 5_000;

export class Writers {
  readonly #options: WritersOptions;
  readonly #agents = {
    "http:": new HttpAgent({ keepAlive: true, maxSockets: maxConnections }),
    "https:": new HttpsAgent({ keepAlive: true, maxSockets: maxConnections }),
  };
  readonly #stopping = new AbortController();
  #credentials: { readonly readAtMs: number; readonly value: Promise<StoreCredentials> } | undefined;
  /** Index of the member that is asked first. */
  #at = 0;
  /** The questions, by client. */
  readonly #asked: Shares;
  readonly #connections = new Places(maxConnections);
  #problem = "";

  constructor(options: WritersOptions) {
    this.#options = options;
    this.#asked = new Shares({ limit: options.maxAsking ?? presetMaxAsking });
  }

  /** Asks for a machine. @returns the answer of the first member that answers; undefined if none does in time. */
  readonly ask: AskWriter = async (name, asked) => {
    const { path, decodeAnswer } = permitQuestions[name];
    const { address } = asked;
    // Questions without an address count as those of one client.
    const client = address === undefined ? undefined : networkOf(address);
    const answer = await this.#ask(path, JSON.stringify(asked), client);
    return answer === undefined ? undefined : decodeAnswer(answer);
  };

  /**
   * Sends a text to a path. @returns the answer, as `ask`.
   * @param textOf returns the text to send. It is called when there is a connection, for each attempt.
   */
  async askBy(path: string, textOf: () => string): Promise<string | undefined> {
    return await this.#ask(path, textOf, undefined);
  }

  async #ask(path: string, body: string | (() => string), client: string | undefined): Promise<string | undefined> {
    const { clock, limitMs = presetLimitMs } = this.#options;
    if (this.#stopping.signal.aborted || !this.#asked.take(client)) return undefined;
    const deadline = new Deadline({ clock, durationMs: limitMs });
    const signal = AbortSignal.any([deadline.signal, this.#stopping.signal]);
    const over = new Promise<undefined>((resolve) => {
      signal.addEventListener("abort", () => resolve(undefined), { once: true });
    });
    try {
      return await Promise.race([this.#connections.run([client ?? ""], () => this.#askEach(path, body, signal)), over]);
    } finally {
      deadline.cancel();
      this.#asked.release(client);
    }
  }

  /** How many questions wait for an answer. */
  get asking(): number {
    return this.#asked.total;
  }

  /** Ends every question. Idempotent. */
  stop(): void {
    this.#stopping.abort();
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  async #askEach(path: string, body: string | (() => string), signal: AbortSignal): Promise<string | undefined> {
    const { urls } = this.#options;
    // A member may close a connection just when it is used again. So even a single member is asked twice.
    for (let attempt = 0; attempt < Math.max(urls.length, 2) && !signal.aborted; attempt++) {
      const at = this.#at;
      const url = urls[at];
      assert(url !== undefined, "A follower has a store");
      try {
        const answer = await this.#askOne(new URL(path, url), body, signal);
        this.#problem = "";
        return answer;
      } catch (error) {
        this.#logFailure(url, signal.aborted ? new FollowError("silent") : asFollowError(error));
        // The next question begins with the next member, even if another one failed meanwhile.
        if (this.#at === at) this.#at = (at + 1) % urls.length;
      }
    }
    return undefined;
  }

  async #askOne(target: URL, body: string | (() => string), signal: AbortSignal): Promise<string> {
    const credentials = await this.#currentCredentials();
    const agent = target.protocol === "https:" ? this.#agents["https:"] : this.#agents["http:"];
    const sent = askStore(target, credentials, { method: "POST", agent, signal });
    return await text(await answerTo(sent, body));
  }

  async #currentCredentials(): Promise<StoreCredentials> {
    const { clock, credentials } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#credentials === undefined || nowMs - this.#credentials.readAtMs > credentialsMs)
      this.#credentials = { readAtMs: nowMs, value: credentials() };
    try {
      return await this.#credentials.value;
    } catch (error) {
      throw new FollowError("credentials", undefined, { cause: error });
    }
  }

  /** Logs a failure, unless the last one was the same. */
  #logFailure({ origin: store }: URL, error: unknown): void {
    if (this.#stopping.signal.aborted) return;
    const known = error instanceof FollowError;
    const problem = known ? `${store} ${error.reason} ${error.detail}` : "bug";
    if (problem === this.#problem) return;
    this.#problem = problem;
    const { log, about = "permits" } = this.#options;
    const data = known ? { store, reason: error.reason, why: error.detail } : {};
    if (known && about === "permits") log.warn(data, "permits cannot be asked for, installs wait");
    else if (known) log.debug(data, "what machines asked cannot be handed on");
    else log.error({ err: error }, "asking for permits failed");
  }
}
