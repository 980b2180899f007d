/** Finds mistakes in Machines that the objects beside them show: shared identities, and labels that select nothing. */

import { nearestWord } from "../../lib/text/nearest-word.ts";
import { type Expression, toRequirement } from "../../model/labels/expression.ts";
import { decodeGroup, groupPath, machinePath } from "../../model/objects/documents.ts";
import { type Group, toGroup } from "../../model/objects/group.ts";
import { decodeMachine, type MachineSpec } from "../../model/objects/machine.ts";
import { type GroupObject, type MachineObject, type ObjectName, objectKey } from "../../model/objects/source.ts";
import { SelectorIndex } from "../../model/selection/selector-index.ts";
import type { Manifests } from "../load/load-manifests.ts";
import { findingAt, type LintFinding, objectText, placeOfField } from "./finding.ts";

/** Returns the findings about Machines and their labels. */
export function machineFindings(manifests: Manifests, machines: readonly PlacedMachine[]): readonly LintFinding[] {
  return [
    ...machines.flatMap(({ machine }) => sharedIdentity(manifests, machine)),
    ...unselectedLabels(manifests, machines),
  ];
}

/** Names Machines in a finding: `Machine default/a and 41 more`. */
export function machinesText([first, ...others]: readonly ObjectName[]): string {
  const name = first === undefined ? "no Machine" : objectText(first);
  return others.length === 0 ? name : `${name} and ${others.length} more`;
}

/** The finding for the condition `Identified`, with the text of that condition. */
function sharedIdentity(manifests: Manifests, machine: MachineObject): readonly LintFinding[] {
  const rival = manifests.machineIdentities.rivalOf(machine);
  if (rival === undefined) return [];
  const { name, identity } = rival;
  const field = identity.startsWith("uuid/") ? "spec.identity.uuid" : "spec.identity.macs";
  const text = `${objectText(name)} lists its ${identity.replace("/", " ")}, too: remove it from one of the two`;
  return [
    findingAt(placeOfField(manifests, machine, { field }), "duplicate-identity", `${objectText(machine)}: ${text}`),
  ];
}

/** A condition of a Group on a label. */
interface Wish extends Expression {
  readonly group: GroupObject;
  readonly accepts: (value: string) => boolean;
}

/**
 * Finds labels of Machines that no Group selects, and that look like a mistake: Groups ask for other values of the
 * label, or for a label of nearly the same name. Any other label may be for templates alone. Finds none while there is
 * a problem, because an unread Group may select the label.
 */
function unselectedLabels(manifests: Manifests, machines: readonly PlacedMachine[]): readonly LintFinding[] {
  if (!manifests.view.complete) return [];
  const wishes = wishesByKey(manifests.view.all("Group"));
  return [...machinesByLabel(machines).values()].flatMap(({ key, value, machines: owners }) => {
    const [first] = owners;
    const text = labelFault(key, value, wishes);
    if (first === undefined || text === undefined) return [];
    const place = placeOfField(manifests, first, { field: `spec.labels[${key}]` });
    return [findingAt(place, "unselected-label", `${machinesText(owners)}: ${text}`)];
  });
}

interface Labelled {
  readonly key: string;
  readonly value: string;
  readonly machines: MachineObject[];
}

function machinesByLabel(machines: readonly PlacedMachine[]): ReadonlyMap<string, Labelled> {
  const found = new Map<string, Labelled>();
  for (const { machine, isTenant } of machines) {
    if (isTenant) continue;
    for (const [key, value] of Object.entries(machine.spec.labels)) {
      const id = JSON.stringify([key, value]);
      const labelled = found.get(id) ?? { key, value, machines: [] };
      found.set(id, labelled);
      labelled.machines.push(machine);
    }
  }
  return found;
}

/** The conditions of Groups on each label. The Groups are in the order of their names. */
function wishesByKey(groups: Iterable<GroupObject>): ReadonlyMap<string, readonly Wish[]> {
  const wishes = new Map<string, Wish[]>();
  for (const group of [...groups].toSorted((a, b) => (objectKey(a) < objectKey(b) ? -1 : 1))) {
    const labels = Object.entries(group.spec.selector).map(([key, value]) => ({
      key,
      operator: "In" as const,
      values: [value],
    }));
    for (const expression of [...labels, ...(group.spec.expressions ?? [])]) {
      const known = wishes.get(expression.key) ?? [];
      wishes.set(expression.key, known);
      known.push({ ...toRequirement(expression), group });
    }
  }
  return wishes;
}

/** Says why a label looks like a mistake; undefined if it does not. */
function labelFault(key: string, value: string, wishes: ReadonlyMap<string, readonly Wish[]>): string | undefined {
  const asked = wishes.get(key);
  if (asked === undefined) return keyFault(key, wishes);
  if (asked.some(({ accepts }) => accepts(value))) return undefined;
  const exact = asked.filter(({ operator }) => operator === "In");
  const near = nearestWord(value, [...new Set(exact.flatMap(({ values }) => values))]);
  const wish = exact.find(({ values }) => near !== undefined && values.includes(near)) ?? exact[0] ?? asked[0];
  if (wish === undefined) return undefined;
  const selects = `${objectText(wish.group)} selects ${wishText(wish, near)}`;
  const cure = `correct one of the two${near === undefined ? ", or add a Group" : ""}`;
  return `no Group selects ${key}=${value}: ${selects}, so ${cure}`;
}

function wishText({ key, operator, values }: Wish, near: string | undefined): string {
  const value = near !== undefined && values.includes(near) ? near : values[0];
  if (operator === "In" && value !== undefined) return `${key}=${value}`;
  return [key, operator, ...(values.length === 0 ? [] : [values.slice(0, 3).join(", ")])].join(" ");
}

function keyFault(key: string, wishes: ReadonlyMap<string, readonly Wish[]>): string | undefined {
  const near = nearestWord(key, [...wishes.keys()]);
  const wish = near === undefined ? undefined : wishes.get(near)?.[0];
  if (wish === undefined) return undefined;
  return `no Group selects by ${key}: ${objectText(wish.group)} selects by ${near}, so correct one of the two`;
}

/** An accepted Machine and its Groups. */
export interface PlacedMachine {
  readonly machine: MachineObject;
  /** True if the labels of the Machine select no Group: see `MachineDocument.tenant`. */
  readonly isTenant: boolean;
  /** The Groups that its macs select, nearly always one. Empty if no Group selects the Machine. */
  readonly groups: readonly GroupObject[];
}

/** Returns the accepted Machines of manifests, with the Groups that their machines get if they send no other labels. */
export function placedMachines({ view, documents }: Pick<Manifests, "view" | "documents">): readonly PlacedMachine[] {
  const machines = [...view.all("Machine")].filter(({ refusal }) => refusal === undefined);
  if (machines.length === 0) return [];
  const texts = new Map(documents);
  const index = new SelectorIndex([...view.all("Group")].flatMap((group) => readyGroup(group, texts)));
  return machines.map((machine) => {
    const { namespace, name, spec } = machine;
    const isTenant = decodeMachine(texts.get(machinePath(namespace, name)) ?? "")?.tenant === true;
    const found = requestsOf(spec, isTenant ? {} : spec.labels).map((labels) => index.find(labels)?.id);
    const groups = [...new Set(found)].flatMap((id) => groupOf(view, id));
    const counting = groups.filter((group) => !isTenant || group.namespace === namespace);
    return { machine, isTenant, groups: counting.filter(({ refusal }) => refusal === undefined) };
  });
}

function readyGroup({ namespace, name }: GroupObject, texts: ReadonlyMap<string, string>): readonly Group[] {
  const document = decodeGroup(texts.get(groupPath(namespace, name)) ?? "");
  return document === undefined ? [] : [toGroup(namespace, name, document.spec, document)];
}

/** The labels of the Machine's requests: a machine sends its uuid and the mac of the card by which it boots. */
function requestsOf(
  { identities }: MachineSpec,
  labels: MachineSpec["labels"],
): readonly ReadonlyMap<string, string>[] {
  const split = identities.map(
    (text) => [text.slice(0, text.indexOf("/")), text.slice(text.indexOf("/") + 1)] as const,
  );
  const uuid = split.filter(([label]) => label === "uuid");
  const macs = split.filter(([label]) => label === "mac");
  const requests = macs.length === 0 ? [uuid] : macs.map((mac) => [...uuid, mac]);
  return requests.map((identity) => new Map([...identity, ...Object.entries(labels)]));
}

function groupOf(view: Manifests["view"], id: string | undefined): readonly GroupObject[] {
  if (id === undefined) return [];
  const at = id.indexOf("/");
  return [view.get("Group", id.slice(0, at), id.slice(at + 1))].filter((group) => group !== undefined);
}
