/**
 * Logs once a day that a key expires soon, from 30 days before its end. Logs once that the key has expired. It checks
 * at least once a day, because the wall clock may be set in the meantime.
 */

import { type Clock, toRfc3339 } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { KeyInfo } from "./signing-key.ts";

const dayMs = 24 * 60 * 60 * 1_000;

/** This is enough for people who are away for some weeks. */
const warnAheadMs = 30 * dayMs;

interface ExpiryWatchOptions {
  readonly info: Pick<KeyInfo, "fingerprint" | "expiresAtMs">;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn" | "error">;
}

export class ExpiryWatch {
  readonly #options: ExpiryWatchOptions;
  readonly #stopping = new AbortController();

  /** Checks immediately, and then again until `stop` or the end of the key. */
  constructor(options: ExpiryWatchOptions) {
    this.#options = options;
    const { expiresAtMs } = options.info;
    if (expiresAtMs !== undefined) void this.#follow(expiresAtMs);
  }

  /** True if the key has expired: davit signs nothing with it. */
  get hasExpired(): boolean {
    const { info, clock } = this.#options;
    return info.expiresAtMs !== undefined && info.expiresAtMs <= clock.nowMs();
  }

  /** A notice for the operator. Undefined until 30 days before the end, and for a key that never expires. */
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
