/** Records the state of each Group's trial, and sums up the states for each Profile. */

import { compareBytes } from "../../lib/order.ts";
import { type ObjectName, objectKey } from "../../model/objects/source.ts";

/** The state of a Group's trial: `failed` if a failure occurs with every request, `lost` if the trial did not end. */
export type TrialState =
  | { readonly kind: "pending" | "over" | "lost" }
  | { readonly kind: "failed"; readonly failure: string };

/**
 * The summary for a Profile. `kind` is the first of failed, pending and lost that one of its Groups has; otherwise
 * over.
 */
interface Summary {
  readonly kind: TrialState["kind"];
  /** The first Group by name that failed, and what fails for it. */
  readonly group?: string;
  readonly failure?: string;
  /** True if other Groups failed, too. */
  readonly hasMore?: boolean;
}

/** The keys of a Profile's Groups, by state. Groups whose trials are over are in no set. */
interface TrialsByGroup {
  readonly pending: Set<string>;
  readonly lost: Set<string>;
  readonly failed: Map<string, FailedGroup>;
  /** The first of `failed` by name. Undefined if `failed` is empty, or must be searched. */
  first: FailedGroup | undefined;
}

interface FailedGroup {
  readonly group: string;
  readonly failure: string;
}

const over: Summary = { kind: "over" };

export class TrialRecord {
  /** By the key of a Profile. */
  readonly #profiles = new Map<string, TrialsByGroup>();
  /** From each Group to the Profile that it was tried with. */
  readonly #profileOf = new Map<string, string>();

  /**
   * Records the state of a Group's trial.
   * @returns the keys of the Profiles whose summary may have changed.
   */
  note(group: ObjectName, profile: ObjectName, state: TrialState): readonly string[] {
    const [key, profileKey] = [objectKey(group), objectKey(profile)];
    const changed = new Set(this.#profileOf.get(key) === profileKey ? [] : this.forget(group));
    this.#profileOf.set(key, profileKey);
    const trials = this.#profiles.get(profileKey) ?? newTrials();
    const before = stateIn(trials, key);
    take(trials, key);
    if (state.kind === "failed") addFailed(trials, key, { group: group.name, failure: state.failure });
    else if (state.kind !== "over") trials[state.kind].add(key);
    if (sizeOf(trials) === 0) this.#profiles.delete(profileKey);
    else this.#profiles.set(profileKey, trials);
    // While trials of a Profile are pending, changes of its summary are not reported: there may be thousands.
    if (before !== stateIn(trials, key) && trials.pending.size === 0) changed.add(profileKey);
    return [...changed];
  }

  /** Forgets a Group. @returns as `note`. */
  forget(group: ObjectName): readonly string[] {
    const key = objectKey(group);
    const profileKey = this.#profileOf.get(key);
    this.#profileOf.delete(key);
    const trials = profileKey === undefined ? undefined : this.#profiles.get(profileKey);
    if (profileKey === undefined || trials === undefined || !take(trials, key)) return [];
    if (sizeOf(trials) === 0) this.#profiles.delete(profileKey);
    return [profileKey];
  }

  /** The summary for a Profile. */
  of(profile: ObjectName): Summary {
    const trials = this.#profiles.get(objectKey(profile));
    if (trials === undefined) return over;
    const { pending, lost, failed } = trials;
    trials.first ??= firstOf(failed);
    if (trials.first !== undefined) return { kind: "failed", ...trials.first, hasMore: failed.size > 1 };
    if (pending.size > 0) return { kind: "pending" };
    return lost.size > 0 ? { kind: "lost" } : over;
  }
}

function newTrials(): TrialsByGroup {
  return { pending: new Set(), lost: new Set(), failed: new Map(), first: undefined };
}

/** Keeps `first` up to date, because a search takes long: thousands of Groups may fail one after the other. */
function addFailed(trials: TrialsByGroup, key: string, failed: FailedGroup): void {
  const { first } = trials;
  if (first === undefined ? trials.failed.size === 0 : isBefore(failed, first)) trials.first = failed;
  trials.failed.set(key, failed);
}

function firstOf(failed: TrialsByGroup["failed"]): FailedGroup | undefined {
  let first: FailedGroup | undefined;
  for (const each of failed.values()) if (first === undefined || isBefore(each, first)) first = each;
  return first;
}

function isBefore(one: FailedGroup, other: FailedGroup): boolean {
  return compareBytes(one.group, other.group) < 0;
}

function stateIn({ pending, lost, failed }: TrialsByGroup, key: string): string {
  return pending.has(key) ? "pending" : lost.has(key) ? "lost" : (failed.get(key)?.failure ?? "over");
}

function take(trials: TrialsByGroup, key: string): boolean {
  const { pending, lost, failed, first } = trials;
  if (first !== undefined && failed.get(key) === first) trials.first = undefined;
  return [pending.delete(key), lost.delete(key), failed.delete(key)].includes(true);
}

function sizeOf({ pending, lost, failed }: TrialsByGroup): number {
  return pending.size + lost.size + failed.size;
}
