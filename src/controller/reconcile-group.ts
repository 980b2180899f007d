/**
 * From a Group to its document. Selector, profileRef, priority and hold take effect at once, whatever its Profile is
 * like: a Group that selects a machine keeps it from falling to a less specific one. Pure.
 */

import { encodeDocument, type GroupDocument, groupPath } from "../model/documents.ts";
import type { DocumentChange } from "../model/feed.ts";
import { type Group, type GroupSpec, toGroup } from "../model/group.ts";
import type { GroupObject } from "../model/source.ts";
import { groupAdvice } from "./advice.ts";
import { conditionsFor, type Finding, type Outcome, type SyncState } from "./conditions.ts";
import { conflictOf } from "./conflict.ts";
import type { Standing } from "./ranking.ts";
import { inField, type ProfileWorld, templateFinding } from "./resolve-profile.ts";
import { selectorSummary } from "./selector-summary.ts";
import { permitted } from "./tenancy.ts";

/** A Group that is there: its document as it should be, less what the other Groups have to do with it. */
export interface GroupDraft {
  readonly object: GroupObject;
  /** Undefined for a Group that no machine may be answered from. */
  readonly document: GroupDocument | undefined;
  readonly sync: SyncState;
  readonly findings: readonly Finding[];
}

/** What a Group's own object makes of it. */
export function draftGroup(
  object: GroupObject,
  stored: GroupDocument | undefined,
  adminNamespace: string | undefined,
): GroupDraft {
  // A refused object replaces nothing that was accepted before.
  const lastGood = object.refusal === undefined ? undefined : lastGoodOf(stored, object.uid);
  const keepsLastGood = lastGood !== undefined;
  const wanted: GroupDocument = keepsLastGood ? { ...lastGood, outdated: true } : toDocument(object);
  const { spec, findings } = permitted(wanted.spec, object.namespace, adminNamespace);
  if (spec === undefined) return { object, document: undefined, sync: "notServed", findings };
  return { object, document: { ...wanted, spec }, sync: keepsLastGood ? "servingLastGood" : "synced", findings };
}

/** The other Groups and the Profiles, as far as a Group is concerned with them. */
export interface GroupWorld {
  /** `refused` was never accepted. */
  readonly profile: (namespace: string, name: string) => "there" | "refused" | "missing";
  readonly standingOf: (group: Group) => Standing;
  readonly checkTemplate: ProfileWorld["checkTemplate"];
}

/** Brings a Group's document in line with its object; `storedText` is what the store has of it. */
export function reconcileGroup(draft: GroupDraft, storedText: string | undefined, world: GroupWorld): Outcome {
  const { object, document, sync } = draft;
  const { namespace, name, generation } = object;
  const findings = [...findingsOf(object, world), ...draft.findings];
  const group = document && toGroup(namespace, name, document.spec);
  const conflict = group && conflictOf(group, world.standingOf(group));
  const selector = selectorSummary(group ?? toGroup(namespace, name, object.spec));
  const told = { findings, sync, advice: groupAdvice(object.spec), ...(conflict && { conflict }) };
  return {
    changes: groupChanges(groupPath(namespace, name), document, storedText),
    status: {
      observedGeneration: generation,
      conditions: conditionsFor(told),
      selector: selector === "" ? "<all>" : selector,
    },
    told,
  };
}

/** What it takes to have a document, or none, at a path. */
export function groupChanges(
  path: string,
  document: GroupDocument | undefined,
  storedText: string | undefined,
): readonly DocumentChange[] {
  const text = document && encodeDocument(document);
  return text === storedText ? [] : [{ path, text }];
}

/** A Group's document, marked where Groups of several namespaces tie. */
export function withTie(document: GroupDocument, isTied: boolean): GroupDocument {
  const { origin, uid, generation, spec, refused, outdated } = document;
  return {
    origin,
    uid,
    generation,
    spec,
    ...(refused === true && { refused }),
    ...(isTied && { tied: true }),
    ...(outdated === true && { outdated }),
  };
}

/**
 * What is stored of a Group whose reconcile ended in an exception. The version before stays only where nothing else
 * than metadata differs; else a stand-in takes its place, which has its machines wait: whoever was held, or given another
 * Profile, must not boot as before.
 */
export function groupStandIn(
  object: GroupObject,
  stored: GroupDocument | undefined,
  adminNamespace: string | undefined,
): GroupDocument | undefined {
  const { spec } = permitted(object.spec, object.namespace, adminNamespace);
  if (spec === undefined) return undefined;
  const lastGood = lastGoodOf(stored, object.uid);
  const keepsLastGood = object.refusal !== undefined || leadingText(lastGood?.spec) === leadingText(spec);
  if (lastGood !== undefined && keepsLastGood) return { ...lastGood, outdated: true };
  return { ...toDocument({ ...object, spec: { ...spec, metadata: {} } }), refused: true };
}

/** What is stored of a Group whose newest version does not even say which machines are its own: those wait. */
export function barred(stored: GroupDocument): GroupDocument {
  return { ...stored, refused: true, outdated: true };
}

/** The accepted version of the Group with this uid: one under the same name that is gone has nothing to say any more. */
function lastGoodOf(stored: GroupDocument | undefined, uid: string): GroupDocument | undefined {
  return stored?.uid === uid && stored.refused !== true ? stored : undefined;
}

/** Who is selected, and whither, by which arguments: all of a Group but its metadata. */
function leadingText(spec: GroupSpec | undefined): string {
  if (spec === undefined) return "";
  const { profile, selector, expressions = [], matchAll, priority, hold, args = [] } = spec;
  return JSON.stringify([profile, Object.entries(selector).toSorted(), expressions, matchAll, priority, hold, args]);
}

function toDocument({ origin, uid, generation, spec, refusal }: GroupObject): GroupDocument {
  return { origin, uid, generation, spec, ...(refusal !== undefined && { refused: true }) };
}

function findingsOf({ refusal, namespace, spec }: GroupObject, world: GroupWorld): readonly Finding[] {
  if (refusal !== undefined) return [{ type: "Accepted", reason: "Refused", message: refusal }];
  return [...argumentFindings(spec, world), ...profileFindings(namespace, spec, world)];
}

function argumentFindings({ args = [] }: GroupSpec, { checkTemplate }: GroupWorld): readonly Finding[] {
  return args.flatMap((text, at) => {
    const fault = checkTemplate(text);
    if (fault === undefined) return [];
    const finding = inField(`spec.args[${at}]`, templateFinding(fault));
    return [{ ...finding, message: `${finding.message}: /ipxe and /grub are answered 500` }];
  });
}

function profileFindings(namespace: string, spec: GroupSpec, { profile }: GroupWorld): readonly Finding[] {
  const found = profile(namespace, spec.profile);
  if (found === "there") return [];
  const state =
    found === "refused"
      ? "is refused, see its status: its machines are answered 503"
      : `does not exist in namespace "${namespace}": its machines are answered 404`;
  const message = `Profile "${spec.profile}" ${state}`;
  const place = { field: "spec.profileRef.name" };
  const finding = { type: "ResolvedRefs", reason: "ProfileNotFound", message, place } as const;
  return [found === "refused" ? finding : { ...finding, code: "missing-profile" }];
}
