/**
 * Renders the answers of each Machine with its own metadata and labels. A trial of a Group takes what any Machine
 * defines, so it does not find a variable that one of the Machines lacks.
 */

import { runTrials, type TrialFinding, type TrialTools } from "../../controller/trials/trial.ts";
import type { TrialInput, TrialInputs } from "../../controller/trials/trial-inputs.ts";
import { nextTurn } from "../../lib/slices.ts";
import { isJsonObject, type JsonValue } from "../../model/json.ts";
import { type GroupObject, type MachineObject, type ObjectName, objectKey } from "../../model/objects/source.ts";
import type { Manifests } from "../load/load-manifests.ts";
import { placeOfField } from "./fields.ts";
import { findingAt, type LintFinding, objectText } from "./finding.ts";
import type { PlacedMachine } from "./machine-groups.ts";
import { machinesText } from "./machines.ts";

/** Machines whose trials have the same findings. */
interface AlikeMachines {
  readonly group: GroupObject;
  readonly machines: [MachineObject, ...MachineObject[]];
}

interface MachineFault {
  readonly finding: TrialFinding;
  readonly profile: ObjectName;
  readonly machines: readonly MachineObject[];
}

// Trials between two turns of the event loop: about ten milliseconds' work.
const batchesPerTurn = 100;

/** Returns the findings that the trial of the Machine's Group does not have, one for each mistake. */
export async function machineTrialFindings(
  manifests: Manifests,
  machines: readonly PlacedMachine[],
  { inputs, tools }: { readonly inputs: TrialInputs; readonly tools: TrialTools },
): Promise<readonly LintFinding[]> {
  const planned = new Set(manifests.planned.map(({ name }) => objectKey(name)));
  const batches = batchesOf(machines).filter(({ group }) => planned.has(objectKey(group)));
  const ofGroups = new Map<string, ReadonlySet<string>>();
  const faults = new Map<string, MachineFault>();
  for (const [at, { group, machines: alike }] of batches.entries()) {
    const key = objectKey(group);
    const input = inputs.of(group);
    const known = ofGroups.get(key) ?? new Set(tried(inputs, input, tools).map(({ text }) => text));
    ofGroups.set(key, known);
    const own = tried(inputs, { ...input, samples: samplesOf(alike[0]) }, tools);
    const profile: ObjectName = { kind: "Profile", namespace: group.namespace, name: input.profile };
    const news = own.filter(({ code, text }) => code !== undefined && !known.has(text));
    for (const finding of news) noteFault(faults, { finding, profile, machines: alike });
    if (at % batchesPerTurn === 0) await nextTurn();
  }
  return [...faults.values()].flatMap((fault) => toFinding(manifests, fault));
}

function noteFault(faults: Map<string, MachineFault>, { finding, profile, machines }: MachineFault): void {
  const key = JSON.stringify([objectText(profile), finding]);
  const known = faults.get(key)?.machines ?? [];
  faults.set(key, { finding, profile, machines: [...known, ...machines] });
}

function tried(inputs: TrialInputs, input: TrialInput, tools: TrialTools): readonly TrialFinding[] {
  if (input.groupText === undefined || input.profileText === undefined) return [];
  const [trial = "untried"] = runTrials(inputs.jobOf([input]), tools);
  return trial === "untried" ? [] : trial;
}

/** The metadata and labels of the Machine, for templates: see `MachineSamples`. */
function samplesOf({ namespace, name, spec: { labels, metadata } }: MachineObject): TrialInput["samples"] {
  return { ...metadata, machine: { name, namespace, labels: { ...labels } } };
}

function batchesOf(machines: readonly PlacedMachine[]): readonly AlikeMachines[] {
  const batches = new Map<string, AlikeMachines>();
  for (const { machine, groups } of machines) {
    for (const group of groups) {
      const { labels, metadata } = machine.spec;
      const key = JSON.stringify([objectKey(group), shapeOf(metadata), shapeOf(labels)]);
      const batch = batches.get(key);
      if (batch === undefined) batches.set(key, { group, machines: [machine] });
      else batch.machines.push(machine);
    }
  }
  return [...batches.values()];
}

/** A text without a mark of boot scripts, YAML, JSON or templates. Templates print two such texts alike. */
const plainText = /^[\w.:/-]+$/;

/** Names with the kinds of their values. Only a text that may break a result stands for itself. */
function shapeOf(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (isJsonObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member ?? null)]));
  }
  return typeof value === "string" && plainText.test(value) ? "plain" : value;
}

function toFinding(manifests: Manifests, { finding, profile, machines }: MachineFault): readonly LintFinding[] {
  const { code, text } = finding;
  const [first] = machines;
  if (code === undefined || first === undefined) return [];
  const place = placeOfField(manifests, first, { field: "spec.metadata" });
  return [findingAt(place, code, `${objectText(profile)} for ${machinesText(machines)}: ${text}`)];
}
