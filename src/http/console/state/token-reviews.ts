/**
 * Asks the API server to which accounts the Kubernetes tokens of visitors belong. Few reviews run at a time, so that
 * whoever guesses tokens does not load the API server. The others wait: tokens that were admitted before take turns
 * with new ones, and in each of the two kinds, clients take turns. So nobody who guesses tokens ends a session or keeps
 * others from signing in.
 */

import { LRUCache } from "lru-cache";
import type { Clock } from "../../../lib/clock.ts";
import { FairQueue } from "../../../lib/fair-queue.ts";
import { Shares } from "../../../lib/shares.ts";
import type { CallerReview, ClusterCallers } from "../../../model/cluster-callers.ts";
import type { Holder } from "../../client-shares.ts";
import { tokenDigest } from "../../guard/tokens.ts";

/** How long the API server's answer about an account counts. */
export const reviewMs = 30_000;
export const maxReviews = 1_024;
const maxRunning = 4;
/** The most reviews of new tokens that wait or run. One client has at most half of these places. */
const maxNew = 64;

export class TokenReviews {
  /** Reviews of tokens that the API server knows, by the digests of the tokens. */
  readonly #known: LRUCache<string, CallerReview>;
  /** Reviews that wait or run. */
  readonly #pending = new Map<string, Promise<CallerReview>>();
  readonly #queue = new FairQueue<() => void>();
  readonly #newOnes = new Shares({ limit: maxNew });
  #running = 0;

  constructor({ clock }: { readonly clock: Pick<Clock, "monotonicMs"> }) {
    const perf = { now: () => clock.monotonicMs() };
    // An old review still says that its token was admitted.
    this.#known = new LRUCache({ max: maxReviews, ttl: reviewMs, perf, noDeleteOnStaleGet: true });
  }

  /**
   * Returns what the API server says of a token, or said in the last 30 s.
   * @returns undefined if too many tokens wait.
   */
  async of(token: string, client: Holder, callers: ClusterCallers): Promise<CallerReview | undefined> {
    const key = tokenDigest(token).toString("base64");
    const found = this.#known.get(key) ?? this.#pending.get(key);
    if (found !== undefined) return await found;
    const isNew = this.#known.peek(key, { allowStale: true })?.kind !== "admitted";
    if (isNew && !this.#newOnes.take(client)) return undefined;
    const review = this.#inTurn([isNew ? "new" : "admitted", client ?? ""], () => callers.review(token));
    this.#pending.set(key, review);
    try {
      const { kind } = await review;
      if (kind === "unknown") this.#known.delete(key);
      else if (kind !== "away") this.#known.set(key, await review);
      return await review;
    } finally {
      this.#pending.delete(key);
      if (isNew) this.#newOnes.release(client);
    }
  }

  async #inTurn(names: readonly string[], ask: () => Promise<CallerReview>): Promise<CallerReview> {
    if (this.#running < maxRunning) this.#running += 1;
    else await new Promise<void>((resolve) => this.#queue.push(names, resolve));
    try {
      return await ask();
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
