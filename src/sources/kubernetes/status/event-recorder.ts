/**
 * Writes events, by which `kubectl describe` shows when an object's trouble began and ended. davit writes few events.
 * It does not repeat an event within ten minutes, as long as it remembers the event (`maxRemembered`). An object that
 * waits only a moment for another one gets no event. davit drops an event that it cannot write.
 */

import type { Ports } from "../../../lib/ports.ts";
import { TokenBucket } from "../../../lib/token-bucket.ts";
import type { JsonObject } from "../../../model/json.ts";
import type { Condition, EventSink, NotedEvent, ObjectName } from "../../../model/objects/source.ts";
import { ApiError } from "../client/api-error.ts";
import type { ApiClient } from "../client/client.ts";
import { eventObject, eventsPath, resources } from "../client/resources.ts";

interface EventRecorderOptions extends Pick<Ports, "clock" | "log" | "random"> {
  readonly client: Pick<ApiClient, "json">;
  /** The name of the pod or host in which this davit runs. */
  readonly instance: string;
}

/** A condition of an object before and after a change of its status: `Ready`, or `Installed` of a Machine. */
export interface Transition {
  readonly object: ObjectName;
  readonly uid: string;
  /** The condition that was shown; undefined for an object without a status. */
  readonly before: JsonObject | undefined;
  readonly after: Pick<Condition, "status" | "reason" | "message">;
}

// Reasons that often last only a moment: kubectl applies files in the order of their names, so a Group may arrive
// before its Profile, and a Profile before its ConfigMap.
const passing: ReadonlySet<string> = new Set(["ProfileNotFound", "TemplateNotFound"]);
// What people or objects want is no trouble: a hold, and an install on its way.
const intended: ReadonlySet<string> = new Set(["Held", "Claimed", "Installing"]);
const graceMs = 5_000;
// How many events may wait. The rate limit permits fewer in one burst, so it would drop further events anyway.
const maxWaiting = 256;
const repeatMs = 600_000;
// How many written events davit remembers. It may write a forgotten event again within ten minutes.
const maxRemembered = 4_096;
// Few, because the API server keeps events for an hour and has other work. A burst is enough to show what happened.
const rate = { perSecond: 5, burst: 50 };
// events.k8s.io/v1 allows 1 KiB.
const maxNoteLength = 1_000;

export class EventRecorder implements EventSink {
  readonly #options: EventRecorderOptions;
  readonly #bucket: TokenBucket;
  /** By object and reason: the monotonic time at which an event was written. The oldest is first. */
  readonly #sentAtMs = new Map<string, number>();
  /** By uid: events that davit writes only if the trouble lasts longer than a moment. */
  readonly #waiting = new Map<string, Transition>();
  readonly #stopping = new AbortController();
  readonly #sending = new Set<Promise<void>>();
  /** True after a 403, until davit writes an event: the log names the missing right once. */
  #isRefused = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket({ clock: options.clock, ...rate });
  }

  /** Writes an event if trouble begins, changes its reason or ends. Other changes of a status are no events. */
  record({ before, ...transition }: Transition): void {
    const { uid, after } = transition;
    // Trouble that ended before its event was written needs no event.
    const waiting = this.#waiting.get(uid);
    this.#waiting.delete(uid);
    const whole = { ...transition, before: waiting === undefined ? before : waiting.before };
    if (!isTransition(whole)) return;
    if (!passing.has(after.reason)) this.#track(this.#sendOnce(whole));
    else if (this.#waiting.size < maxWaiting) this.#track(this.#sendLater(whole));
  }

  /** Writes an event that no condition shows. The caller limits the rate. */
  note(event: NotedEvent): void {
    this.#track(this.#send(event));
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
    if (this.#wasSent(transition) || !this.#bucket.tryTake()) return;
    const { object, uid, after } = transition;
    const { status, reason, message } = after;
    await this.#send({ object, uid, reason, message, isTrouble: status !== "True" && !intended.has(reason) });
  }

  #track(work: Promise<void>): void {
    const sending = work.finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
  }

  /** Cancels running writes. Idempotent. */
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

  async #send(event: NotedEvent): Promise<void> {
    const { client, log } = this.#options;
    const { namespace } = event.object;
    try {
      await client.json({
        method: "POST",
        path: eventsPath(namespace),
        body: { contentType: "application/json", value: this.#event(event) },
        signal: this.#stopping.signal,
        retries: 0,
      });
      this.#isRefused = false;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // The lost event does little harm, because the status has the same text.
      const level = error.status === 403 && !this.#isRefused ? "warn" : "debug";
      log[level]({ problem: error.message }, "could not write an event");
      this.#isRefused = error.status === 403;
    }
  }

  #event({ object, uid, reason, message, isTrouble }: NotedEvent): object {
    const { clock, random, instance } = this.#options;
    const { kind, namespace, name } = object;
    const suffix = `${clock.nowMs().toString(16)}${Math.floor(random() * 2 ** 32).toString(16)}`;
    return eventObject(clock.nowMs(), {
      // Names of objects and events have the same limit, so a long name is cut to make room for the suffix.
      metadata: { namespace, name: `${name.slice(0, 220)}.${suffix}` },
      reportingInstance: instance.slice(0, 128),
      action: "Reconcile",
      reason,
      regarding: { apiVersion: resources[kind].apiVersion, kind, namespace, name, uid },
      type: isTrouble ? "Warning" : "Normal",
      note: message.slice(0, maxNoteLength),
    });
  }
}

/**
 * True for a change that gets an event. A first status that is ready gets none, because 10,000 such events would hide
 * the rest.
 */
function isTransition({ before, after }: Transition): boolean {
  const wasInTrouble = before !== undefined && before.status !== "True";
  if (after.status === "True") return wasInTrouble;
  return !wasInTrouble || before.reason !== after.reason;
}
