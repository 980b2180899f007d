/**
 * Runs trials of Groups in the background. It decides which are due, and what they add to the status of their objects:
 * the condition `Rendered`; and `Ready` of the Group and of its Profile, where no request could cure a failure.
 *
 * It promises:
 * - No object is ready before its trials are over.
 * - A trial delays only a status that would be ready, for half a minute at most; after that the status is `Unknown`.
 * - The store has what is tried before the trial begins.
 * - A Group is tried again only when its document or its Profile's changed.
 * - Trials take at most half of one processor's time.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import { type Condition, type ObjectName, type ObjectStatus, objectKey, type Source } from "../../model/source.ts";
import { DelayedNames } from "../core/delayed-names.ts";
import type { Documents } from "../core/documents.ts";
import { WorkQueue, type WorkQueueMetrics } from "../core/work-queue.ts";
import { certainFailure, notRendered, renderedCondition } from "./rendered.ts";
import type { Trial } from "./trial.ts";
import { byProfile, type TrialInput, TrialInputs } from "./trial-inputs.ts";
import { TrialRecord, type TrialState } from "./trial-record.ts";
import type { TrialRunner } from "./trial-thread.ts";

export interface TrialsOptions {
  readonly runner: TrialRunner;
  readonly documents: Pick<Documents, "group" | "textAt">;
  readonly source: Pick<Source, "view">;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WorkQueueMetrics;
  /** The Groups that name a Profile. */
  readonly groupsOf: (profile: ObjectName) => Iterable<ObjectName>;
  /** Receives the statuses. */
  readonly tell: (name: ObjectName, status: ObjectStatus) => void;
}

/** A Group and the result of its last trial. */
interface TriedGroup {
  readonly name: ObjectName;
  /** As the controller reported it. */
  status: ObjectStatus;
  /** Monotonic: since when its newest status waits. */
  heldSinceMs: number | undefined;
  tried: Tried | undefined;
}

interface Tried {
  readonly input: TrialInput;
  readonly condition: Condition;
  readonly state: TrialState;
}

/** A Profile and its Groups' trials. */
interface ProfileEntry {
  readonly name: ObjectName;
  status: ObjectStatus;
  heldSinceMs: number | undefined;
  /** The text of its document, when its Groups were last due for trial. */
  text: string | undefined;
}

/** A Group and the input of its trial. */
interface Due {
  readonly entry: TriedGroup;
  readonly input: TrialInput;
}

// One message to the thread and one back; a stop waits no longer than this.
const maxGroupsPerJob = 128;
// Reading documents takes about a millisecond for each 100 KiB.
const sliceLength = 512 * 1024;

/** For objects that are ready but for their trials: a good one takes milliseconds, 10,000 take seconds. */
const patienceMs = 30_000;
/** For objects that are unready whatever their trials find. */
const shortPatienceMs = 1_000;
/** A timer's resolution would make a rest of a millisecond much longer. */
const leastRestMs = 20;
// Passing on one status takes about 20 µs.
const tellsPerSlice = 256;

export class Trials {
  readonly #options: TrialsOptions;
  readonly #entries = new Map<string, TriedGroup>();
  readonly #profiles = new Map<string, ProfileEntry>();
  readonly #record = new TrialRecord();
  readonly #queue: WorkQueue<ObjectName>;
  readonly #inputs: TrialInputs;
  readonly #patience: DelayedNames;
  readonly #stopping = new AbortController();
  readonly #slices = new Slices(sliceLength);
  /** Rest that is still to be taken. */
  #owedMs = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(options: TrialsOptions) {
    this.#options = options;
    const { clock, metrics } = options;
    this.#inputs = new TrialInputs(options);
    this.#queue = new WorkQueue({ clock, metrics, keyOf: objectKey, name: "trials" });
    this.#patience = new DelayedNames({
      clock,
      delayMs: shortPatienceMs,
      due: (names) => void this.#tellAnyway(names),
    });
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Gives up the running trials, and passes on no more statuses; idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#queue.stop();
    this.#patience.stop();
    await this.#options.runner.stop();
    await this.#running;
  }

  /** Passes a status on with the result of its trials, which may come later. */
  tell(name: ObjectName, status: ObjectStatus): void {
    if (name.kind === "Group") this.#tellGroup(name, status);
    else this.#tellProfile(name, status);
  }

  #tellGroup(name: ObjectName, status: ObjectStatus): void {
    const key = objectKey(name);
    const entry = this.#entries.get(key) ?? { name, status, heldSinceMs: undefined, tried: undefined };
    entry.status = status;
    // A lost trial may succeed now.
    if (entry.tried?.state.kind === "lost") entry.tried = undefined;
    entry.heldSinceMs ??= this.#options.clock.monotonicMs();
    this.#entries.set(key, entry);
    this.#queue.add(name);
    this.#patience.add([name]);
  }

  #tellProfile(name: ObjectName, status: ObjectStatus): void {
    const key = objectKey(name);
    const text = this.#inputs.profileText(name.namespace, name.name);
    const entry = this.#profiles.get(key) ?? { name, status, heldSinceMs: undefined, text: undefined };
    const isTried = this.#profiles.has(key) && entry.text === text;
    this.#profiles.set(key, Object.assign(entry, { status, text }));
    if (!isTried) this.#tryAgain(name);
    entry.heldSinceMs ??= this.#options.clock.monotonicMs();
    this.#passProfile(entry);
    if (entry.heldSinceMs !== undefined) this.#patience.add([name]);
  }

  /** Forgets an object that is gone. */
  forget(name: ObjectName): void {
    const key = objectKey(name);
    this.#entries.delete(key);
    this.#profiles.delete(key);
    for (const profile of this.#record.forget(name)) this.#passProfileAt(profile);
  }

  /** Sets the metrics that are only known when they are scraped. */
  measure(): void {
    this.#queue.measure();
  }

  #tryAgain(profile: ObjectName): void {
    for (const group of this.#options.groupsOf(profile)) {
      const entry = this.#entries.get(objectKey(group));
      if (entry === undefined || !this.#isTried(entry)) this.#record.note(group, profile, { kind: "pending" });
      this.#queue.add(group);
    }
  }

  async #run(): Promise<void> {
    for (;;) {
      const names = await this.#queue.take(maxGroupsPerJob);
      if (names.length === 0) return;
      // A caller that has just reported thousands of statuses goes on first.
      await nextTurn();
      for (const job of byProfile(await this.#dues(names))) await this.#try(job);
    }
  }

  /** Passes on at once the statuses that need no trial. @returns the Groups that need one. */
  async #dues(names: readonly ObjectName[]): Promise<readonly Due[]> {
    const dues: Due[] = [];
    for (const name of names) {
      const entry = this.#entries.get(objectKey(name));
      const due = entry && this.#dueOf(entry);
      if (due !== undefined) dues.push(due);
      if (this.#slices.isOver(due?.input.groupText?.length ?? 0)) await nextTurn();
    }
    return dues;
  }

  #dueOf(entry: TriedGroup): Due | undefined {
    if (this.#isTried(entry)) {
      this.#pass(entry);
      return undefined;
    }
    const due = { entry, input: this.#inputs.of(entry.name) };
    if (due.input.groupText !== undefined && due.input.profileText !== undefined) return due;
    this.#conclude(due, "untried");
    return undefined;
  }

  /** Tries a job without an answer again in halves, so that one Group does not affect the others. */
  async #try(job: readonly Due[]): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { clock, runner, log } = this.#options;
    const sinceMs = clock.monotonicMs();
    const task = this.#inputs.jobOf(job.map(({ input }) => input));
    const trials = await runner.run(task);
    if (this.#stopping.signal.aborted) return;
    const isOne = trials !== undefined || job.length === 1;
    const { namespace, profile } = task;
    if (trials === undefined && isOne) log.warn({ namespace, profile }, "a trial rendering did not end");
    if (isOne) for (const [at, due] of job.entries()) this.#conclude(due, trials?.[at]);
    await this.#rest(clock.monotonicMs() - sinceMs);
    if (isOne) return;
    const half = Math.ceil(job.length / 2);
    await this.#try(job.slice(0, half));
    await this.#try(job.slice(half));
  }

  /** Pauses for as long as the work took; many short pauses become one. */
  async #rest(workedMs: number): Promise<void> {
    this.#owedMs += workedMs;
    if (this.#owedMs < leastRestMs) return;
    const owedMs = this.#owedMs;
    this.#owedMs = 0;
    await this.#options.clock.sleep(owedMs, this.#stopping.signal);
  }

  /** @param trial undefined when the thread gave none. */
  #conclude({ entry, input }: Due, trial: Trial | undefined): void {
    const condition = trial === undefined ? withoutAnswer : renderedCondition(input.profile, trial);
    const failure = trial && certainFailure(trial);
    const state: TrialState =
      trial === undefined ? { kind: "lost" } : failure === undefined ? { kind: "over" } : { kind: "failed", failure };
    entry.tried = { input, condition, state };
    // A Group that changed meanwhile is in the queue again.
    if (this.#entries.get(objectKey(entry.name)) === entry && this.#isTried(entry)) this.#pass(entry);
  }

  #isTried({ tried }: TriedGroup): boolean {
    return tried !== undefined && this.#inputs.isCurrent(tried.input);
  }

  /** Passes on a Group's status with its trial; a sink ignores a status that it has already. */
  #pass(entry: TriedGroup): void {
    const { name, status, tried } = entry;
    entry.heldSinceMs = undefined;
    if (tried === undefined) return;
    const { condition, state, input } = tried;
    const profile: ObjectName = { kind: "Profile", namespace: name.namespace, name: input.profile };
    this.#options.tell(name, withReady(withCondition(status, condition), readyOfGroup(input.profile, state)));
    for (const each of this.#record.note(name, profile, state)) this.#passProfileAt(each);
  }

  #passProfileAt(key: string): void {
    const entry = this.#profiles.get(key);
    if (entry !== undefined) this.#passProfile(entry);
  }

  /** Passes on a Profile's status with its Groups' trials, once they are over. */
  #passProfile(entry: ProfileEntry): void {
    const { name, status } = entry;
    const summary = this.#record.of(name);
    if (summary.kind === "pending" && isReady(status)) return;
    entry.heldSinceMs = undefined;
    this.#options.tell(name, withReady(status, readyOfProfile(summary)));
  }

  /** Passes on statuses that waited too long, with `Ready` unknown. */
  async #tellAnyway(names: readonly ObjectName[]): Promise<void> {
    const slices = new Slices(tellsPerSlice);
    const nowMs = this.#options.clock.monotonicMs();
    for (const name of names) {
      const key = objectKey(name);
      const entry = this.#entries.get(key) ?? this.#profiles.get(key);
      if (entry?.heldSinceMs === undefined) continue;
      const enoughMs = isReady(entry.status) ? patienceMs : shortPatienceMs;
      if (nowMs - entry.heldSinceMs < enoughMs) this.#patience.add([name]);
      else this.#options.tell(name, withReady(entry.status, notTriedYet));
      if (slices.isOver(1)) await nextTurn();
      if (this.#stopping.signal.aborted) return;
    }
  }
}

const withoutAnswer = notRendered("The trial did not end, which says nothing about machines");

/** Inserts the condition before `Ready`, which stays last. */
function withCondition(status: ObjectStatus, condition: Condition): ObjectStatus {
  const others = status.conditions.filter(({ type }) => type !== "Ready");
  const ready = status.conditions.filter(({ type }) => type === "Ready");
  return { ...status, conditions: [...others, condition, ...ready] };
}

const notTriedYet: Condition = {
  type: "Ready",
  status: "Unknown",
  reason: "NotRendered",
  message: "What its machines would get is still being tried",
};

function isReady({ conditions }: ObjectStatus): boolean {
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}

/** The `Ready` that a trial gives to an otherwise ready Group. */
function readyOfGroup(profile: string, state: TrialState): Condition | undefined {
  if (state.kind === "lost") return { ...notTriedYet, message: withoutAnswer.message };
  if (state.kind !== "failed") return undefined;
  return { type: "Ready", status: "False", reason: "RenderFailed", message: `Profile "${profile}": ${state.failure}` };
}

/** The `Ready` that its Groups' trials give to an otherwise ready Profile. */
function readyOfProfile({ kind, group, failure, hasMore }: ReturnType<TrialRecord["of"]>): Condition | undefined {
  if (kind === "over") return undefined;
  if (kind !== "failed") return notTriedYet;
  const groups = `Group "${group}"${hasMore ? " and others" : ""}`;
  return { type: "Ready", status: "False", reason: "RenderFailed", message: `For ${groups}: ${failure}` };
}

/** The status with another `Ready`, where it is ready so far. */
function withReady(status: ObjectStatus, ready: Condition | undefined): ObjectStatus {
  if (ready === undefined || !isReady(status)) return status;
  return { ...status, conditions: status.conditions.map((each) => (each.type === "Ready" ? ready : each)) };
}
