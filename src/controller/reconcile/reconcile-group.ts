/**
 * Makes a Group's document and status. Selector, profileRef, priority and hold take effect immediately, whatever the
 * state of the Group's Profile. Otherwise the Group's machines would get a less specific Group. Pure.
 */

import type { DocumentChange } from "../../model/feed.ts";
import type { Expression } from "../../model/labels/expression.ts";
import { encodeDocument, type GroupDocument, groupPath } from "../../model/objects/documents.ts";
import { type Group, type GroupSpec, type Selection, selectorText, toGroup } from "../../model/objects/group.ts";
import type { Condition, ObjectName, SourceView } from "../../model/objects/source.ts";
import { countingAtOnce } from "../../model/selection/at-once.ts";
import type { Advantage } from "../../model/selection/contest.ts";
import type { Documents, DocumentWrite } from "../core/documents.ts";
import type { Standing } from "../ranking/ranking.ts";
import { conditionsFor, type Finding, type Outcome } from "../status/conditions.ts";
import { groupAdvice } from "./advice.ts";
import type { GroupDraft } from "./draft-group.ts";
import { inField, type ProfileWorld, templateFinding } from "./resolve-profile.ts";

/** What davit looks up about other Groups and about Profiles. */
export interface GroupWorld {
  /** See `profileState`. */
  readonly profile: (namespace: string, name: string) => "there" | "refused" | "missing";
  readonly standingOf: (group: Group) => Standing;
  readonly checkTemplate: ProfileWorld["checkTemplate"];
}

/** Brings a Group's document in line with its draft; `storedText` is the stored document. */
export function reconcileGroup(draft: GroupDraft, storedText: string | undefined, world: GroupWorld): Outcome {
  const { id, generation, spec, refusal, document, sync } = draft;
  const { namespace, name } = id;
  const findings = [...findingsOf(draft, world), ...draft.findings];
  const group = document && toGroup(namespace, name, document.spec);
  const conflict = group && conflictOf(group, world.standingOf(group));
  const shown = group ?? (spec && toGroup(namespace, name, spec));
  const advice = spec === undefined || refusal !== undefined ? [] : groupAdvice(spec);
  const isHeld = document?.spec.hold === true;
  const reported = { findings, sync, advice, isUnresolved: spec === undefined, ...(conflict && { conflict }), isHeld };
  return {
    changes: groupChanges(groupPath(namespace, name), document, storedText),
    status: {
      observedGeneration: generation,
      conditions: conditionsFor(reported),
      ...(shown && { selector: selectorSummary(shown) || "<all>" }),
    },
    reported,
  };
}

/** The change that gives a path this document, or removes it; empty if nothing changes. */
export function groupChanges(
  path: string,
  document: GroupDocument | undefined,
  storedText: string | undefined,
): readonly DocumentChange[] {
  const text = document && encodeDocument(document);
  return text === storedText ? [] : [{ path, text }];
}

/**
 * The holds that take effect before the first list is complete: they make machines of stored Groups wait. The first
 * list may take long, for example while a namespace cannot be read. Holds in other namespaces must not wait that long.
 */
export function earlyHolds(
  names: readonly ObjectName[],
  view: Pick<SourceView, "get">,
  documents: Pick<Documents, "group" | "textAt">,
): readonly DocumentWrite[] {
  return names.flatMap(({ kind, namespace, name }) => {
    if (kind !== "Group") return [];
    const object = view.get("Group", namespace, name);
    const stored = documents.group(namespace, name);
    if (object === undefined || stored === undefined) return [];
    const counting = countingAtOnce({ ...object, spec: stored.spec }, object);
    const isHeld = counting?.kind === "Group" && counting.spec.hold;
    if (!isHeld || stored.spec.hold) return [];
    const path = groupPath(namespace, name);
    const held = { ...stored, spec: { ...stored.spec, hold: true } };
    return groupChanges(path, held, documents.textAt(path));
  });
}

/** Returns a Group's document, marked `tied` if the Group ties with another one of the same selector. */
export function withTie(document: GroupDocument, isTied: boolean): GroupDocument {
  const { tied: _, ...others } = document;
  return isTied ? { ...others, tied: true } : others;
}

function findingsOf({ id, spec, sync }: GroupDraft, world: GroupWorld): readonly Finding[] {
  if (spec === undefined) return [];
  const consequence = sync === "synced" ? ": /ipxe and /grub are answered 500" : "";
  return [...argumentFindings(spec, world, consequence), ...profileFindings(id.namespace, spec, world)];
}

function argumentFindings(
  { args = [] }: GroupSpec,
  { checkTemplate }: GroupWorld,
  consequence: string,
): readonly Finding[] {
  return args.flatMap((text, at) => {
    const fault = checkTemplate(text);
    if (fault === undefined) return [];
    const finding = inField(`spec.args[${at}]`, templateFinding(fault));
    return [{ ...finding, message: `${finding.message}${consequence}` }];
  });
}

function profileFindings(namespace: string, spec: GroupSpec, { profile }: GroupWorld): readonly Finding[] {
  const found = profile(namespace, spec.profile);
  if (found === "there") return [];
  const state =
    found === "refused"
      ? "is refused, see its status: its machines are answered 503"
      : `does not exist in namespace "${namespace}": its machines are answered 404, or 503 if it just went: create it`;
  const message = `Profile "${spec.profile}" ${state}`;
  const place = { field: "spec.profileRef.name" };
  const finding = { type: "ResolvedRefs", reason: "ProfileNotFound", message, place } as const;
  return [found === "refused" ? finding : { ...finding, code: "missing-profile" }];
}

const maxShownValues = 4;
// The CRD allows 8,192 characters: this leaves room for the dots after a cut text.
const maxLength = 8_000;

/** The selector as text, cut to the longest that a status may hold; empty for `matchAll`. */
export function selectorSummary({ selector, expressions }: Selection): string {
  const text = selectorText(selector, expressions.map(summary));
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).toWellFormed()}...`;
}

function summary(expression: Expression): Expression {
  const { values } = expression;
  if (values.length <= maxShownValues) return expression;
  const others = `${values.length - maxShownValues} more`;
  return { ...expression, values: [...values.slice(0, maxShownValues), others] };
}

// During a rename both Groups exist. They do not tie if their machines get the same answers.
const renaming =
  "To rename a Group, create it under its new name with the same Profile, args, metadata and hold, " +
  "then delete the old one";

/** One object for all Groups without a conflict. */
const noConflict: Condition = {
  type: "Conflicted",
  status: "False",
  reason: "NoConflict",
  message: "No other Group takes all of its machines",
};

/**
 * The condition `Conflicted`, which reports other Groups that get a Group's machines. Equal standings give equal texts.
 */
export function conflictOf(group: Group, standing: Standing): Condition {
  switch (standing.kind) {
    case "free":
      return noConflict;
    case "shadowed":
      return conflicted(
        "SelectorOverlap",
        `Group "${standing.by.id}" ${whyItWins(standing.by, group)}: no machine gets this Group`,
      );
    case "tied":
      return conflicted(
        "SelectorTie",
        `Group "${standing.with.id}" selects machines of this Group by the same keys and operators, with equal ` +
          `priority, and gives them something else: they are answered 503. Change one of the two. ${renaming}`,
      );
    case "outclaimed":
      return conflicted(
        "ClaimedBefore",
        `Group "${standing.by.id}" of another namespace selects machines of this Group, and ` +
          `${whyItComesFirst[standing.because]}: they do not get this Group`,
      );
  }
}

const whyItComesFirst: Readonly<Record<Advantage, string>> = {
  claim: "its claim to them comes first",
  rank: "it comes first in the order between namespaces",
  third: "a third Group comes before this one",
};

function conflicted(reason: string, message: string): Condition {
  return { type: "Conflicted", status: "True", reason, message };
}

function whyItWins(winner: Group, group: Group): string {
  if (winner.selectorText !== group.selectorText) {
    const why = winner.priority > group.priority ? "has a higher priority" : "comes first in the order of Groups";
    return `selects every machine that this one selects and ${why}`;
  }
  return winner.priority > group.priority
    ? "has the same selector and a higher priority"
    : "has the same selector and priority, and gives the same";
}
