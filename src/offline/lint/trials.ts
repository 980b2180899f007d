/**
 * Renders the answers of each Group for a sample request, by the controller's trials. A mistake in a template affects
 * every Group that names the Profile, but it is reported once, at the template. Renders the answers of each Machine,
 * too, with its own metadata and labels: a trial of a Group takes what any Machine defines, so it does not find a
 * variable that one of the Machines lacks.
 */

import { runTrials, type Trial, type TrialFinding } from "../../controller/trials/trial.ts";
import { byProfile, type TrialInput, TrialInputs } from "../../controller/trials/trial-inputs.ts";
import { nextTurn } from "../../lib/slices.ts";
import { isJsonObject, type JsonValue } from "../../model/json.ts";
import { decodeGroup, groupPath } from "../../model/objects/documents.ts";
import { clearTexts } from "../../model/objects/secret-texts.ts";
import { type GroupObject, type MachineObject, type ObjectName, objectKey } from "../../model/objects/source.ts";
import { type Manifests, sha256 } from "../load/load-manifests.ts";
import { davitUrl, findingAt, type LintFinding, objectText, placeOfField } from "./finding.ts";
import { machinesText, type PlacedMachine } from "./machines.ts";

// The Groups between two updates of the progress line: about a second's work, if they have no mistakes.
const groupsPerTurn = 500;
// Trials of Machines between two turns of the event loop: about ten milliseconds' work.
const batchesPerTurn = 100;

/** A mistake, and the Groups or Machines that have it. */
interface SharedFault<Owner extends ObjectName> {
  readonly finding: TrialFinding;
  readonly profile: ObjectName;
  readonly owners: Owner[];
}

/** The mistakes, each once. */
class SharedFaults<Owner extends ObjectName> {
  readonly #faults = new Map<string, SharedFault<Owner>>();

  note(finding: TrialFinding, profile: ObjectName, owners: readonly Owner[]): void {
    const key = JSON.stringify([objectText(profile), finding]);
    const known = this.#faults.get(key);
    if (known === undefined) this.#faults.set(key, { finding, profile, owners: [...owners] });
    else known.owners.push(...owners);
  }

  all(): readonly SharedFault<Owner>[] {
    return [...this.#faults.values()];
  }
}

/** Returns the findings of each Group's answers, and those of each Machine that its Group's trial does not have. */
export async function trialFindings(
  manifests: Manifests,
  machines: readonly PlacedMachine[],
  progress: TrialProgress,
): Promise<readonly LintFinding[]> {
  const inputs = inputsOf(manifests);
  const ofGroups = await groupFaults(manifests, inputs, progress);
  const ofMachines = await machineFaults(manifests, machines, inputs);
  return [
    ...ofGroups.flatMap((fault) => groupFindings(manifests, fault)),
    ...ofMachines.flatMap((fault) => machineFindings(manifests, fault)),
  ];
}

/** Called from time to time with the number of Groups that were tried. */
export type TrialProgress = (count: number, total: number) => void;

const tools = { davitUrl, sha256 };

async function groupFaults(
  { planned }: Manifests,
  inputs: TrialInputs,
  progress: TrialProgress,
): Promise<readonly SharedFault<ObjectName>[]> {
  const dues = planned
    .filter(({ name }) => name.kind === "Group")
    .map(({ name }) => ({ input: inputs.of(name) }))
    .filter(({ input }) => isWhole(input));
  const faults = new SharedFaults<ObjectName>();
  const groups = byProfile(dues).map((job) => job.map(({ input }) => input));
  const turns = groups.flatMap((job) => Array.from(slicesOf(job, groupsPerTurn)));
  let count = 0;
  for (const turn of turns) {
    const trials = runTrials(inputs.jobOf(turn), tools);
    for (const [at, { group, profile }] of turn.entries()) {
      for (const finding of findingsOf(trials[at])) faults.note(finding, profileOf(group, profile), [group]);
    }
    count += turn.length;
    progress(count, dues.length);
    await nextTurn();
  }
  return faults.all();
}

function* slicesOf<Item>(items: readonly Item[], length: number): Iterable<readonly Item[]> {
  for (let at = 0; at < items.length; at += length) yield items.slice(at, at + length);
}

function inputsOf({ documents, view, machineSamples }: Manifests): TrialInputs {
  const texts = new Map(documents);
  const textAt = (path: string) => texts.get(path);
  const group = (namespace: string, name: string) => {
    const text = textAt(groupPath(namespace, name));
    return text === undefined ? undefined : decodeGroup(text);
  };
  const secretTexts = clearTexts(sha256);
  return new TrialInputs({ documents: { textAt, group }, source: { view }, machineSamples, secretTexts });
}

function isWhole({ groupText, profileText }: TrialInput): boolean {
  return groupText !== undefined && profileText !== undefined;
}

function profileOf({ namespace }: ObjectName, name: string): ObjectName {
  return { kind: "Profile", namespace, name };
}

function findingsOf(trial: Trial | undefined): readonly TrialFinding[] {
  return trial === undefined || trial === "untried" ? [] : trial;
}

function groupFindings(
  manifests: Manifests,
  { finding, profile, owners }: SharedFault<ObjectName>,
): readonly LintFinding[] {
  const { code, place, text, isOfGroup } = finding;
  // Without a code, the Profile's own status reports this once for all of its Groups.
  if (code === undefined) return [];
  if (isOfGroup === true) {
    return owners.map((group) =>
      findingAt(placeOfField(manifests, group, place), code, `${objectText(group)}: ${text}`),
    );
  }
  const message = `${objectText(profile)} ${forGroups(owners)}: ${text}`;
  return [findingAt(placeOfField(manifests, profile, place), code, message)];
}

/** Names Groups in a message: `for Group default/a and 41 more`. */
export function forGroups([first, ...others]: readonly ObjectName[]): string {
  const name = first === undefined ? "no Group" : objectText(first);
  return `for ${name}${others.length === 0 ? "" : ` and ${others.length} more`}`;
}

/** Machines of a Group whose trials have the same findings. */
interface AlikeMachines {
  readonly group: GroupObject;
  readonly machines: [MachineObject, ...MachineObject[]];
}

/** Returns the mistakes that the trial of the Machine's Group does not have. */
async function machineFaults(
  manifests: Manifests,
  machines: readonly PlacedMachine[],
  inputs: TrialInputs,
): Promise<readonly SharedFault<MachineObject>[]> {
  const planned = new Set(manifests.planned.map(({ name }) => objectKey(name)));
  const batches = batchesOf(machines).filter(({ group }) => planned.has(objectKey(group)));
  const tried = (input: TrialInput) => (isWhole(input) ? findingsOf(runTrials(inputs.jobOf([input]), tools)[0]) : []);
  const known = new Map<string, ReadonlySet<string>>();
  const faults = new SharedFaults<MachineObject>();
  for (const [at, { group, machines: alike }] of batches.entries()) {
    const key = objectKey(group);
    const input = inputs.of(group);
    const ofGroup = known.get(key) ?? new Set(tried(input).map(({ text }) => text));
    known.set(key, ofGroup);
    const news = tried({ ...input, samples: samplesOf(alike[0]) }).filter(
      ({ code, text }) => code !== undefined && !ofGroup.has(text),
    );
    for (const finding of news) faults.note(finding, profileOf(group, input.profile), alike);
    if (at % batchesPerTurn === 0) await nextTurn();
  }
  return faults.all();
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

function machineFindings(
  manifests: Manifests,
  { finding: { code, text }, profile, owners }: SharedFault<MachineObject>,
): readonly LintFinding[] {
  const [first] = owners;
  if (code === undefined || first === undefined) return [];
  const place = placeOfField(manifests, first, { field: "spec.metadata" });
  return [findingAt(place, code, `${objectText(profile)} for ${machinesText(owners)}: ${text}`)];
}
