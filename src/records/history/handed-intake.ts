/**
 * Takes the requests that followers hand on into the history, at a limited rate: davit has more important work. A
 * follower sends the others again, and drops its oldest ones if they become too many. davit checks every value, because
 * it shows them: a follower can be of another version, or not be one.
 */

import type { Clock } from "../../lib/clock.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import type { HistoryBatch } from "../../model/history-batch.ts";
import type { JsonValue } from "../../model/json.ts";
import { normalizeMac } from "../../model/labels/hardware-ids.ts";
import { type Labels, reservedLabels } from "../../model/labels/labels.ts";
import { sightingForms } from "../../model/sighting.ts";
import type { History } from "./history.ts";
import type { SeenRequest } from "./request.ts";
import { requestOf } from "./request-text.ts";
import { keptValue } from "./sent-labels.ts";

interface HandedIntakeOptions {
  readonly history: Pick<History, "isTaking" | "load" | "add" | "miss">;
  readonly clock: Clock;
}

interface TakenRun {
  /** The number of the first request that is not taken yet. */
  next: number;
  /** How many requests the follower has dropped. */
  dropped: number;
}

const rate = { perSecond: 1_000, burst: 2_048 } as const;
/** This many requests take less than a millisecond. */
const sliceSize = 32;
/** davit remembers how far it has taken the requests of this many runs of followers. */
const maxRuns = 4_096;

export class HandedIntake {
  readonly #options: HandedIntakeOptions;
  readonly #bucket: TokenBucket;
  /** How far the requests are taken, by the run of their follower; the last one heard is last. */
  readonly #runs = new Map<string, TakenRun>();

  constructor(options: HandedIntakeOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket({ clock: options.clock, ...rate });
  }

  /**
   * Adds the requests of a batch to the history, apart from those that it has taken before.
   * @param arrivedMs by the monotonic clock.
   * @returns how many requests of the batch are done with, from its first one on.
   */
  async take(batch: HistoryBatch, arrivedMs: number): Promise<number> {
    const { history } = this.#options;
    const { via, first, agoMs, requests } = batch;
    if (!history.isTaking) {
      // Requests before the start of this davit come first.
      void history.load();
      return 0;
    }
    const run = this.#runOf(batch);
    const from = Math.min(Math.max(run.next - first, 0), requests.length);
    let to = from;
    while (to < requests.length && this.#bucket.tryTake()) to++;
    // At once, because the follower may send the batch again before it is added.
    run.next = Math.max(run.next, first + to);
    const slices = new Slices(sliceSize);
    for (let at = from; at < to; at++) {
      if (!history.isTaking) return at;
      const seen = decodeHanded(requests[at] ?? null, arrivedMs, agoMs[at] ?? 0);
      if (seen !== undefined) history.add({ ...seen, via });
      if (slices.isOver(1)) await nextTurn();
    }
    return to;
  }

  #runOf({ run, dropped }: HistoryBatch): TakenRun {
    const known = this.#runs.get(run) ?? { next: 0, dropped: 0 };
    this.#options.history.miss(Math.max(0, dropped - known.dropped));
    known.dropped = Math.max(dropped, known.dropped);
    this.#runs.delete(run);
    this.#runs.set(run, known);
    if (this.#runs.size > maxRuns) {
      const [oldest = run] = this.#runs.keys();
      this.#runs.delete(oldest);
    }
    return known;
  }
}

/** A request of an earlier day is of no use. */
const maxAgeMs = 24 * 60 * 60_000;

/** Reads a request. @returns undefined if the history could not show it. */
function decodeHanded(value: JsonValue, arrivedMs: number, agoMs: number): SeenRequest | undefined {
  if (!Array.isArray(value) || !isBetween(agoMs, 0, maxAgeMs)) return undefined;
  const seen = requestOf(value, arrivedMs - agoMs);
  if (seen === undefined || !isSound(seen) || !areSound(seen.labels)) return undefined;
  // Its answer had ended before the follower sent it.
  return { ...seen, durationMs: Math.min(seen.durationMs, agoMs) };
}

const endpointForm = /^[\w./:-]{1,64}$/;
const pathForm = /^[\x21-\x7e\xa0-\xff]{1,512}$/;

function isSound(seen: SeenRequest): boolean {
  const { durationMs, address, endpoint, path, status, refusal, group, profile, script, sentBytes, ofBytes = 0 } = seen;
  return (
    isBetween(durationMs, 0, maxAgeMs) &&
    isBetween(sentBytes, 0, Number.MAX_SAFE_INTEGER) &&
    isBetween(ofBytes, 0, Number.MAX_SAFE_INTEGER) &&
    Number.isInteger(status) &&
    isBetween(status, 100, 599) &&
    sightingForms.address.test(address) &&
    endpointForm.test(endpoint) &&
    (path === undefined || pathForm.test(path)) &&
    (refusal === undefined || sightingForms.result.test(refusal)) &&
    (group === undefined || sightingForms.group.test(group)) &&
    (profile === undefined || sightingForms.profile.test(profile)) &&
    (script === undefined || sightingForms.script.test(script))
  );
}

function areSound(labels: Labels | undefined): boolean {
  if (labels === undefined) return true;
  const isKept = [...labels.keys()].every((name) => reservedLabels.has(name) && keptValue(labels, name) !== undefined);
  const { mac, uuid } = Object.fromEntries(labels);
  return isKept && (mac === undefined || normalizeMac(mac) === mac) && (uuid === undefined || isLower(uuid));
}

function isLower(uuid: string): boolean {
  return uuid.toLowerCase() === uuid;
}

function isBetween(value: number, least: number, most: number): boolean {
  return value >= least && value <= most;
}
