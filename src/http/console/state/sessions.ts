/**
 * The sessions of the console. In their cookies, browsers have random values that stand for tokens. If there are too
 * many sessions, a new one ends the oldest of the user with the most.
 */

import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../../lib/clock.ts";
import { Shares } from "../../../lib/shares.ts";
import { tokenDigest } from "../../guard/tokens.ts";

interface Session {
  readonly token: string;
  readonly user: string;
}

const maxSessions = 1_024;
/** A session ends when nothing is asked for this long. */
const sessionMs = 12 * 60 * 60_000;

export class Sessions {
  /** By the digests of their cookies, so that a look-up does not reveal how much of a guess is right. */
  readonly #sessions: LRUCache<string, Session>;
  /** How many each user has. */
  readonly #shares = new Shares({ limit: maxSessions });

  constructor({ clock }: { readonly clock: Pick<Clock, "monotonicMs"> }) {
    this.#sessions = new LRUCache({
      max: maxSessions,
      ttl: sessionMs,
      updateAgeOnGet: true,
      perf: { now: () => clock.monotonicMs() },
      dispose: ({ user }) => this.#shares.release(user),
    });
  }

  /** Begins a session. @returns the value of its cookie. */
  begin(session: Session): string {
    if (this.#sessions.size >= maxSessions) this.#makeRoom();
    const value = randomBytes(32).toString("base64url");
    this.#sessions.set(keyOf(value), session);
    this.#shares.add(session.user, 1);
    return value;
  }

  /** The token of a session; undefined if the session has ended. @param value of the cookie. */
  tokenOf(value: string): string | undefined {
    return this.#sessions.get(keyOf(value))?.token;
  }

  /** Ends a session. Idempotent. @param value of the cookie. */
  end(value: string): void {
    this.#sessions.delete(keyOf(value));
  }

  #makeRoom(): void {
    this.#sessions.purgeStale();
    if (this.#sessions.size < maxSessions) return;
    const [largest] = this.#shares.largest ?? [];
    for (const key of this.#sessions.rkeys()) {
      if (this.#sessions.peek(key)?.user === largest) return void this.#sessions.delete(key);
    }
  }
}

function keyOf(value: string): string {
  return tokenDigest(value).toString("base64");
}
