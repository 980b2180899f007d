/**
 * Compares what machines get by two states of the objects. Selection and rendering are those of the boot service, over
 * a boot index for each state.
 */

import type { BootGroup } from "../../boot/core/known-documents.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import { compareBytes } from "../../lib/order.ts";
import { nextTurn } from "../../lib/slices.ts";
import { ownerName } from "../../model/objects/documents.ts";
import { bootIndexOf, type DocumentTexts } from "../load/load-manifests.ts";
import {
  type ComparedMachine,
  machinesToCompare,
  type RecordedLabels,
  sampleOf,
  samplesOfBoth,
} from "./compared-machines.ts";
import { type ChangedField, changedFields, changedProfileFields, selectorChange } from "./fields.ts";
import { type BootOutcome, type Danger, dangerOf, isMoreDestructive, outcomeOf, risks } from "./outcome.ts";
import { type ChangedText, changedText, contentOf, endpointsOf, inputsOf, isChanged, MachineTexts } from "./texts.ts";

interface CompareOptions {
  /** Both as `comparable` returns them. */
  readonly before: DocumentTexts;
  readonly after: DocumentTexts;
  /** The machines that a running davit knows; none of a directory or a backup. */
  readonly recorded: readonly RecordedLabels[];
  /** Unix milliseconds. */
  readonly nowMs: number;
  /** Called from time to time with the number of compared machines. */
  readonly progress?: (count: number, total: number) => void;
}

/** Machines with the same change. */
export interface ChangedMachines {
  /** The names of known machines; empty for a sample machine. */
  readonly machines: readonly string[];
  /** The labels of the sample machine; undefined for known machines. */
  readonly sample: string | undefined;
  readonly before: BootOutcome;
  readonly after: BootOutcome;
  readonly isMoreDestructive: boolean;
  /** The fields of the Profile that differ, and that no config shows. */
  readonly profileFields: readonly ChangedField[];
  /** The configs that differ, of the first machine. */
  readonly texts: readonly ChangedText[];
}

/** A Group that differs, or whose machines get something else. */
export interface ChangedGroup {
  /** `namespace/name`. */
  readonly group: string;
  readonly kind: "added" | "removed" | "changed";
  /** True if a machine may lose data by this change that it would have kept before. */
  readonly isMoreDestructive: boolean;
  readonly fields: readonly ChangedField[];
  /** The changes of machines that this Group has after the change; for a machine that no Group has then, before it. */
  readonly changes: readonly ChangedMachines[];
  /** How many known machines other Groups get from this one, by the other Group. */
  readonly losses: ReadonlyMap<string, number>;
}

export interface Comparison {
  /** Groups with a more destructive change come first. */
  readonly groups: readonly ChangedGroup[];
  /** How many machines are known, without samples. */
  readonly machineCount: number;
  /** How many of them get something else. */
  readonly changedCount: number;
  /** How many of them may lose data. */
  readonly endangeredCount: number;
  /** How many machines last got another Group than their known labels select. */
  readonly uncertainCount: number;
  /** True if more Groups changed than can be compared with each Group that installs. */
  readonly isCutShort: boolean;
}

const uncompared = "no compared machine keeps this Group, so its configs are not shown";

const machinesPerTurn = 250;
/** The most pairs of Groups for which sample machines are made up: some seconds. */
const maxPairs = 20_000;

/** Compares every known machine, and a sample machine for each Group that has none or selects others. */
export async function compare(options: CompareOptions): Promise<Comparison> {
  const { nowMs, recorded, progress } = options;
  const [before, after] = [bootIndexOf({ documents: options.before }), bootIndexOf({ documents: options.after })];
  const groupOf: (index: BootIndex, labels: ComparedMachine["labels"]) => string | undefined = (index, labels) =>
    outcomeOf(index, labels, nowMs).group;
  const documents = [options.before, options.after];
  const machines = machinesToCompare({ recorded, documents, before, after, groupOf });
  const differ = new Differ(before, after, nowMs);
  for (const [at, machine] of machines.entries()) {
    differ.look(machine);
    if (at % machinesPerTurn !== 0) continue;
    progress?.(at, machines.length);
    await nextTurn();
  }
  differ.lookAtSamples();
  const isCutShort = !differ.lookAtPairs();
  return {
    groups: differ.groups(),
    machineCount: machines.length,
    changedCount: differ.countOf(() => true),
    endangeredCount: differ.countOf((change) => change.isMoreDestructive),
    uncertainCount: machines.filter(({ isUncertain }) => isUncertain).length,
    isCutShort,
  };
}

interface OpenChange extends Omit<ChangedMachines, "machines"> {
  readonly machines: string[];
}

class Differ {
  readonly #before: BootIndex;
  readonly #after: BootIndex;
  readonly #nowMs: number;
  readonly #textsBefore: MachineTexts;
  readonly #textsAfter: MachineTexts;
  readonly #buckets = new Map<string, OpenChange>();
  /** The Groups that have a known machine in either state. */
  readonly #peopled = new Set<string | undefined>();
  /** The Groups that a compared machine keeps, and that serve it after the change. */
  readonly #compared = new Set<string | undefined>();

  constructor(before: BootIndex, after: BootIndex, nowMs: number) {
    this.#before = before;
    this.#after = after;
    this.#nowMs = nowMs;
    this.#textsBefore = new MachineTexts(before);
    this.#textsAfter = new MachineTexts(after);
  }

  /** Compares a machine, and keeps what differs. @param of the Group of a sample machine, which must get it. */
  look(machine: ComparedMachine, of?: string): void {
    const before = outcomeOf(this.#before, machine.labels, this.#nowMs);
    const after = outcomeOf(this.#after, machine.labels, this.#nowMs);
    if (of !== undefined && before.group !== of && after.group !== of) return;
    this.#note(machine, before, after);
    const changed = this.#changedEndpoints(machine, before, after);
    const profileFields = changedProfileFields(before.machine?.profile, after.machine?.profile);
    const [was, is] = [keyOf(before), keyOf(after)];
    if (was === is && changed.length === 0 && profileFields.length === 0) return;
    const key = JSON.stringify([was, is, changed.map(({ endpoint }) => endpoint), profileFields]);
    // A sample machine adds nothing to others with the same change.
    if (machine.isSample && this.#buckets.has(key)) return;
    const bucket = this.#buckets.get(key) ?? {
      machines: [],
      sample: machine.isSample ? machine.name : undefined,
      before,
      after,
      isMoreDestructive: isMoreDestructive(before, after),
      profileFields,
      texts: changed.map(({ text }) => text()),
    };
    if (!machine.isSample) bucket.machines.push(machine.name);
    this.#buckets.set(key, bucket);
  }

  #note({ isSample }: ComparedMachine, before: BootOutcome, after: BootOutcome): void {
    if (!isSample) this.#peopled.add(before.group).add(after.group);
    // A machine that moves shows the configs of two Groups, not what changes in each.
    if (before.group === after.group && after.refusal === undefined) this.#compared.add(after.group);
  }

  /** Compares a sample machine for each Group that has no known machine, or a new selector. */
  lookAtSamples(): void {
    const seen = new Set<string>();
    for (const id of groupIds(this.#before, this.#after)) {
      const [was, is] = [this.#before.groups.get(id), this.#after.groups.get(id)];
      const isSelecting = was !== undefined && is !== undefined && selectorChange(was, is) === "same";
      if (isSelecting && this.#peopled.has(id)) continue;
      for (const group of [is, was]) {
        const sample = group && sampleOf(group);
        const key = `${sample?.rawQuery} ${id}`;
        if (sample === undefined || seen.has(key)) continue;
        seen.add(key);
        this.look(sample, id);
      }
    }
  }

  /**
   * A Group that no longer has its selector or its priority can lose machines that nobody knows to a Group that
   * installs. Compares sample machines of both. One example for each Group that installs is enough.
   * @returns false if there are too many pairs: then some were not compared.
   */
  lookAtPairs(): boolean {
    const installing = [...this.#after.groups.values()].filter(({ id }) => this.#installs(id));
    const moved = [...this.#before.groups.values()].filter((was) => hasMoved(was, this.#after.groups.get(was.id)));
    let others = installing;
    for (const was of moved.slice(0, Math.floor(maxPairs / Math.max(1, installing.length))))
      others = others.filter((other) => !this.#lookAtPair(was, other));
    return moved.length * installing.length <= maxPairs;
  }

  /** Compares sample machines of a Group that another Group selects, too. @returns false unless one may lose data. */
  #lookAtPair(was: BootGroup, other: BootGroup): boolean {
    for (const sample of samplesOfBoth(was, other, this.#after.groups.get(was.id))) {
      const before = outcomeOf(this.#before, sample.labels, this.#nowMs);
      const after = outcomeOf(this.#after, sample.labels, this.#nowMs);
      if (before.group !== was.id || !isMoreDestructive(before, after)) continue;
      this.look(sample);
      return true;
    }
    return false;
  }

  countOf(counts: (change: ChangedMachines) => boolean): number {
    return [...this.#buckets.values()].filter(counts).reduce((sum, { machines }) => sum + machines.length, 0);
  }

  groups(): readonly ChangedGroup[] {
    const changes = Map.groupBy(this.#buckets.values(), ({ before, after }) => after.group ?? before.group ?? "");
    const losses = lossesOf(this.#buckets.values());
    const all = groupIds(this.#before, this.#after).flatMap((id) => {
      return groupChange(id, {
        was: this.#before.groups.get(id),
        is: this.#after.groups.get(id),
        dangers: [dangerOf(this.#before, id, this.#nowMs), dangerOf(this.#after, id, this.#nowMs)],
        installed: this.#before.machineOf(id)?.profile.isInstall === true,
        installs: this.#installs(id),
        unseenFields: this.#unseenFields(id),
        changes: changes.get(id) ?? [],
        losses: losses.get(id) ?? new Map(),
      });
    });
    const rank = ({ isMoreDestructive: isWorse }: ChangedGroup) => (isWorse ? 0 : 1);
    return all.toSorted((a, b) => rank(a) - rank(b) || compareBytes(a.group, b.group));
  }

  #installs(id: string): boolean {
    return this.#after.machineOf(id)?.profile.isInstall === true;
  }

  /** Returns what differs in the Profile of a Group that serves no compared machine: no config can show it. */
  #unseenFields(id: string): readonly ChangedField[] {
    const [was, is] = [this.#before.machineOf(id)?.profile, this.#after.machineOf(id)?.profile];
    if (was === undefined || is === undefined || this.#compared.has(id)) return [];
    const fields = changedProfileFields(was, is);
    if (contentOf(was) === contentOf(is)) return fields;
    return [...fields, { field: "content of the Profile", before: "old", after: "new", note: uncompared }];
  }

  #changedEndpoints(machine: ComparedMachine, before: BootOutcome, after: BootOutcome) {
    // A machine that gets nothing has no configs to compare: its refusal says everything.
    if (after.machine === undefined) return [];
    if (before.machine !== undefined && inputsOf(before.machine) === inputsOf(after.machine)) return [];
    return endpointsOf([before.machine, after.machine]).flatMap((endpoint) => {
      const was = this.#textsBefore.of(endpoint, before.machine, machine);
      const is = this.#textsAfter.of(endpoint, after.machine, machine);
      return isChanged(was, is) ? [{ endpoint, text: () => changedText(endpoint, was, is) }] : [];
    });
  }
}

/** True if machines of a Group may now get another Group. */
function hasMoved(was: BootGroup, is: BootGroup | undefined): boolean {
  return is === undefined || was.selectorText !== is.selectorText || was.priority !== is.priority;
}

function keyOf({ group, profile, risk, refusal, grants }: BootOutcome): string {
  return JSON.stringify([group, profile, risk, refusal, grants]);
}

/** The names of all Groups of two indexes, without the twins of refused versions. */
function groupIds(before: BootIndex, after: BootIndex): readonly string[] {
  const ids = new Set([...before.groups.keys(), ...after.groups.keys()]);
  return [...ids].filter((id) => ownerName(id) === id);
}

function lossesOf(changes: Iterable<ChangedMachines>): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const losses = new Map<string, Map<string, number>>();
  for (const { before, after, machines } of changes) {
    if (before.group === undefined || after.group === undefined || before.group === after.group) continue;
    if (machines.length === 0) continue;
    const ofGroup = losses.get(before.group) ?? new Map<string, number>();
    losses.set(before.group, ofGroup.set(after.group, (ofGroup.get(after.group) ?? 0) + machines.length));
  }
  return losses;
}

interface GroupSides extends Pick<ChangedGroup, "changes" | "losses"> {
  readonly was: BootGroup | undefined;
  readonly is: BootGroup | undefined;
  /** What the Group may do to a machine that nobody knows, before and after. */
  readonly dangers: readonly [before: Danger, after: Danger];
  /** True if the Group installed before the change, and if it does after it, perhaps only once its hold ends. */
  readonly installed: boolean;
  readonly installs: boolean;
  readonly unseenFields: readonly ChangedField[];
}

function groupChange(
  group: string,
  { was, is, dangers: [before, after], changes, losses, installed, installs, unseenFields }: GroupSides,
): readonly ChangedGroup[] {
  const kind = was === undefined ? "added" : is === undefined ? "removed" : "changed";
  const effects = kind === "changed" ? effectFields([before.risk, after.risk], [installed, installs]) : [];
  const fields = [...changedFields(was, is), ...effects, ...unseenFields];
  if (kind === "changed" && fields.length === 0 && changes.length === 0 && losses.size === 0) return [];
  const isWorse =
    changes.some((change) => change.isMoreDestructive) ||
    (installs && (!installed || mayTakeUnknown(was, is))) ||
    (kind === "changed" && isMoreDestructive(before, after));
  return [{ group, kind, isMoreDestructive: isWorse, fields, changes: changes.toSorted(byDanger), losses }];
}

/** Compares the effect of a Group now, and else the one that it will have when its hold ends. */
function effectFields(
  [was, is]: readonly [Danger["risk"], Danger["risk"]],
  [installed, installs]: readonly [boolean, boolean],
): readonly ChangedField[] {
  if (was !== is) return [{ field: "effect", before: was, after: is }];
  if (installed === installs) return [];
  const text = (isInstall: boolean) => (isInstall ? "Install" : "Boot");
  return [{ field: "effect, once machines are served", before: text(installed), after: text(installs) }];
}

/** True if a Group may get machines that nobody knows, and that it did not get before. */
function mayTakeUnknown(was: BootGroup | undefined, is: BootGroup | undefined): boolean {
  if (was === undefined || is === undefined) return is !== undefined;
  const needsNoApproval = was.permits?.approval !== undefined && is.permits?.approval === undefined;
  return needsNoApproval || is.priority > was.priority || ["widens", "differs"].includes(selectorChange(was, is));
}

function byDanger(a: ChangedMachines, b: ChangedMachines): number {
  const rank = ({ isMoreDestructive: isWorse, after }: ChangedMachines) => (isWorse ? -risks.indexOf(after.risk) : 1);
  return rank(a) - rank(b) || b.machines.length - a.machines.length;
}
