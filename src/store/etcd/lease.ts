/** Leases of this process, and the keys that end with them: those of a member, and that of a command. */

import {
  type EtcdCompare,
  EtcdError,
  type EtcdKey,
  type EtcdTxn,
} from "../../../packages/etcd-client/src/etcd-client.ts";
import { object, optional, text } from "../../lib/shape.ts";
import { type LogMember, WalError } from "../core/log-port.ts";
import type { LogPlace } from "./layout.ts";
import type { LeaderClock } from "./leader-clock.ts";
import { valueIn } from "./members.ts";

export interface OwnMemberOptions extends LogPlace {
  readonly leaderClock: LeaderClock;
  readonly self: LogMember;
  /** The id of this process. */
  readonly run: string;
  readonly leaseSeconds: number;
}

const keptQuestions = 16;
const lookMs = 250;
// etcd takes up to half a second to end a lease, and more while it is busy.
const graceMs = 5_000;
// A member counts its lease as ended this long before etcd may delete its keys.
const marginMs = 500;

/**
 * This member's lease, and its key among the members' keys. A member's URL identifies it, so two davits with one URL
 * would have one key. Only the run that made the key may write it.
 */
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
      if (found.modRevision !== first.modRevision || clock.monotonicMs() > untilMs) throw this.#inUse();
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
      if (found !== undefined && this.#isOthers(found)) throw this.#inUse();
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

  #value(): string {
    const { self, leaderClock, run } = this.#options;
    const askedAtMs = leaderClock.ownMs;
    this.#asked = [...this.#asked.slice(1 - keptQuestions), askedAtMs];
    return JSON.stringify({ ...self, run, askedAtMs });
  }

  /** True if another run wrote the key. This run overwrites a key that no davit wrote. */
  #isOthers(key: EtcdKey): boolean {
    const run = valueIn(object({ run: text }), key)?.run;
    return run !== undefined && run !== this.#options.run;
  }

  #inUse(): WalError {
    const [url = ""] = this.#options.self.clientUrls;
    const advice = "give each davit a --store-advertise-url of its own, or stop the other one";
    return new WalError("locked", `Joining the store in etcd: another davit with the URL ${url} runs; ${advice}`);
  }
}

/** A log that no davit uses, held so that none leads it while it is read or written as a whole. */
export interface HeldLog {
  /** The revision in which the key of the leader was made: a fence, as in `Election`. */
  readonly revision: number;
  /** Idempotent. */
  release(): Promise<void>;
}

const holdSeconds = 10;
const holder = "davit migrate-store or restore";

/** @throws {EtcdError}; {WalError} locked when a davit uses the log. */
export async function holdLog(options: LogPlace): Promise<HeldLog> {
  const { client, layout } = options;
  await refuseInUse(options);
  const { id: lease } = await client.leaseGrant(holdSeconds);
  const answer = await client.txn(
    {
      when: [{ key: layout.leader, is: "equal", createRevision: 0 }],
      success: [{ put: { key: layout.leader, value: JSON.stringify({ id: holder }), lease } }],
      failure: [{ range: { key: layout.leader } }],
    },
    { repeat: true },
  );
  const found = answer.answers[0]?.keys[0];
  // A first try without an answer may have made the key.
  if (!answer.succeeded && found?.lease !== lease) throw inUse(holder);
  const ending = new AbortController();
  const renewing = renew(options, lease, ending.signal);
  const release = async () => {
    ending.abort();
    await renewing;
    await unlessGone(client.leaseRevoke(lease, { withinMs: 1_000 }));
  };
  return { revision: answer.succeeded ? answer.header.revision : (found?.createRevision ?? 0), release };
}

/** @param isHeld true if this process has the key of the leader. @throws {EtcdError}; {WalError} locked. */
export async function refuseInUse({ client, layout }: LogPlace, isHeld = false): Promise<void> {
  const { keys } = await client.range(layout.membership);
  // The last key is that of a member, which has a name, if there is one.
  const isUsers = (key: string) => layout.memberId(key) !== undefined || (!isHeld && key === layout.leader);
  const user = keys.findLast(({ key }) => isUsers(key));
  if (user === undefined) return;
  const { id, name = id } = valueIn(object({ id: optional(text), name: optional(text) }), user) ?? {};
  throw inUse(name ?? user.key);
}

async function renew({ client }: LogPlace, lease: bigint, signal: AbortSignal): Promise<void> {
  const renewals = client.keepAlive(lease, { everyMs: (holdSeconds * 1_000) / 3, signal });
  const all = async () => {
    for await (const _renewal of renewals);
  };
  await unlessGone(all());
}

/** Work whose failure the next fenced write shows. */
async function unlessGone(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof EtcdError)) throw error;
  }
}

function inUse(user: string): WalError {
  const advice = "stop every davit that uses this prefix, wait ten seconds, and try again";
  return new WalError("locked", `Locking the log in etcd: "${user}" uses it; ${advice}`);
}

/** @throws {EtcdError}; {WalError} unusable, if `davit migrate-store` moved the store to another place. */
export async function refuseMoved({ client, layout }: Pick<LogPlace, "client" | "layout">): Promise<void> {
  const [mark] = (await client.range({ key: layout.moved })).keys;
  if (mark !== undefined) throw layout.movedTo(mark);
}
