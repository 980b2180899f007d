/**
 * This member's lease, and its key among the members' keys, which ends with the lease. A member's URL identifies it, so
 * two davits with one URL would have one key. Only the run that made the key may write it.
 */

import type { Clock } from "../../lib/clock.ts";
import { type LogMember, WalError } from "../core/log-port.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import { bytesOf, type EtcdCompare, type EtcdKey, type EtcdTxn } from "./client/messages.ts";
import type { FormatLevel } from "./format-level.ts";
import type { Layout } from "./layout.ts";
import type { LeaderClock } from "./leader-clock.ts";
import { fieldsOf } from "./member-fields.ts";

export interface OwnMemberOptions {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly clock: Clock;
  readonly leaderClock: LeaderClock;
  readonly self: LogMember;
  /** The id of this process. */
  readonly run: string;
  readonly leaseSeconds: number;
  readonly formats: FormatLevel;
}

const keptQuestions = 16;
const lookMs = 250;
// etcd takes up to half a second to end a lease, and more while it is busy.
const graceMs = 5_000;
// A member counts its lease as ended this long before etcd may delete its keys.
const marginMs = 500;

export class OwnMember {
  readonly #options: OwnMemberOptions;
  #leaseId: bigint | undefined;
  /** The lease certainly lasts until this monotonic time. */
  #leaseEndsMs = 0;
  /** The revision in which the key was made. */
  #revision: number | undefined;
  /** The times that this run last wrote into the key. */
  #asked: readonly number[] = [];

  constructor(options: OwnMemberOptions) {
    this.#options = options;
  }

  /** The present lease; undefined before the first one. It may have ended. */
  get leaseId(): bigint | undefined {
    return this.#leaseId;
  }

  /** True while the lease certainly lasts. */
  get isAlive(): boolean {
    return this.#options.clock.monotonicMs() < this.#leaseEndsMs;
  }

  /** True if this run wrote the time into the key. An earlier run of this member had another clock. */
  hasAsked(atMs: number): boolean {
    return this.#asked.includes(atMs);
  }

  /**
   * Resolves once no other run has the key. A run that was killed has it until the end of its lease.
   * @throws {WalError} locked, when the other run lives. {EtcdError}
   */
  async free(signal: AbortSignal): Promise<void> {
    const { client, layout, clock, self, leaseSeconds } = this.#options;
    const untilMs = clock.monotonicMs() + leaseSeconds * 1_000 + graceMs;
    let first: EtcdKey | undefined;
    while (!signal.aborted) {
      const [found] = (await client.range({ key: layout.member(self.id) }, { signal })).keys;
      if (found === undefined || !this.#isOthers(found)) return;
      first ??= found;
      if (found.modRevision !== first.modRevision || clock.monotonicMs() > untilMs) throw this.#twin();
      await clock.sleep(lookMs, signal);
    }
  }

  /** Takes a lease, and the key under it. @throws {WalError} locked. {EtcdError} */
  async join(signal: AbortSignal): Promise<void> {
    const { client, clock, leaseSeconds } = this.#options;
    const askedAtMs = clock.monotonicMs();
    const lease = await client.leaseGrant(leaseSeconds, { signal });
    this.#leaseId = lease.id;
    this.#leaseHeld(askedAtMs, lease.ttlSeconds);
    await this.register(lease.id);
  }

  /** Renews the lease until it ends, or `signal` aborts. @throws {EtcdError} */
  async keepLease(signal: AbortSignal): Promise<void> {
    const { client, leaseSeconds } = this.#options;
    if (this.#leaseId === undefined) return;
    const renewals = client.keepAlive(this.#leaseId, { everyMs: (leaseSeconds * 1_000) / 3, signal });
    for await (const { sentAtMs, ttlSeconds } of renewals) this.#leaseHeld(sentAtMs, ttlSeconds);
  }

  /** Gives up the lease, and its keys with it. */
  async leave(): Promise<void> {
    if (this.#leaseId === undefined) return;
    try {
      await this.#options.client.leaseRevoke(this.#leaseId, { withinMs: 1_000 });
    } catch (error) {
      // Then the lease ends by itself.
      if (!(error instanceof EtcdError)) throw error;
    }
  }

  /** Makes the key under a lease, or puts the own one under this lease. @throws {WalError} locked. {EtcdError} */
  async register(lease: bigint): Promise<void> {
    const { client, layout, self } = this.#options;
    const key = layout.member(self.id);
    for (let createRevision = 0; ; ) {
      const answer = await client.txn(
        {
          when: [{ key, is: "equal", createRevision }],
          success: [{ put: { key, value: this.#value(), lease } }],
          failure: [{ range: { key } }],
        },
        { repeat: true },
      );
      const found = answer.answers[0]?.keys[0];
      if (answer.succeeded) {
        this.#revision = createRevision === 0 ? answer.header.revision : createRevision;
        return;
      }
      if (found !== undefined && this.#isOthers(found)) throw this.#twin();
      createRevision = found?.createRevision ?? 0;
    }
  }

  /** True in etcd as long as the key is the one that this run has made. */
  get condition(): EtcdCompare {
    const { layout, self } = this.#options;
    return { key: layout.member(self.id), is: "equal", createRevision: this.#revision ?? -1 };
  }

  /** A transaction that writes the own time into the key, and fails when the key is another one. */
  renewal(lease: bigint): EtcdTxn {
    const { layout, self } = this.#options;
    return {
      when: [this.condition],
      success: [{ put: { key: layout.member(self.id), value: this.#value(), lease } }],
    };
  }

  #leaseHeld(fromMs: number, ttlSeconds: number): void {
    this.#leaseEndsMs = fromMs + ttlSeconds * 1_000 - marginMs;
  }

  #value(): Uint8Array {
    const { self, leaderClock, run, formats } = this.#options;
    const askedAtMs = leaderClock.ownMs;
    this.#asked = [...this.#asked.slice(1 - keptQuestions), askedAtMs];
    return bytesOf(JSON.stringify({ ...self, run, askedAtMs, format: formats.known }));
  }

  /** True if another run wrote the key. This run overwrites a key that no davit wrote. */
  #isOthers(key: EtcdKey): boolean {
    const run = fieldsOf(key)?.run;
    return typeof run === "string" && run !== this.#options.run;
  }

  #twin(): WalError {
    const [url = ""] = this.#options.self.clientUrls;
    const advice = "give each davit a --store-advertise-url of its own, or stop the other one";
    return new WalError("locked", `Joining the store in etcd: another davit with the URL ${url} runs; ${advice}`);
  }
}
