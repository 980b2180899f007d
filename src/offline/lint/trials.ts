/**
 * Renders the answers of each Group for a sample request, by the controller's trials. A mistake in a template affects
 * every Group that names the Profile, but it is reported once, at the template.
 */

import { createHash } from "node:crypto";
import { runTrials, type TrialFinding } from "../../controller/trials/trial.ts";
import { byProfile, type TrialInput, TrialInputs } from "../../controller/trials/trial-inputs.ts";
import { nextTurn } from "../../lib/slices.ts";
import { decodeGroup, groupPath } from "../../model/objects/documents.ts";
import { clearTexts } from "../../model/objects/secret-texts.ts";
import type { ObjectName } from "../../model/objects/source.ts";
import type { Manifests } from "../load/load-manifests.ts";
import { placeOfField } from "./fields.ts";
import { findingAt, type LintFinding, objectText } from "./finding.ts";
import type { PlacedMachine } from "./machine-groups.ts";
import { machineTrialFindings } from "./machine-trials.ts";

export interface TrialOptions {
  /** The URL by which machines reach davit. */
  readonly davitUrl: string;
  /** Called from time to time with the number of Groups that were tried. */
  readonly progress: (count: number, total: number) => void;
}

// The Groups between two updates of the progress line: about a second's work, if they have no mistakes.
const groupsPerTurn = 500;

/** A mistake and the Groups that have it. */
interface GroupedFault {
  readonly finding: TrialFinding;
  readonly profile: ObjectName;
  readonly groups: ObjectName[];
}

/** Returns the findings of each Group's answers, and those of each Machine that its Group's trial does not have. */
export async function trialFindings(
  manifests: Manifests,
  machines: readonly PlacedMachine[],
  options: TrialOptions,
): Promise<readonly LintFinding[]> {
  const inputs = inputsOf(manifests);
  const dues = manifests.planned
    .filter(({ name }) => name.kind === "Group")
    .map(({ name }) => ({ input: inputs.of(name) }))
    .filter(({ input }) => input.groupText !== undefined && input.profileText !== undefined);
  const shown = new Map<string, GroupedFault>();
  let count = 0;
  for (const job of byProfile(dues)) {
    for (let at = 0; at < job.length; at += groupsPerTurn) {
      const part = job.slice(at, at + groupsPerTurn).map(({ input }) => input);
      tryGroups(inputs, part, { davitUrl: options.davitUrl, shown });
      count += part.length;
      options.progress(count, dues.length);
      await nextTurn();
    }
  }
  const tools = { davitUrl: options.davitUrl, sha256 };
  const ofMachines = await machineTrialFindings(manifests, machines, { inputs, tools });
  return [...[...shown.values()].flatMap((each) => toFinding(manifests, each)), ...ofMachines];
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

function tryGroups(
  inputs: TrialInputs,
  groups: readonly TrialInput[],
  { davitUrl, shown }: { readonly davitUrl: string; readonly shown: Map<string, GroupedFault> },
): void {
  const job = inputs.jobOf(groups);
  const profile: ObjectName = { kind: "Profile", namespace: job.namespace, name: job.profile };
  for (const [at, trial] of runTrials(job, { davitUrl, sha256 }).entries()) {
    const group = groups[at]?.group;
    if (trial === "untried" || group === undefined) continue;
    for (const finding of trial) {
      const key = JSON.stringify([objectText(profile), finding]);
      const known = shown.get(key);
      if (known === undefined) shown.set(key, { finding, profile, groups: [group] });
      else known.groups.push(group);
    }
  }
}

function toFinding(manifests: Manifests, { finding, profile, groups }: GroupedFault): readonly LintFinding[] {
  const { code, place, text, isOfGroup } = finding;
  // Without a code, the Profile's own status reports this once for all of its Groups.
  if (code === undefined) return [];
  if (isOfGroup === true) {
    return groups.map((group) =>
      findingAt(placeOfField(manifests, group, place), code, `${objectText(group)}: ${text}`),
    );
  }
  const message = `${objectText(profile)} ${forGroups(groups)}: ${text}`;
  return [findingAt(placeOfField(manifests, profile, place), code, message)];
}

/** Names Groups in a message: `for Group default/a and 41 more`. */
export function forGroups([first, ...others]: readonly ObjectName[]): string {
  const name = first === undefined ? "no Group" : objectText(first);
  return `for ${name}${others.length === 0 ? "" : ` and ${others.length} more`}`;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
