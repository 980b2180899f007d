/**
 * Compares two versions of an object's document: what changes for machines. The result has names of fields, and never
 * their values: templates, metadata and arguments may hold secrets. Pure.
 */

import {
  decodeGroup,
  decodeProfile,
  documentAddress,
  type GroupDocument,
  groupPath,
  ownerName,
  type ProfileDocument,
  profilePath,
} from "../../model/objects/documents.ts";
import { type Barrier, type Group, toGroup } from "../../model/objects/group.ts";
import { decodeMachine, type MachineDocument } from "../../model/objects/machine.ts";
import { type Effect, fieldOf, installs, partsOf } from "../../model/objects/profile.ts";
import type { OwnName } from "../../model/objects/source.ts";
import type { InstallGrant, NamedGrant } from "../../model/permits/permit.ts";

/** A value before and after a change; undefined where there is no object. */
export interface Sides<Value> {
  readonly before: Value | undefined;
  readonly after: Value | undefined;
}

/** What the documents say of an edit. */
export interface ObjectFacts {
  readonly object: OwnName;
  /** A refused version of a Group, stored beside the last accepted one: its machines wait. */
  readonly isRefusedTwin: boolean;
  readonly action: "created" | "updated" | "removed";
  readonly generation: number;
  /** False if the same version of the object gives another document, such as after a change of a ConfigMap. */
  readonly isNewVersion: boolean;
  /** The names of what differs: fields such as `selector`, and states such as `refused`; sorted. */
  readonly changed: readonly string[];
  /** Of a Group. */
  readonly group?: Sides<Group>;
  /** Of a Profile. */
  readonly effect?: Sides<Effect>;
  /** Of a Machine: the identities of both versions. */
  readonly identities?: readonly string[];
  /** Of a Group or a Machine. */
  readonly grant?: Sides<NamedGrant>;
}

/** What every document has. */
interface Version {
  readonly uid: string;
  readonly generation: number;
}

/** Fields that say where a document came from, and how davit ranks it. They alone change nothing for machines. */
const unseen: ReadonlySet<string> = new Set(["origin", "uid", "generation", "revision", "claimedAt", "claimedLater"]);

/**
 * Returns what an edit changes.
 * @param texts the document's text before and after.
 * @returns undefined if machines get the same as before, and for a document that is of no object or cannot be read.
 */
export function factsOf(path: string, texts: Sides<string>): ObjectFacts | undefined {
  const address = documentAddress(path);
  switch (address?.kind) {
    case "profile":
      return ofProfile({ kind: "Profile", namespace: address.namespace, name: address.name }, texts);
    case "group":
      return ofGroup({ kind: "Group", namespace: address.namespace, name: address.name }, texts);
    case "machine":
      return ofMachine({ kind: "Machine", namespace: address.namespace, name: address.name }, texts);
    default:
      return undefined;
  }
}

/** Returns the effect of a Profile with this document: a Profile that boots the disk has `Boot`. */
export function effectIn(text: string): Effect | undefined {
  const document = decodeProfile(text);
  return document && effectOf(document);
}

/** Returns where the Profile of a Group is stored. */
export function profilePathOf({ profileId }: Pick<Group, "profileId">): string {
  const [namespace = "", name = ""] = profileId.split("/");
  return profilePath(namespace, name);
}

/** Returns what a Group's machines get of it: `served`, or why they wait. */
export function servingOf({ barrier }: Pick<Group, "barrier">): Barrier | "served" {
  return barrier ?? "served";
}

function effectOf({ content, failed }: ProfileDocument): Effect | undefined {
  if (failed === true) return undefined;
  return installs(content) ? "Install" : "Boot";
}

function ofProfile(object: OwnName, texts: Sides<string>): ObjectFacts | undefined {
  const documents = both(texts, decodeProfile);
  const facts = common(object, documents, profileParts);
  return facts && { ...facts, effect: both(documents, effectOf) };
}

/** The parts of a Profile that are compared, by the names of their fields. */
function profileParts({ content, ...state }: ProfileDocument): Readonly<Record<string, unknown>> {
  const { templates, ...fields } = content;
  const parts = partsOf(templates).map((part) => [fieldOf(part), templates[part]]);
  return { ...state, ...fields, ...Object.fromEntries(parts) };
}

function ofGroup(object: OwnName, texts: Sides<string>): ObjectFacts | undefined {
  const { namespace, name } = object;
  const documents = both(texts, decodeGroup);
  const isRefusedTwin = groupPath(namespace, ownerName(name)) !== groupPath(namespace, name);
  const owner = { ...object, name: ownerName(name) };
  const facts = common(owner, documents, partsOfSpec<GroupDocument>);
  const grant = both(documents, ({ spec }) => named(owner, spec.install));
  const group = both(documents, ({ spec, ...state }) => toGroup(namespace, owner.name, spec, state));
  return facts && { ...facts, isRefusedTwin, group, ...(!isRefusedTwin && { grant }) };
}

function ofMachine(object: OwnName, texts: Sides<string>): ObjectFacts | undefined {
  const documents = both(texts, decodeMachine);
  const facts = common(object, documents, partsOfSpec<MachineDocument>);
  const { before, after } = both(documents, ({ spec }) => spec.identities);
  const grant = both(documents, ({ spec }) => named(object, spec.install));
  return facts && { ...facts, identities: [...new Set([...(before ?? []), ...(after ?? [])])], grant };
}

function partsOfSpec<Document extends { readonly spec: object }>({ spec, ...state }: Document) {
  return { ...state, ...spec };
}

function named({ kind, namespace, name }: OwnName, grant: InstallGrant | undefined): NamedGrant | undefined {
  return grant && { key: [kind.toLowerCase(), namespace, name].join("/"), grant };
}

function common<Document extends Version>(
  object: OwnName,
  { before, after }: Sides<Document>,
  parts: (document: Document) => Readonly<Record<string, unknown>>,
): ObjectFacts | undefined {
  const version = after ?? before;
  if (version === undefined) return undefined;
  const changed = before && after ? differing(parts(before), parts(after)) : [];
  if (before && after && changed.length === 0) return undefined;
  const action = before === undefined ? "created" : after === undefined ? "removed" : "updated";
  const isNewVersion = before?.uid !== after?.uid || before?.generation !== after?.generation;
  return { object, isRefusedTwin: false, action, generation: version.generation, isNewVersion, changed };
}

function differing(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>) {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names]
    .filter((name) => !unseen.has(name) && JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .toSorted();
}

/** Applies a function to both sides that are there. */
export function both<From, To>({ before, after }: Sides<From>, read: (from: From) => To | undefined): Sides<To> {
  return {
    before: before === undefined ? undefined : read(before),
    after: after === undefined ? undefined : read(after),
  };
}
