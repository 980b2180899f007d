/** Turns what the controller reports in the statuses of objects into findings with places. */

import type { Advice, Finding } from "../../controller/status/conditions.ts";
import type { Planned } from "../../controller/step.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import { type Condition, holderOf, type ObjectName } from "../../model/objects/source.ts";
import type { Manifests } from "../load/load-manifests.ts";
import { findingAt, type LintFinding, objectText, placeOfField, templateAt } from "./finding.ts";

/**
 * Returns the findings in an object's status. The reader of its file has already reported all other findings.
 * @param missing the codes of findings that may only mean that the input lacks objects of the cluster.
 */
export function statusFindings(
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
export function kindsOutOfInput({ view }: Pick<Manifests, "view">): ReadonlySet<FindingCode> {
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
