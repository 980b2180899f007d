/**
 * Lint: everything that is wrong with manifests, or worth a look, each at its place. It says what a server would say of
 * them in its log and in statuses, in the same words, since it asks the same parts; and it looks for what a server cannot
 * know or does not mind: assets that are not there, Profiles that nobody gets, catch-alls.
 *
 * It promises that equal manifests give equal findings in one order, and that none of them quotes a template or a Secret.
 * It changes nothing.
 */

import { join } from "node:path";
import type { FileProblem } from "../directory/file-problem.ts";
import type { FindingCode } from "../model/findings.ts";
import type { Manifests } from "../offline/load-manifests.ts";
import { inputLabel } from "../offline/read-input.ts";
import { type AssetOptions, assetFindings } from "./assets.ts";
import { compareFindings, findingAt, type LintFinding } from "./finding.ts";
import { kindsOutOfInput, statusFindings } from "./statuses.ts";
import { type TrialOptions, trialFindings } from "./trials.ts";
import { useFindings } from "./use.ts";

export interface LintOptions extends Pick<TrialOptions, "progress"> {
  /** As they were loaded. */
  readonly directories: readonly string[];
  /** Something came by standard input. */
  readonly readsInput: boolean;
  /** Undefined: assets are not looked for. */
  readonly hasAsset: AssetOptions["hasAsset"] | undefined;
}

// Where machines would reach davit: of the block for documents (RFC 5737).
const davitUrl = "http://192.0.2.1:8080";

/** Finds everything. */
export async function lint(manifests: Manifests, options: LintOptions): Promise<readonly LintFinding[]> {
  const { directories, readsInput, hasAsset, progress } = options;
  const missing: ReadonlySet<FindingCode> = readsInput ? kindsOutOfInput(manifests) : new Set();
  const told = manifests.planned.flatMap((planned) => statusFindings(manifests, planned, { missing }));
  const tried = await trialFindings(manifests, { davitUrl, progress });
  // A trial meets what a status has told already: an argument of a Group that cannot be parsed.
  const known = new Set(told.map(placeText));
  const found = [
    ...[...manifests.view.problems, ...manifests.advice].map(problemFinding),
    ...told,
    ...tried.filter((finding) => !known.has(placeText(finding))),
    ...(hasAsset === undefined ? [] : await assetFindings(manifests, { davitUrl, hasAsset })),
    ...useFindings(manifests),
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

/** Files are called by their way from the directory where there is one only; a person clicks on the whole way. */
function shownFile(file: string, directories: readonly string[]): string {
  const [only, ...others] = directories;
  if (only === undefined || others.length > 0 || file === only || file === inputLabel) return file;
  return join(only, file);
}
