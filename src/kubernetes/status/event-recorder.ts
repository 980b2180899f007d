/**
 * Events, by which `kubectl describe` shows when an object got into trouble and out of it. davit writes few events,
 * never the same one within ten minutes, and none for an object that waits for another for only a moment. It drops an
 * event that cannot be written.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Condition, ObjectName } from "../../model/source.ts";
import { ApiError } from "../client/api-error.ts";
import type { ApiClient } from "../client/client.ts";
import { eventObject, eventsPath, resources } from "../client/resources.ts";

export interface EventRecorderOptions {
  readonly client: Pick<ApiClient, "json">;
  readonly clock: Clock;
  /** From 0 to below 1, uniformly. */
  readonly random: () => number;
  readonly log: Log;
  /** Which davit writes: the name of the pod or of the machine. */
  readonly instance: string;
}

/** An object's Ready condition before and after a change of its status. */
export interface Transition {
  readonly object: ObjectName;
  readonly uid: string;
  /** As it was shown; undefined for an object without a status. */
  readonly before: JsonObject | undefined;
  readonly after: Pick<Condition, "status" | "reason" | "message">;
}

// kubectl applies files in order of name, so a Group may come before its Profile and a Profile before its ConfigMap.
const passing: ReadonlySet<string> = new Set(["ProfileNotFound", "TemplateNotFound"]);
const graceMs = 5_000;
// Of more at once, the rate limit would pass fewer than this.
const maxWaiting = 256;
const repeatMs = 600_000;
// A bound on recorded events: beyond it davit may repeat the oldest.
const maxRemembered = 4_096;
// The API server keeps events for an hour and has other work; a burst is enough to show what happened.
const rate = { perSecond: 5, burst: 50 };
// events.k8s.io/v1 allows 1 KiB.
const maxNoteLength = 1_000;

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #bucket: TokenBucket;
  /** Monotonic time at which an event was written, by object and reason; the oldest first. */
  readonly #sentAtMs = new Map<string, number>();
  /** By uid: events that are written unless the trouble is over soon. */
  readonly #waiting = new Map<string, Transition>();
  readonly #stopping = new AbortController();
  readonly #sending = new Set<Promise<void>>();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket({ clock: options.clock, ...rate });
  }

  /** Records a change to trouble, from one trouble to another, or out of it; other changes are no events. */
  record({ before, ...transition }: Transition): void {
    const { uid, after } = transition;
    // A trouble that ended before its event was written needs no event.
    const waiting = this.#waiting.get(uid);
    this.#waiting.delete(uid);
    const whole = { ...transition, before: waiting === undefined ? before : waiting.before };
    if (!isTransition(whole)) return;
    if (!passing.has(after.reason)) this.#track(this.#sendOnce(whole));
    else if (this.#waiting.size < maxWaiting) this.#track(this.#sendLater(whole));
  }

  async #sendLater(transition: Transition): Promise<void> {
    const { uid } = transition;
    this.#waiting.set(uid, transition);
    await this.#options.clock.sleep(graceMs, this.#stopping.signal);
    if (this.#stopping.signal.aborted || this.#waiting.get(uid) !== transition) return;
    this.#waiting.delete(uid);
    await this.#sendOnce(transition);
  }

  async #sendOnce(transition: Transition): Promise<void> {
    if (!this.#wasSent(transition) && this.#bucket.tryTake()) await this.#send(transition);
  }

  #track(work: Promise<void>): void {
    const sending = work.finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
  }

  /** Idempotent; gives up running writes. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#sending);
  }

  #wasSent({ uid, after }: Transition): boolean {
    const key = `${uid} ${after.reason}`;
    const nowMs = this.#options.clock.monotonicMs();
    const sentAtMs = this.#sentAtMs.get(key);
    if (sentAtMs !== undefined && nowMs - sentAtMs < repeatMs) return true;
    this.#sentAtMs.delete(key);
    this.#sentAtMs.set(key, nowMs);
    const [oldest] = this.#sentAtMs.keys();
    if (this.#sentAtMs.size > maxRemembered && oldest !== undefined) this.#sentAtMs.delete(oldest);
    return false;
  }

  async #send(transition: Transition): Promise<void> {
    const { client, log } = this.#options;
    const { namespace } = transition.object;
    try {
      await client.json({
        method: "POST",
        path: eventsPath(namespace),
        body: { contentType: "application/json", value: this.#event(transition) },
        signal: this.#stopping.signal,
        retries: 0,
      });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // The status says the same, and stays.
      log.debug({ problem: error.message }, "could not write an event");
    }
  }

  #event({ object, uid, after }: Transition): object {
    const { clock, random, instance } = this.#options;
    const { kind, namespace, name } = object;
    const suffix = `${clock.nowMs().toString(16)}${Math.floor(random() * 2 ** 32).toString(16)}`;
    return eventObject(clock.nowMs(), {
      // An object's name may be as long as an event's: the suffix needs room.
      metadata: { namespace, name: `${name.slice(0, 220)}.${suffix}` },
      reportingInstance: instance.slice(0, 128),
      action: "Reconcile",
      reason: after.reason,
      regarding: { apiVersion: resources[kind].apiVersion, kind, namespace, name, uid },
      // A held Group is intended.
      type: after.status === "True" || after.reason === "Held" ? "Normal" : "Warning",
      note: after.message.slice(0, maxNoteLength),
    });
  }
}

/** A first status that is ready is no transition: ten thousand of them would hide the rest. */
function isTransition({ before, after }: Transition): boolean {
  const wasInTrouble = before !== undefined && before.status !== "True";
  if (after.status === "True") return wasInTrouble;
  return !wasInTrouble || before.reason !== after.reason;
}
