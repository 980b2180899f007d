/**
 * Makes a Group's document. Selector, profileRef, priority and hold take effect at once, whatever the state of its
 * Profile: a Group that selects a machine keeps it from falling to a less specific Group. Pure.
 */

import { encodeDocument, type GroupDocument, groupPath } from "../../model/documents.ts";
import type { DocumentChange } from "../../model/feed.ts";
import { type Group, type GroupSpec, toGroup } from "../../model/group.ts";
import { conflictOf } from "../ranking/conflict.ts";
import type { Standing } from "../ranking/ranking.ts";
import { conditionsFor, type Finding, type Outcome } from "../status/conditions.ts";
import { groupAdvice } from "./advice.ts";
import type { GroupDraft } from "./draft-group.ts";
import { inField, type ProfileWorld, templateFinding } from "./resolve-profile.ts";
import { selectorSummary } from "./selector-summary.ts";

/** The other Groups and the Profiles, as far as they concern a Group. */
export interface GroupWorld {
  /** `refused` was never accepted. */
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
  const told = { findings, sync, advice, isUnresolved: spec === undefined, ...(conflict && { conflict }), isHeld };
  return {
    changes: groupChanges(groupPath(namespace, name), document, storedText),
    status: {
      observedGeneration: generation,
      conditions: conditionsFor(told),
      ...(shown && { selector: selectorSummary(shown) || "<all>" }),
    },
    told,
  };
}

/** The changes that lead to a document, or none, at a path. */
export function groupChanges(
  path: string,
  document: GroupDocument | undefined,
  storedText: string | undefined,
): readonly DocumentChange[] {
  const text = document && encodeDocument(document);
  return text === storedText ? [] : [{ path, text }];
}

/** A Group's document, marked where it ties with another one of its selector. */
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
