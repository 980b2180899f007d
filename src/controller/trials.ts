/**
 * Trials of Groups beside everything else: which ones are due, and the condition `Rendered` in what their users are told.
 *
 * It promises that a trial holds up nothing but a status, and that for a second at most; that the store has what is
 * tried before it is tried; that a Group is tried again only when its document or its Profile's is another; and that
 * trials take half of one processor's time at most. It never says whether a Group is ready.
 */

import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { nextTurn, Slices } from "../lib/slices.ts";
import { type Condition, type ObjectName, type ObjectStatus, objectKey, type Source } from "../model/source.ts";
import type { Documents } from "./documents.ts";
import { Later } from "./later.ts";
import { notRendered, renderedCondition } from "./rendered.ts";
import type { Trial } from "./trial.ts";
import { byProfile, type TrialInput, TrialInputs } from "./trial-inputs.ts";
import type { TrialRunner } from "./trial-thread.ts";
import { WorkQueue, type WorkQueueMetrics } from "./work-queue.ts";

export interface TrialsOptions {
  readonly runner: TrialRunner;
  readonly documents: Pick<Documents, "group" | "textAt">;
  readonly source: Pick<Source, "view">;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WorkQueueMetrics;
  /** The Groups that name a Profile. */
  readonly groupsOf: (profile: ObjectName) => Iterable<ObjectName>;
  /** Where statuses go from here. */
  readonly tell: (name: ObjectName, status: ObjectStatus) => void;
}

/** A Group and what came of its last trial. */
interface Entry {
  readonly name: ObjectName;
  /** As the controller told it. */
  status: ObjectStatus;
  /** Its newest status was told to nobody yet. */
  isHeldBack: boolean;
  tried: { readonly input: TrialInput; readonly condition: Condition } | undefined;
}

/** A Group and what it is to be tried with. */
interface Due {
  readonly entry: Entry;
  readonly input: TrialInput;
}

// One message to the thread and one back, and a stop waits for no more than this.
const maxGroupsPerJob = 128;
// Reading documents takes about a millisecond for each 100 KiB.
const sliceLength = 512 * 1024;

/** A trial takes milliseconds where nothing is wrong. */
const patienceMs = 1_000;
/** A timer's own grain would make a rest of a millisecond much longer. */
const leastRestMs = 20;
// Telling one takes about 20 µs.
const tellsPerSlice = 256;

export class Trials {
  readonly #options: TrialsOptions;
  readonly #entries = new Map<string, Entry>();
  /** Text of each Profile's document when its status was last told. */
  readonly #profiles = new Map<string, string | undefined>();
  readonly #queue: WorkQueue<ObjectName>;
  readonly #inputs: TrialInputs;
  readonly #patience: Later;
  readonly #stopping = new AbortController();
  readonly #slices = new Slices(sliceLength);
  /** Rest that was not taken yet. */
  #owedMs = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(options: TrialsOptions) {
    this.#options = options;
    const { clock, metrics } = options;
    this.#inputs = new TrialInputs(options);
    this.#queue = new WorkQueue({ clock, metrics, keyOf: objectKey, name: "trials" });
    this.#patience = new Later({ clock, delayMs: patienceMs, due: (names) => void this.#tellAnyway(names) });
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Gives up what is under way, and tells nothing any more; idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#queue.stop();
    this.#patience.stop();
    await this.#options.runner.stop();
    await this.#running;
  }

  /** Passes a status on: that of a Group with what came of its trial, which may be a moment later. */
  tell(name: ObjectName, status: ObjectStatus): void {
    if (name.kind !== "Group") {
      this.#options.tell(name, status);
      this.#lookAtProfile(name);
      return;
    }
    const key = objectKey(name);
    const entry = this.#entries.get(key) ?? { name, status, isHeldBack: true, tried: undefined };
    entry.status = status;
    entry.isHeldBack = true;
    this.#entries.set(key, entry);
    this.#queue.add(name);
    this.#patience.add([name]);
  }

  /** Forgets an object that is gone. */
  forget(name: ObjectName): void {
    this.#entries.delete(objectKey(name));
    this.#profiles.delete(objectKey(name));
  }

  /** Sets what is only known at the time of a scrape. */
  measure(): void {
    this.#queue.measure();
  }

  #lookAtProfile(name: ObjectName): void {
    const key = objectKey(name);
    const text = this.#inputs.profileText(name.namespace, name.name);
    if (this.#profiles.has(key) && this.#profiles.get(key) === text) return;
    this.#profiles.set(key, text);
    for (const group of this.#options.groupsOf(name)) this.#queue.add(group);
  }

  async #run(): Promise<void> {
    for (;;) {
      const names = await this.#queue.take(maxGroupsPerJob);
      if (names.length === 0) return;
      // Whoever has just told of thousands goes on first.
      await nextTurn();
      for (const job of byProfile(await this.#dues(names))) await this.#try(job);
    }
  }

  /** Tells at once what needs no trial. @returns what does. */
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

  #dueOf(entry: Entry): Due | undefined {
    if (this.#isTried(entry)) {
      this.#pass(entry);
      return undefined;
    }
    const due = { entry, input: this.#inputs.of(entry.name) };
    if (due.input.groupText !== undefined && due.input.profileText !== undefined) return due;
    this.#conclude(due, "untried");
    return undefined;
  }

  async #try(job: readonly Due[]): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { clock, runner, log } = this.#options;
    const sinceMs = clock.monotonicMs();
    const task = this.#inputs.jobOf(job.map(({ input }) => input));
    const trials = await runner.run(task);
    if (this.#stopping.signal.aborted) return;
    const { namespace, profile } = task;
    if (trials === undefined) log.warn({ namespace, profile }, "a trial rendering did not end");
    for (const [at, due] of job.entries()) this.#conclude(due, trials?.[at]);
    await this.#rest(clock.monotonicMs() - sinceMs);
  }

  /** After work a pause of the same length; many short ones are one. */
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
    entry.tried = { input, condition };
    // What has changed meanwhile is in the queue again.
    if (this.#entries.get(objectKey(entry.name)) === entry && this.#isTried(entry)) this.#pass(entry);
  }

  #isTried({ tried }: Entry): boolean {
    return tried !== undefined && this.#inputs.isCurrent(tried.input);
  }

  /** Tells a Group's status with its trial; a sink that was told the same does nothing. */
  #pass(entry: Entry): void {
    entry.isHeldBack = false;
    const { name, status, tried } = entry;
    this.#options.tell(name, tried === undefined ? status : withCondition(status, tried.condition));
  }

  /** A trial that takes long, or many that wait, are no reason not to tell whether a Group is ready. */
  async #tellAnyway(names: readonly ObjectName[]): Promise<void> {
    const slices = new Slices(tellsPerSlice);
    for (const name of names) {
      const entry = this.#entries.get(objectKey(name));
      if (entry?.isHeldBack === true) this.#options.tell(name, entry.status);
      if (slices.isOver(1)) await nextTurn();
      if (this.#stopping.signal.aborted) return;
    }
  }
}

const withoutAnswer = notRendered("The trial did not end, which says nothing about machines");

/** In front of `Ready`, which is the last one. */
function withCondition(status: ObjectStatus, condition: Condition): ObjectStatus {
  const others = status.conditions.filter(({ type }) => type !== "Ready");
  const ready = status.conditions.filter(({ type }) => type === "Ready");
  return { ...status, conditions: [...others, condition, ...ready] };
}
