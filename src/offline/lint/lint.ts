/**
 * Finds mistakes in manifests, and gives advice, each with its place. It reports what a server would report in its log
 * and in statuses, in the same words, because it uses the same code. It also finds what a server cannot know or does
 * not check: missing and other assets, unused Profiles, catch-alls.
 *
 * Equal manifests give equal findings in the same order, until a grant ends. No finding quotes a template or a Secret.
 * No file is changed.
 */

import { join } from "node:path";
import type { Advice, Finding } from "../../controller/status/conditions.ts";
import type { Planned } from "../../controller/step.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import { type Condition, holderOf, type ObjectName } from "../../model/objects/source.ts";
import type { FileProblem } from "../../sources/directory/list-files.ts";
import type { Manifests } from "../load/load-manifests.ts";
import { inputLabel } from "../load/read-input.ts";
import { assetFindings, type LookAt } from "./assets.ts";
import { compareFindings, findingAt, type LintFinding, objectText, placeOfField, templateAt } from "./finding.ts";
import { installFindings } from "./installs.ts";
import { machineFindings, placedMachines } from "./machines.ts";
import { type TrialProgress, trialFindings } from "./trials.ts";

interface LintOptions {
  readonly progress: TrialProgress;
  /** The directories that were loaded, with the names that the user gave. */
  readonly directories: readonly string[];
  readonly readsInput: boolean;
  /** Undefined if lint need not search for assets. */
  readonly lookAt: LookAt | undefined;
  /** The present time in Unix milliseconds, with which lint compares the ends of grants. */
  readonly nowMs: number;
}

export async function lint(manifests: Manifests, options: LintOptions): Promise<readonly LintFinding[]> {
  const { directories, readsInput, lookAt, nowMs, progress } = options;
  const missing: ReadonlySet<FindingCode> = readsInput ? kindsOutOfInput(manifests) : new Set();
  const ofStatuses = manifests.planned.flatMap((planned) => statusFindings(manifests, planned, missing));
  const machines = placedMachines(manifests);
  const tried = await trialFindings(manifests, machines, progress);
  // Trials also find faults that a status already reports, such as a Group's argument that cannot be parsed.
  const known = new Set(ofStatuses.map(placeText));
  const found = [
    ...[...manifests.view.problems, ...manifests.advice].map(problemFinding),
    ...ofStatuses,
    ...tried.filter((finding) => !known.has(placeText(finding))),
    ...(lookAt === undefined ? [] : await assetFindings(manifests, lookAt)),
    ...catchAlls(manifests),
    ...unusedProfiles(manifests),
    ...machineFindings(manifests, machines),
    ...installFindings(manifests, { machines, nowMs }),
  ];
  const shown = found.map((finding) => ({ ...finding, file: shownFile(finding.file, directories) }));
  return shown.toSorted(compareFindings);
}

function placeText({ file, line, column, code }: LintFinding): string {
  return JSON.stringify([file, line, column, code]);
}

function problemFinding({ file, at, code, text }: FileProblem): LintFinding {
  return findingAt({ file, ...(at ?? { line: 1, column: 1 }) }, code, text);
}

/**
 * Returns a file's name for the output. If there is one directory, the file names in findings are relative to it. The
 * output has the whole path, so that a person can click on it.
 */
function shownFile(file: string, directories: readonly string[]): string {
  const [only, ...others] = directories;
  if (only === undefined || others.length > 0 || file === only || file === inputLabel) return file;
  return join(only, file);
}

/**
 * Finds Groups with `matchAll`, except those whose Profile boots from disk. Such a Group is good practice. Any other
 * Profile may be an installer.
 */
function catchAlls(manifests: Manifests): readonly LintFinding[] {
  const { view } = manifests;
  return [...view.all("Group")].flatMap((group) => {
    const { spec, namespace, refusal } = group;
    const boot = view.get("Profile", namespace, spec.profile)?.spec.boot;
    if (!spec.matchAll || refusal !== undefined || boot === undefined || boot.kind === "local") return [];
    const message = "takes every machine that no other Group takes, and does not boot it from disk";
    return [
      findingAt(
        placeOfField(manifests, group, { field: "spec.matchAll" }),
        "catch-all",
        `${objectText(group)}: ${message}`,
      ),
    ];
  });
}

/** Finds Profiles that no Group names; none while there is a problem, because an unread Group may name the Profile. */
function unusedProfiles(manifests: Manifests): readonly LintFinding[] {
  if (!manifests.view.complete) return [];
  return manifests.planned.filter(isUnused).map(({ name }) => {
    const place = placeOfField(manifests, name, { field: "metadata.name" });
    return findingAt(place, "unused-profile", `${objectText(name)}: no Group names it`);
  });
}

function isUnused({ name, status }: Planned): boolean {
  return name.kind === "Profile" && status?.groupCount === 0;
}

/**
 * Returns the findings in an object's status. The reader of its file has already reported all other findings.
 * @param missing the codes of findings that may only mean that the input lacks objects of the cluster.
 */
function statusFindings(
  manifests: Manifests,
  { name, reported }: Planned,
  missing: ReadonlySet<FindingCode>,
): readonly LintFinding[] {
  if (reported === undefined) return [];
  return [
    ...reported.findings.flatMap((finding) =>
      toFinding(manifests, name, softened(manifests, name, { finding, missing })),
    ),
    ...reported.advice.map((advice) => adviceFinding(manifests, name, advice)),
    // Conflicts of a refused object are not shown, because the object must be corrected first.
    ...(reported.findings.some(({ reason }) => reason === "Refused")
      ? []
      : conflictFindings(manifests, name, reported.conflict)),
  ];
}

function toFinding(manifests: Manifests, name: ObjectName, { code, message, place }: Finding): readonly LintFinding[] {
  if (code === undefined) return [];
  return [findingAt(placeOfField(manifests, name, place), code, sentence(name, message))];
}

function adviceFinding(manifests: Manifests, name: ObjectName, { code, text, field }: Advice): LintFinding {
  return findingAt(placeOfField(manifests, name, { field }), code, sentence(name, text));
}

const conflictCodes: Readonly<Record<string, FindingCode>> = {
  SelectorOverlap: "unreachable-group",
  SelectorTie: "selector-tie",
  ClaimedBefore: "selector-tie",
};

function conflictFindings(
  manifests: Manifests,
  name: ObjectName,
  conflict: Condition | undefined,
): readonly LintFinding[] {
  const code = conflict && conflictCodes[conflict.reason];
  if (conflict === undefined || code === undefined) return [];
  const field = manifests.places.has(name, ["spec", "selector"]) ? "spec.selector" : "spec.matchAll";
  return [findingAt(placeOfField(manifests, name, { field }), code, sentence(name, conflict.message))];
}

/** Puts the object before a message, as the reader of files does: `Profile default/web, spec.ignition: ...`. */
function sentence(name: ObjectName, message: string): string {
  return `${objectText(name)}${message.startsWith("spec.") ? "," : ":"} ${message}`;
}

/** Returns the findings about missing objects of kinds that the input does not have at all: a cluster may have them. */
function kindsOutOfInput({ view }: Pick<Manifests, "view">): ReadonlySet<FindingCode> {
  const kinds = [
    ["missing-config-map", "ConfigMap"],
    ["missing-secret", "Secret"],
  ] as const;
  return new Set(kinds.filter(([, kind]) => [...view.all(kind)].length === 0).map(([code]) => code));
}

/** Replaces a finding about a missing object if the input has no objects of this kind. */
function softened(
  manifests: Manifests,
  name: ObjectName,
  { finding, missing }: { readonly finding: Finding; readonly missing: ReadonlySet<FindingCode> },
): Finding {
  const { code, place } = finding;
  if (code === undefined || !missing.has(code)) return finding;
  const field = place?.field ?? "";
  const source = templateAt(manifests, name, field);
  const what =
    source === undefined || source.kind === "inline" ? "text" : `${holderOf(source, "").kind} "${source.name}"`;
  const message = `${field}: ${what} is not in the input, so its text was not looked at`;
  return { ...finding, code: "not-in-input", message };
}
