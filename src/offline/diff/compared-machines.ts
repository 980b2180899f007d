/**
 * Lists the machines to compare: those that a running davit has seen, those of Machine objects, and those that Groups
 * name. For a Group without any, and for a new selector, it lists a sample machine.
 */

import type { BootGroup } from "../../boot/core/known-documents.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import { isPositive, type Requirement, toRequirement } from "../../model/labels/expression.ts";
import { identityLabels, type Labels, labelsFromQuery } from "../../model/labels/labels.ts";
import { documentAddress } from "../../model/objects/documents.ts";
import type { Selection } from "../../model/objects/group.ts";
import { decodeMachine } from "../../model/objects/machine.ts";
import { sampleLabels, sampleRequest } from "../../model/selection/sample-machine.ts";
import type { DocumentTexts } from "../load/load-manifests.ts";

/** A machine with the labels that it sends, as far as they are known. */
export interface ComparedMachine {
  /**
   * A label that names the machine, such as `mac=52:54:00:a1:9c:ae`. Of a sample machine, the labels that its
   * Group asks for.
   */
  readonly name: string;
  readonly labels: Labels;
  /** A query that has these labels. */
  readonly rawQuery: string;
  /** True for a machine that is made up for a Group. */
  readonly isSample: boolean;
  /**
   * True if the machine last got another Group than these labels select, and that Group still exists in the earlier
   * state. The machine may send other labels, too.
   */
  readonly isUncertain: boolean;
}

/** A machine that a running davit knows. */
export interface RecordedLabels {
  readonly labels: Readonly<Record<string, string>>;
  /** `namespace/name` of the Group that it last got. */
  readonly group?: string | undefined;
}

interface MachineSources {
  readonly recorded: readonly RecordedLabels[];
  /** Of both states. */
  readonly documents: readonly DocumentTexts[];
  /** The two states. */
  readonly before: BootIndex;
  readonly after: BootIndex;
  /** Returns the name of the Group that a machine gets by an index. */
  readonly groupOf: (index: BootIndex, labels: Labels) => string | undefined;
}

type LabelEntries = readonly (readonly [label: string, value: string])[];

/** Returns every known machine once. */
export function machinesToCompare(sources: MachineSources): readonly ComparedMachine[] {
  const found = new FoundMachines();
  for (const recorded of sources.recorded) found.add(recordedMachine(recorded, sources));
  for (const documents of sources.documents) for (const document of documents) found.addListed(...document);
  for (const { groups } of [sources.before, sources.after])
    for (const group of groups.values()) for (const labels of namedBy(group)) found.add(machineOf(labels));
  return found.machines;
}

/** Returns the sample machine of a Group, with the labels that lint and the controller make up for it. */
export function sampleOf(group: Selection): ComparedMachine {
  const asked = [...sampleLabels(group)].map((pair) => pair.join("="));
  const name = asked.length === 0 ? "no labels" : asked.join(" ");
  return { ...sampleRequest(group), name, isSample: true, isUncertain: false };
}

/**
 * Returns sample machines that two Groups select; none if they ask for different values of one label.
 * @param now the first Group after the change. For each requirement of `now`, one more sample asks for the opposite.
 *   The caller drops samples that the first Group did not get before.
 */
export function samplesOfBoth(
  first: Selection,
  second: Selection,
  now: Selection | undefined,
): readonly ComparedMachine[] {
  const isOpposed = Object.entries(first.selector).some(
    ([label, value]) => Object.hasOwn(second.selector, label) && second.selector[label] !== value,
  );
  if (isOpposed) return [];
  const selector = { ...first.selector, ...second.selector };
  const common = [...first.expressions, ...second.expressions];
  const lost = now === undefined ? [] : requirementsOf(now).map((each) => [opposite(each)]);
  return [[], ...lost].map((more) => sampleOf({ selector, expressions: [...common, ...more] }));
}

function requirementsOf({ selector, expressions }: Selection): readonly Requirement[] {
  const labels = Object.entries(selector).map(([key, value]) =>
    toRequirement({ key, operator: "In", values: [value] }),
  );
  return [...labels, ...expressions];
}

/** Returns the requirement that is met by exactly the labels that do not meet the given one. */
function opposite(given: Requirement): Requirement {
  const operator = isPositive(given) ? "NotIn" : "Exists";
  return { ...given, operator, accepts: (value) => !given.accepts(value) };
}

class FoundMachines {
  readonly machines: ComparedMachine[] = [];
  /** Whether the machine of a name has a MAC address. */
  readonly #names = new Map<string, { readonly hasMac: boolean }>();

  /** Adds the machine of a Machine's document. Ignores other documents. */
  addListed(path: string, text: string): void {
    if (documentAddress(path)?.kind !== "machine") return;
    const identities = (decodeMachine(text)?.spec.identities ?? []).map(labelOf);
    const uuid = identities.find(([label]) => label === "uuid");
    const mac = identities.find(([label]) => label === "mac");
    this.add(machineOf([uuid, mac].filter((each) => each !== undefined)), identities);
  }

  /**
   * Adds a machine unless it is known. Machines with different MAC addresses are never one, whatever else they have in
   * common: boards may share a uuid. @param others further names of the machine.
   */
  add(machine: ComparedMachine, others: LabelEntries = []): void {
    const own = [...machine.labels].filter(([label]) => identityLabels.includes(label));
    const strong = own.filter(([label]) => label === "mac" || label === "uuid");
    const names = [...(strong.length > 0 ? strong : own), ...others];
    const hasMac = names.some(([label]) => label === "mac");
    const isKnown = ([label, value]: LabelEntries[number]) => {
      const known = this.#names.get(`${label}=${value}`);
      return known !== undefined && (label === "mac" || !hasMac || !known.hasMac);
    };
    if (names.length === 0 || names.some(isKnown)) return;
    // A machine that is known by its MAC address is known by its other names, too.
    for (const pair of [...own, ...others]) this.#names.set(pair.join("="), { hasMac });
    this.machines.push(machine);
  }
}

function machineOf(labels: LabelEntries): ComparedMachine {
  const rawQuery = labels.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
  const read = labelsFromQuery(rawQuery);
  const [name = ""] = identityOrder.flatMap((label) => (read.has(label) ? [`${label}=${read.get(label)}`] : []));
  return { name, labels: read, rawQuery, isSample: false, isUncertain: false };
}

/** The label by which a person finds a machine comes first. */
const identityOrder = ["mac", "uuid", "serial", "hostname"];

/**
 * Returns a machine as a running davit has recorded it. The records have no labels without a meaning for davit, such as
 * `zone`. So the labels of the Group that it last got are added, if it gets this Group by them.
 */
function recordedMachine({ labels, group }: RecordedLabels, { before, groupOf }: MachineSources): ComparedMachine {
  const plain = machineOf(Object.entries(labels));
  const last = group === undefined ? undefined : before.groups.get(group);
  if (last === undefined || groupOf(before, plain.labels) === group) return plain;
  const missing = wantedBy(last).filter(([label]) => !plain.labels.has(label) && !identityLabels.includes(label));
  const completed = machineOf([...Object.entries(labels), ...missing]);
  if (missing.length > 0 && groupOf(before, completed.labels) === group) return completed;
  return { ...plain, isUncertain: true };
}

/** The labels whose values every machine of a Group has. */
function wantedBy({ selector, expressions }: BootGroup): LabelEntries {
  const single = expressions.flatMap(({ key, operator, values: [value, ...others] }) =>
    operator === "In" && value !== undefined && others.length === 0 ? [[key, value] as const] : [],
  );
  return [...Object.entries(selector), ...single];
}

/** The labels of each machine that a Group names. */
function namedBy(group: BootGroup): readonly LabelEntries[] {
  const common = sampleLabels(group);
  const named = [
    ...Object.entries(group.selector),
    ...group.expressions.flatMap(({ key, operator, values }) =>
      operator === "In" ? values.map((value) => [key, value] as const) : [],
    ),
  ].filter(([label]) => identityLabels.includes(label));
  return named.map(([label, value]) => [...new Map([...common, [label, value]])]);
}

/** Reads an identity of a Machine, such as `mac/52:54:00:a1:9c:ae`. */
function labelOf(identity: string): readonly [label: string, value: string] {
  const at = identity.indexOf("/");
  return [identity.slice(0, at), identity.slice(at + 1)];
}
