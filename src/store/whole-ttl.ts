/**
 * A client that has the answer to a write with a ttl has the whole ttl from then on, so it can refresh the node in
 * time. But the ttl counts from the time of the record, and the answer may come seconds later: the disk or etcd was
 * slow, or this member's reading of the leader's clock was behind. Before such an answer, the store logs `extend`.
 */

import type { Clock } from "../lib/clock.ts";
import type { ExtendCommand } from "./command/command.ts";
import type { LogMembership } from "./core/log-port.ts";
import { type NodeRecord, rootPath, type StorePath, segmentsOf } from "./core/node.ts";
import { StoreError } from "./core/refusal.ts";
import type { Applied } from "./replica.ts";
import { lastExpiryMs } from "./tree/expiring-set.ts";
import type { Tree } from "./tree/tree.ts";
import { descend, type TreeNode } from "./tree/tree-node.ts";

interface WholeTtlOptions {
  readonly tree: Tree;
  readonly clock: Clock;
  readonly membership: LogMembership;
  /** Logs and applies the command. @throws {StoreError} logFailed. */
  readonly extend: (command: ExtendCommand) => Promise<unknown>;
}

// davit promises the ttl less 100 ms. The other 50 ms are for the way of the answer to the client.
const mayLackMs = 50;
// The next `extend` may take twice as long as the last one. A node outlives its ttl by this at most.
const maxSpareMs = 1_000;
// As long as a write may wait for etcd.
const giveUpMs = 7_000;
const lookMs = 20;

export class WholeTtl {
  readonly #options: WholeTtlOptions;

  constructor(options: WholeTtlOptions) {
    this.#options = options;
  }

  /**
   * Executes a command with a ttl, once this member knows the leader's clock.
   * @param ttlSeconds of the command; undefined for a command without a ttl.
   * @param submit executes the command. @throws {StoreError} what `submit` throws; logFailed.
   */
  async keep(ttlSeconds: number | undefined, submit: () => Promise<Applied>): Promise<Applied> {
    const { clock } = this.#options;
    if (ttlSeconds === undefined || ttlSeconds <= 0) return await submit();
    await this.#clockKnown("Writing a key with a ttl");
    const beganAtMs = clock.monotonicMs();
    const applied = await submit();
    const { node } = applied.event;
    const endsAtMs = await this.#extendIfLate(node, ttlSeconds, beganAtMs);
    if (endsAtMs === undefined || endsAtMs === node.expiresAtMs) return applied;
    const event = { ...applied.event, node: { ...node, expiresAtMs: endsAtMs } };
    return { ...applied, events: [event], event };
  }

  /** @returns when the node ends. @throws {StoreError} logFailed. */
  async #extendIfLate(node: NodeRecord, ttlSeconds: number, beganAtMs: number): Promise<number | undefined> {
    const { clock, membership, extend } = this.#options;
    const wholeMs = ttlSeconds * 1_000;
    for (let sinceMs = beganAtMs; ; ) {
      await this.#clockKnown(written);
      const { endsAtMs, isOther } = this.#endOf(node);
      const atMs = membership.nowMs() + membership.behindMs;
      if (endsAtMs - atMs >= wholeMs - mayLackMs || endsAtMs >= lastExpiryMs) {
        return isOther ? node.expiresAtMs : endsAtMs;
      }
      const tookMs = clock.monotonicMs() - sinceMs;
      sinceMs = clock.monotonicMs();
      // A node that is missing has ended, or another client has removed it. One that was changed is no longer this
      // write's: if its writer was given up, nobody keeps its ttl.
      if (isOther || sinceMs - beganAtMs > giveUpMs) {
        throw new StoreError("logFailed", `${written}: it took too long to keep its ttl; try again`, 0);
      }
      const leftMs = Math.ceil(wholeMs + membership.behindMs + Math.min(2 * tookMs, maxSpareMs));
      await extend({ kind: "extend", path: node.path, modifiedIndex: node.modifiedIndex, leftMs });
    }
  }

  /** Returns when a written node ends. If another write followed, the later end of the two counts. */
  #endOf({ path, modifiedIndex, expiresAtMs = lastExpiryMs }: NodeRecord): { endsAtMs: number; isOther: boolean } {
    const found = this.#nodeAt(path);
    const foundEndsAtMs = found && (found.timer?.dueAtMs ?? lastExpiryMs);
    const isOther = found?.modifiedIndex !== modifiedIndex;
    return { isOther, endsAtMs: isOther ? Math.max(expiresAtMs, foundEndsAtMs ?? 0) : (foundEndsAtMs ?? expiresAtMs) };
  }

  #nodeAt(path: StorePath): TreeNode | undefined {
    const root = this.#options.tree.directoryAt(rootPath);
    return root && descend(root, segmentsOf(path));
  }

  /** Waits for a heartbeat that the leader wrote after this member asked for it. @throws {StoreError} logFailed. */
  async #clockKnown(doing: string): Promise<void> {
    const { clock, membership } = this.#options;
    const endsAtMs = clock.monotonicMs() + giveUpMs;
    while (membership.behindMs === Number.POSITIVE_INFINITY) {
      if (clock.monotonicMs() > endsAtMs) {
        throw new StoreError("logFailed", `${doing}: this member does not know the leader's time; try again later`, 0);
      }
      await clock.sleep(lookMs);
    }
  }
}

const written = "Writing a key with a ttl (the key may be written)";
