/**
 * Finds mistakes in manifests, and gives advice, each with its place. It reports what a server would report in its log
 * and in statuses, in the same words, because it uses the same code. It also finds what a server cannot know or does
 * not check: missing and other assets, unused Profiles, catch-alls.
 *
 * Equal manifests give equal findings in the same order, until a grant ends. No finding quotes a template or a Secret.
 * No file is changed.
 */

import { join } from "node:path";
import type { Planned } from "../../controller/step.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import type { FileProblem } from "../../sources/directory/list-files.ts";
import type { Manifests } from "../load/load-manifests.ts";
import { inputLabel } from "../load/read-input.ts";
import { assetFindings, type LookAt } from "./assets.ts";
import { compareFindings, findingAt, type LintFinding, objectText, placeOfField } from "./finding.ts";
import { installFindings } from "./installs.ts";
import { machineFindings, placedMachines } from "./machines.ts";
import { kindsOutOfInput, statusFindings } from "./statuses.ts";
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
