/**
 * Runs trials of Groups in the background. It decides which trials are due, and reports their results. A result is the
 * condition `Rendered`. If a failure occurs with every request, `Ready` of the Group and of its Profile becomes false.
 *
 * It promises:
 * - A trial begins only when the store has its input.
 * - A Group is tried again only if its document or its Profile's document has changed, or if the last trial did not
 *   end.
 * - Trials take at most half of one processor's time.
 */

import { nextTurn, Slices } from "../../lib/slices.ts";
import { type Condition, type ObjectName, objectKey } from "../../model/objects/source.ts";
import type { ControllerPorts } from "../core/controller-ports.ts";
import { WorkQueue } from "../core/work-queue.ts";
import { notTriedYet, type TrialReport } from "../status/status-composer.ts";
import type { Severity, Trial, TrialFinding } from "./trial.ts";
import { byProfile, type TrialInput, TrialInputs, type TrialInputsOptions } from "./trial-inputs.ts";
import { TrialRecord, type TrialState } from "./trial-record.ts";
import type { TrialRunner } from "./trial-thread.ts";

interface TrialsOptions extends TrialInputsOptions, Pick<ControllerPorts, "clock" | "log" | "metrics"> {
  readonly runner: TrialRunner;
  /** The Groups that name a Profile. */
  readonly groupsOf: (profile: ObjectName) => Iterable<ObjectName>;
  /** Called when the trials of an object are over, and when a Profile's findings change. */
  readonly changed: (name: ObjectName) => void;
}

/** A Group and the result of its last trial. */
interface TriedGroup {
  readonly name: ObjectName;
  tried: Tried | undefined;
}

interface Tried {
  readonly input: TrialInput;
  readonly state: TrialState;
  readonly report: TrialReport;
}

interface TriedProfile {
  readonly name: ObjectName;
  /** The text of its document when its Groups were last queued. */
  readonly text: string | undefined;
}

/** A Group and the input of its trial. */
interface Due {
  readonly entry: TriedGroup;
  readonly input: TrialInput;
}

// The most Groups of one job, which is one message to the thread and one message back.
const maxGroupsPerJob = 128;
// In characters of Group documents. Reading 100 KiB takes about a millisecond.
const sliceLength = 512 * 1024;

/** Shorter pauses are added up, because a timer would make each of them much longer. */
const leastRestMs = 20;

export class Trials {
  readonly #options: TrialsOptions;
  readonly #groups = new Map<string, TriedGroup>();
  readonly #profiles = new Map<string, TriedProfile>();
  readonly #record = new TrialRecord();
  readonly #queue: WorkQueue<ObjectName>;
  readonly #inputs: TrialInputs;
  readonly #stopping = new AbortController();
  readonly #slices = new Slices(sliceLength);
  /** The sum of the short pauses that are still to be made. */
  #owedMs = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(options: TrialsOptions) {
    this.#options = options;
    const { clock, metrics } = options;
    this.#inputs = new TrialInputs(options);
    this.#queue = new WorkQueue({ clock, metrics, keyOf: objectKey, name: "trials" });
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Cancels the current trials, and reports no more changes; idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#queue.stop();
    await this.#options.runner.stop();
    await this.#running;
  }

  /**
   * Queues an object's trials if they may be due. For a Group, `changed` is always called later, even without a trial.
   */
  look(name: ObjectName): void {
    if (name.kind === "Group") this.#lookAtGroup(name);
    else this.#lookAtProfile(name);
  }

  /** What trials found about an object; undefined while they are not over. */
  of(name: ObjectName): TrialReport | undefined {
    if (name.kind === "Group") return this.#groups.get(objectKey(name))?.tried?.report;
    const summary = this.#record.of(name);
    return summary.kind === "pending" ? undefined : { ready: readyOfProfile(summary) };
  }

  #lookAtGroup(name: ObjectName): void {
    const key = objectKey(name);
    const entry = this.#groups.get(key);
    // A trial that was lost may succeed now.
    if (entry?.tried?.state.kind === "lost") entry.tried = undefined;
    if (entry === undefined) this.#groups.set(key, { name, tried: undefined });
    this.#queue.add(name);
  }

  #lookAtProfile(name: ObjectName): void {
    const key = objectKey(name);
    const before = this.#profiles.get(key);
    const text = this.#inputs.profileText(name.namespace, name.name);
    this.#profiles.set(key, { name, text });
    if (before === undefined || before.text !== text) this.#tryAgain(name);
  }

  /** Forgets an object that is gone. */
  forget(name: ObjectName): void {
    const key = objectKey(name);
    this.#groups.delete(key);
    this.#profiles.delete(key);
    this.#announceProfiles(this.#record.forget(name));
  }

  /** Sets the metrics that are only known when they are scraped. */
  measure(): void {
    this.#queue.measure();
  }

  #tryAgain(profile: ObjectName): void {
    for (const group of this.#options.groupsOf(profile)) {
      const entry = this.#groups.get(objectKey(group));
      if (entry === undefined || !this.#isTried(entry)) this.#record.note(group, profile, { kind: "pending" });
      this.#queue.add(group);
    }
  }

  async #run(): Promise<void> {
    for (;;) {
      const names = await this.#queue.take(maxGroupsPerJob);
      if (names.length === 0) return;
      // First the caller continues: it may be reporting thousands of statuses.
      await nextTurn();
      for (const job of byProfile(await this.#dues(names))) await this.#try(job);
    }
  }

  /** Announces the Groups that need no trial. @returns the others. */
  async #dues(names: readonly ObjectName[]): Promise<readonly Due[]> {
    const dues: Due[] = [];
    for (const name of names) {
      const entry = this.#groups.get(objectKey(name));
      const due = entry && this.#dueOf(entry);
      if (due !== undefined) dues.push(due);
      if (this.#slices.isOver(due?.input.groupText?.length ?? 0)) await nextTurn();
    }
    return dues;
  }

  #dueOf(entry: TriedGroup): Due | undefined {
    if (this.#isTried(entry)) {
      this.#announce(entry);
      return undefined;
    }
    const due = { entry, input: this.#inputs.of(entry.name) };
    if (due.input.groupText !== undefined && due.input.profileText !== undefined) return due;
    this.#conclude(due, "untried");
    return undefined;
  }

  /**
   * Runs a job. If there is no answer, it runs each half as a job of its own, so that one Group does not affect the
   * others.
   */
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

  /** Records the result of a trial. @param trial undefined if the thread gave no answer. */
  #conclude({ entry, input }: Due, trial: Trial | undefined): void {
    const rendered = trial === undefined ? withoutAnswer : renderedCondition(input.profile, trial);
    const failure = trial && certainFailure(trial);
    const state: TrialState =
      trial === undefined ? { kind: "lost" } : failure === undefined ? { kind: "over" } : { kind: "failed", failure };
    entry.tried = { input, state, report: { rendered, ready: readyOfGroup(input.profile, state) } };
    // If the Group changed meanwhile, it is in the queue again, and this result is not announced.
    if (this.#groups.get(objectKey(entry.name)) === entry && this.#isTried(entry)) this.#announce(entry);
  }

  #isTried({ tried }: TriedGroup): boolean {
    return tried !== undefined && this.#inputs.isCurrent(tried.input);
  }

  #announce({ name, tried }: TriedGroup): void {
    if (tried === undefined) return;
    const profile: ObjectName = { kind: "Profile", namespace: name.namespace, name: tried.input.profile };
    this.#options.changed(name);
    this.#announceProfiles(this.#record.note(name, profile, tried.state));
  }

  #announceProfiles(keys: readonly string[]): void {
    for (const key of keys) {
      const profile = this.#profiles.get(key);
      if (profile !== undefined) this.#options.changed(profile.name);
    }
  }
}

// A person reads the message, corrects the first findings and looks again.
const maxFindings = 10;

/**
 * The condition that reports a trial.
 * @param profile the name of the Group's Profile.
 */
export function renderedCondition(profile: string, trial: Trial): Condition {
  if (trial === "untried") return rendered("Unknown", "NotRendered", "No machine gets a config of this Group now");
  const worst = severities.find((severity) => trial.some((finding) => finding.severity === severity));
  if (worst === undefined) return whole;
  const [status, reason] = outcomes[worst];
  return rendered(status, reason, `For a sample machine, Profile "${profile}": ${textOf(trial)}`);
}

/**
 * The failures that occur with every request of the Group's machines, as text for a person; undefined if there are
 * none.
 */
function certainFailure(trial: Trial): string | undefined {
  const certain = trial === "untried" ? [] : trial.filter(({ isCertain }) => isCertain === true);
  return certain.length === 0 ? undefined : textOf(certain);
}

/** One object for all Groups without findings. */
const whole = rendered("True", "Rendered", "A sample machine gets every config of its Profile whole");

const severities: readonly Severity[] = ["broken", "refused", "advice"];

const outcomes: Readonly<Record<Severity, readonly [Condition["status"], string]>> = {
  broken: ["False", "RenderFailed"],
  refused: ["False", "InvalidConfig"],
  advice: ["True", "RenderedWithAdvice"],
};

function rendered(status: Condition["status"], reason: string, message: string): Condition {
  return { type: "Rendered", status, reason, message };
}

/** The findings as text, the worst first. */
function textOf(findings: readonly TrialFinding[]): string {
  const sorted = severities.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
  const shown = sorted.slice(0, maxFindings).map(({ text }) => text);
  const left = sorted.length - shown.length;
  return [...shown, ...(left === 0 ? [] : [`and ${left} more`])].join("; ");
}

const withoutAnswer = rendered(
  "Unknown",
  "NotRendered",
  "The trial took more than a minute, or ran out of memory, which says nothing about machines: " +
    "make the texts of the Profile smaller",
);

/** The `Ready` that a trial gives to an otherwise ready Group; undefined if it stays ready. */
function readyOfGroup(profile: string, state: TrialState): Condition | undefined {
  if (state.kind === "lost") return { ...notTriedYet, message: withoutAnswer.message };
  if (state.kind !== "failed") return undefined;
  return { type: "Ready", status: "False", reason: "RenderFailed", message: `Profile "${profile}": ${state.failure}` };
}

/** The `Ready` that the Groups' trials give to an otherwise ready Profile; undefined if it stays ready. */
function readyOfProfile({ kind, group, failure, hasMore }: ReturnType<TrialRecord["of"]>): Condition | undefined {
  if (kind === "over") return undefined;
  if (kind !== "failed") return notTriedYet;
  const groups = `Group "${group}"${hasMore ? " and others" : ""}`;
  return { type: "Ready", status: "False", reason: "RenderFailed", message: `For ${groups}: ${failure}` };
}
