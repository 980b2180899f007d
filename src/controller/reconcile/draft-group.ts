/**
 * Drafts the documents of a Group from its newest version. While the newest version is refused, davit uses the last
 * accepted version of the same uid. It also respects what it can read of the refused version:
 *
 * - If either version sets `hold`, the Group is held. If either version asks for approval, the Group does.
 * - If the two versions differ in selector or Profile, the machines of both versions wait. The machines of the accepted
 *   version also wait if the refused version's selector or Profile cannot be read. So no machine boots by a version
 *   that its author meant to replace.
 * - If the refused version has another selector, it gets a second document, the twin.
 *
 * Pure.
 */

import { expressionText } from "../../model/labels/expression.ts";
import type { GroupDocument } from "../../model/objects/documents.ts";
import { type GroupSpec, type GroupState, isBroad, permitsOf } from "../../model/objects/group.ts";
import { fileUid, type GroupObject, type ObjectName, type Refusal } from "../../model/objects/source.ts";
import type { Finding, SyncState } from "../status/conditions.ts";

/** The documents of an existing Group, before other Groups and its Profile are considered. */
export interface GroupDraft {
  readonly id: ObjectName;
  /** The generation of the newest version. */
  readonly generation: number;
  /** The version in effect: the newest one, or the last accepted one. Absent if no version was accepted. */
  readonly spec?: GroupSpec;
  readonly refusal?: Refusal;
  /** Undefined for a Group that answers no machine. */
  readonly document: GroupDocument | undefined;
  /** The document of a refused version with another selector: its machines wait. */
  readonly twin?: GroupDocument;
  readonly sync: SyncState;
  /** All findings except those on its Profile and its templates. */
  readonly findings: readonly Finding[];
}

/** The source's and the store's versions of a Group. */
export interface KnownGroup {
  readonly id: ObjectName;
  /** The newest accepted version, or a stand-in. */
  readonly object: GroupObject | undefined;
  /** The refusal of the newest version. */
  readonly refusal: Refusal | undefined;
  readonly stored: GroupDocument | undefined;
  readonly adminNamespace: string | undefined;
}

/** The documents that a Group needs; undefined for a Group that the source neither shows nor refuses. */
export function draftGroup(given: KnownGroup): GroupDraft | undefined {
  const known = withoutHidden(given);
  const { id, object, adminNamespace } = known;
  const allow = (spec: GroupSpec) => permitted(spec, id.namespace, adminNamespace);
  const refusal = refusalIn(known);
  if (refusal !== undefined) return draftRefused(known, refusal, allow);
  if (object === undefined) return undefined;
  const { generation, spec } = object;
  const { spec: own, findings } = allow(spec);
  const document = own && { ...toDocument(object), spec: own };
  return { id, generation, spec, document, sync: own === undefined ? "notServed" : "synced", findings };
}

type Allow = (spec: GroupSpec) => ReturnType<typeof permitted>;

function draftRefused({ id, object, stored }: KnownGroup, refusal: Refusal, allow: Allow): GroupDraft {
  const { generation, standIns = [], message } = refusal;
  const accepted = acceptedOf(object, refusal, stored);
  const known = standIns.flatMap((standIn) => (standIn && allow(standIn).spec) ?? []);
  const isKnown = known.length > 0 && known.length === standIns.length;
  const agree = isKnown && known.every((standIn) => leadsAlike(standIn, accepted?.spec));
  const document = accepted === undefined ? firstRefused(refusal, known, stored) : lastGood(accepted, known, agree);
  const other = known.find((standIn) => !selectsAlike(standIn, document?.spec));
  const refused: Finding = { type: "Accepted", reason: "Refused", message };
  const own = document && allow(document.spec);
  return {
    id,
    generation,
    refusal,
    ...(accepted && { spec: accepted.spec }),
    document: own?.spec && document && { ...document, spec: own.spec },
    ...(other && { twin: asTwin(refusal, other, accepted) }),
    sync: accepted !== undefined && agree ? "servingLastGood" : "waiting",
    findings: [refused, ...(own?.findings ?? [])],
  };
}

/**
 * The last accepted version, held if a refused version sets `hold`, and with the `approval` and the `requireTls` of a
 * refused version. Its machines wait unless the refused versions have the same selector and Profile.
 */
function lastGood(accepted: GroupDocument, known: readonly GroupSpec[], agree: boolean): GroupDocument {
  const asks = known.some(({ approval }) => approval !== undefined);
  const demand = known.some(({ requireTls }) => requireTls) && { requireTls: true as const };
  const spec: GroupSpec = { ...accepted.spec, ...(asks && { approval: "Required" }), ...demand };
  const isHeld = !spec.hold && known.some(({ hold }) => hold);
  return {
    ...accepted,
    spec: { ...spec, hold: spec.hold || isHeld },
    ...(isHeld && { heldByRefused: true }),
    ...(!agree && { refused: true }),
    outdated: true,
  };
}

/**
 * The document for a Group without an accepted version. It makes the machines of the refused version wait. If that
 * version has no readable selector, it makes the machines of the stored document wait.
 */
function firstRefused(
  refusal: Refusal,
  [spec]: readonly GroupSpec[],
  stored: GroupDocument | undefined,
): GroupDocument | undefined {
  if (spec === undefined) return stored && { ...stored, refused: true };
  return { ...provenanceOf(refusal), spec, refused: true };
}

/**
 * The document of the twin. It has the higher one of the two versions' priorities, so that it outranks every Group that
 * the accepted version outranked. A selector with `matchAll` always has priority 0.
 */
function asTwin(refusal: Refusal, spec: GroupSpec, accepted: GroupDocument | undefined): GroupDocument {
  const priority = Math.max(spec.priority, accepted?.spec.priority ?? 0);
  return { ...provenanceOf(refusal), spec: { ...spec, priority: spec.matchAll ? 0 : priority }, refused: true };
}

/**
 * The refusal of the newest version. While the file of a stand-in is being rewritten, the view may have no refusal of
 * it. The stand-in counts as refused even then.
 */
function refusalIn({ object, refusal }: KnownGroup): Refusal | undefined {
  if (refusal !== undefined || object?.refusal === undefined) return refusal;
  const { kind, namespace, name, spec, refusal: message } = object;
  return { kind, namespace, name, ...provenanceOf(object), message, standIns: [spec] };
}

/**
 * The document of a Group on which davit failed.
 *
 * - If the newest version is refused, the stored document stays, and its machines wait.
 * - If the newest version differs from the last accepted one only in metadata, the last accepted one stays, unless the
 *   Group waits for a newer version of its Profile.
 * - Otherwise the machines of the newest version wait. If it holds them or names another Profile, for example, they
 *   must not boot as before.
 */
export function groupStandIn(given: KnownGroup): GroupDocument | undefined {
  const known = withoutHidden(given);
  const { id, object, refusal, stored, adminNamespace } = known;
  const lastGood = stored?.uid === (refusal ?? object)?.uid ? stored && lastAccepted(stored) : undefined;
  const isRefused = refusalIn(known) !== undefined;
  if (isRefused && stored !== undefined) return { ...stored, refused: true, ...(lastGood && { outdated: true }) };
  const { spec } = object === undefined ? {} : permitted(object.spec, id.namespace, adminNamespace);
  if (object === undefined || spec === undefined) return undefined;
  return acceptedStandIn({ ...object, spec }, stored, lastGood);
}

function acceptedStandIn(
  object: GroupObject,
  stored: GroupDocument | undefined,
  lastGood: GroupDocument | undefined,
): GroupDocument | undefined {
  const { flaw, oldProfile } = stateBefore(stored, object);
  const before = { ...(flaw !== undefined && { flaw }), ...(oldProfile && { oldProfile }) };
  const served = oldProfile === undefined ? lastGood : undefined;
  if (isSameButMetadata(object.spec, served?.spec)) return served && { ...served, ...before, outdated: true };
  return { ...toDocument({ ...object, spec: { ...object.spec, metadata: {} } }), ...before, refused: true };
}

/**
 * The stored `flaw` and `oldProfile` of a Group, if its uid and Profile are still the same. davit keeps these marks
 * until it has checked the Group with its Profile again.
 */
export function stateBefore(
  stored: GroupDocument | undefined,
  { uid, spec }: Pick<GroupDocument, "uid" | "spec">,
): Pick<GroupState, "flaw" | "oldProfile"> {
  return stored?.uid === uid && stored.spec.profile === spec.profile ? stored : {};
}

/**
 * Refuses a Group whose expressions the API server hides. If the cluster's CRD is so old that it lacks
 * `matchExpressions`, the API server removes the expressions without a new generation. davit has already accepted this
 * generation with its expressions. Without the expressions, the Group would take more machines. Files are exempt: their
 * generation never changes, and nothing hides their expressions.
 */
function withoutHidden(known: KnownGroup): KnownGroup {
  const { object, stored } = known;
  if (object === undefined || object.refusal !== undefined || object.uid === fileUid(object)) return known;
  const before =
    stored?.uid === object.uid && stored.generation === object.generation ? lastAccepted(stored) : undefined;
  const isHidden = (before?.spec.expressions ?? []).length > 0 && (object.spec.expressions ?? []).length === 0;
  if (!isHidden) return known;
  const { kind, namespace, name } = object;
  const refusal = { kind, namespace, name, ...provenanceOf(object), message: hiddenText, standIns: [undefined] };
  return { ...known, object: undefined, refusal };
}

const hiddenText =
  "spec.selector.matchExpressions: the API server had expressions of this version and shows none: " +
  "apply the CRDs of this version of davit; if the Group has none any more, apply it with another change";

function isSameButMetadata(a: GroupSpec, b: GroupSpec | undefined): boolean {
  const own = ({ priority, hold, args = [], requireTls, ...spec }: GroupSpec) =>
    JSON.stringify([priority, hold, args, permitsOf(spec) ?? {}, requireTls === true]);
  return b !== undefined && leadsAlike(a, b) && own(a) === own(b);
}

/** The last accepted version of the Group with this uid. A removed Group of the same name does not count. */
function acceptedOf(
  object: GroupObject | undefined,
  { uid }: Refusal,
  stored: GroupDocument | undefined,
): GroupDocument | undefined {
  if (object !== undefined && object.refusal === undefined) return toDocument(object);
  return stored?.uid === uid ? lastAccepted(stored) : undefined;
}

/** The accepted version that a document was made from; undefined if there was none. */
export function lastAccepted(stored: GroupDocument): GroupDocument | undefined {
  const { refused, outdated, flaw: _, oldProfile: _old, heldByRefused, ...document } = stored;
  if (refused === true && outdated !== true) return undefined;
  return heldByRefused === true ? { ...document, spec: { ...document.spec, hold: false } } : document;
}

/** The document of an object, accepted or not. */
export function toDocument(object: GroupObject): GroupDocument {
  return { ...provenanceOf(object), spec: object.spec, ...(object.refusal !== undefined && { refused: true }) };
}

function provenanceOf({ origin, uid, generation }: GroupObject | Refusal) {
  return { origin, uid, generation };
}

function leadsAlike(a: GroupSpec, b: GroupSpec | undefined): boolean {
  return a.profile === b?.profile && selectsAlike(a, b);
}

function selectsAlike(a: GroupSpec, b: GroupSpec | undefined): boolean {
  return b !== undefined && a.matchAll === b.matchAll && selectionOf(a) === selectionOf(b);
}

function selectionOf({ selector, expressions = [] }: GroupSpec): string {
  return JSON.stringify([Object.entries(selector).toSorted(), expressions.map(expressionText).toSorted()]);
}

/** The parts of a Group that take effect. */
interface Permitted {
  /** Undefined for a Group that answers no machine. */
  readonly spec: GroupSpec | undefined;
  readonly findings: readonly Finding[];
}

/**
 * Limits a Group by its namespace. If davit reads several namespaces, an author in one of them must not take the
 * machines of all others. So `matchAll`, broad selectors and priorities take effect only in the admin namespace.
 * @param adminNamespace undefined if no namespace is limited.
 */
function permitted(spec: GroupSpec, namespace: string, adminNamespace: string | undefined): Permitted {
  if (adminNamespace === undefined || namespace === adminNamespace) return { spec, findings: [] };
  if (spec.matchAll) {
    const message = `matchAll counts in namespace "${adminNamespace}" only: no machine gets this Group`;
    return { spec: undefined, findings: [notPermitted(message, "spec.matchAll")] };
  }
  if (isBroad(spec)) {
    const effect = `counts in namespace "${adminNamespace}" only: no machine gets this Group`;
    const message = `a selector that nearly every machine may meet ${effect}; ${cure}`;
    return { spec: undefined, findings: [notPermitted(message, "spec.selector")] };
  }
  if (spec.priority === 0) return { spec, findings: [] };
  const message = `priority counts in namespace "${adminNamespace}" only: this Group is taken as one of priority 0`;
  return { spec: { ...spec, priority: 0 }, findings: [notPermitted(message, "spec.priority")] };
}

const cure = "ask for a value, or write patterns of 6 digits (mac), 8 (uuid), or 3 letters and digits (other labels)";

function notPermitted(message: string, field: string): Finding {
  return { type: "Accepted", reason: "NotPermitted", message, code: "not-permitted", place: { field } };
}
