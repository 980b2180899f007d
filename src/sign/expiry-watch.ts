/**
 * Logs that a key will expire, once a day from 30 days before on, and that it has expired. It checks at least once a
 * day, since the wall clock may be set meanwhile.
 */

import { type Clock, toRfc3339 } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { KeyInfo } from "./signing-key.ts";

const dayMs = 24 * 60 * 60 * 1_000;

/** Enough for people who are away for some weeks. */
const warnAheadMs = 30 * dayMs;

export interface ExpiryWatchOptions {
  readonly info: Pick<KeyInfo, "fingerprint" | "expiresAtMs">;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn" | "error">;
}

export class ExpiryWatch {
  readonly #options: ExpiryWatchOptions;
  readonly #stopping = new AbortController();

  /** Checks now, and from then on until `stop`. */
  constructor(options: ExpiryWatchOptions) {
    this.#options = options;
    const { expiresAtMs } = options.info;
    if (expiresAtMs !== undefined) void this.#follow(expiresAtMs);
  }

  /** True when the key no longer signs. */
  get hasExpired(): boolean {
    const { info, clock } = this.#options;
    return info.expiresAtMs !== undefined && info.expiresAtMs <= clock.nowMs();
  }

  /** A notice for a person; undefined while the end is far away. */
  get notice(): string | undefined {
    const { info, clock } = this.#options;
    const { expiresAtMs } = info;
    if (expiresAtMs === undefined || expiresAtMs - clock.nowMs() > warnAheadMs) return undefined;
    const when = toRfc3339(expiresAtMs);
    return this.hasExpired
      ? `the signing key expired at ${when}, nothing is signed`
      : `the signing key expires at ${when}`;
  }

  /** Idempotent. */
  stop(): void {
    this.#stopping.abort();
  }

  async #follow(expiresAtMs: number): Promise<void> {
    const { info, clock, log } = this.#options;
    const { signal } = this.#stopping;
    const data = { fingerprint: info.fingerprint, expiresAt: toRfc3339(expiresAtMs) };
    while (!signal.aborted) {
      const leftMs = expiresAtMs - clock.nowMs();
      if (leftMs <= 0) return log.error(data, "signing key has expired, nothing is signed");
      if (leftMs <= warnAheadMs) log.warn(data, "signing key expires soon");
      const untilNextMs = leftMs > warnAheadMs ? leftMs - warnAheadMs : leftMs;
      await clock.sleep(Math.min(untilNextMs, dayMs), signal);
    }
  }
}
