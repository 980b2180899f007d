/**
 * The ports for reading objects and for writing their status. A cluster and a directory of files implement both; the
 * controller knows nothing else of them. Like a watch cache, a source only reports which names changed, and the
 * controller reads the view: intermediate states do not matter.
 */

import type { GroupSpec } from "./group.ts";
import type { ProfileCaution, ProfileSpec, TemplateSource } from "./profile.ts";

/** The kinds that davit defines; their objects have a status. */
export const ownKinds = ["Profile", "Group"] as const;
type OwnKind = (typeof ownKinds)[number];
export type ObjectKind = OwnKind | Reference["kind"];

export interface ObjectName {
  readonly kind: ObjectKind;
  readonly namespace: string;
  readonly name: string;
}

export const apiGroup = "davit.dev";
/** The `apiVersion` of Profiles and Groups. */
export const apiVersion = `${apiGroup}/v1alpha1`;
/** With the value `true`, a Secret may be a template. */
export const allowTemplateLabel = `${apiGroup}/allow-template`;

/**
 * A name as one text, for maps and queues. Joined, not added: V8 keeps sums of texts in pieces, which take three times
 * as much memory, and each object is in a dozen maps.
 */
export function objectKey({ kind, namespace, name }: ObjectName): string {
  return [kind, namespace, name].join("/");
}

/** A uid for an object in a file: an object that is written again under the same name is the same object. */
export function fileUid(name: ObjectName): string {
  return `directory/${objectKey(name)}`;
}

export interface ObjectMeta {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `metadata.generation`; 1 for files, which have none. */
  readonly generation: number;
  /** Where a person finds it: `web.yaml, document 2 (line 14)` or `cluster`. */
  readonly origin: string;
}

export interface ProfileObject extends ObjectMeta {
  readonly kind: "Profile";
  readonly spec: ProfileSpec;
}

export interface GroupObject extends ObjectMeta {
  readonly kind: "Group";
  readonly spec: GroupSpec;
  /**
   * Set when the object was refused and no accepted version of it is known: its selector still takes part, so that its
   * machines do not fall to a less specific group. The text is the reason.
   */
  readonly refusal?: string;
}

export interface ConfigMapObject extends ObjectMeta {
  readonly kind: "ConfigMap";
  readonly data: Readonly<Record<string, string>>;
}

export interface SecretObject extends ObjectMeta {
  readonly kind: "Secret";
  /** Decoded from base64. */
  readonly data: Readonly<Record<string, string>>;
  /** Carries the label `davit.dev/allow-template: "true"`. */
  readonly allowsTemplate: boolean;
}

/** A ConfigMap or a Secret that a Profile names. */
export interface Reference extends ObjectName {
  readonly kind: "ConfigMap" | "Secret";
}

/** The object that has a template's text. */
export function holderOf({ kind, name }: Exclude<TemplateSource, { kind: "inline" }>, namespace: string): Reference {
  return { kind: kind === "configMap" ? "ConfigMap" : "Secret", namespace, name };
}

/** Everything that a Profile names, each once. */
export function referencesOf({ namespace, spec }: ProfileObject): readonly Reference[] {
  const sources = Object.values(spec.templates).filter((source) => source.kind !== "inline");
  return [...new Map(sources.map((source) => [`${source.kind}/${source.name}`, holderOf(source, namespace)])).values()];
}

export type SourceObject = ProfileObject | GroupObject | ConfigMapObject | SecretObject;

/** Something in the source that is no usable object: a broken file, a refused document. */
export interface SourceProblem {
  /** As `ObjectMeta.origin`. */
  readonly origin: string;
  /** What is wrong and what to do, in our own words: never a quote of the input. */
  readonly message: string;
}

/** The name of an object that has a status. */
export interface OwnName extends ObjectName {
  readonly kind: OwnKind;
}

export function isOwnKind(kind: string): kind is OwnKind {
  return kind === "Profile" || kind === "Group";
}

/**
 * An object whose newest version is refused; its status shows that to its user. The view has the previous version, a
 * stand-in, or nothing; never a version of another uid.
 */
export interface Refusal extends ObjectMeta, OwnName {
  /** As `SourceProblem.message`. */
  readonly message: string;
  /**
   * Of a Group: its readable part, or that of each definition if it is defined twice; undefined for a definition whose
   * selector cannot be read.
   */
  readonly standIns?: readonly (GroupSpec | undefined)[];
  /** Of a Profile. */
  readonly caution?: ProfileCaution;
  /** Of a Group: its selector cannot be read whole, so it may name further machines. */
  readonly hidesMachines?: true;
}

/** What a source holds now. */
export interface SourceView {
  /** False while part of the source cannot be read: unknown objects may exist. */
  readonly complete: boolean;
  /**
   * True while an unreadable part of the source may hold unknown objects, for any machine. A refused object whose name
   * is known does not count.
   */
  readonly isHalf: boolean;
  readonly problems: readonly SourceProblem[];
  readonly refusals: Iterable<Refusal>;
  refusalOf(name: ObjectName): Refusal | undefined;
  /**
   * True for an object that certainly does not exist. False for an object in view, and for one that an unreadable part
   * of the source may hold: a file that does not parse, or a namespace that was not listed.
   */
  isGone(name: ObjectName): boolean;
  /** Namespaces without news for so long that their machines wait. */
  readonly unheard: ReadonlySet<string>;
  /** Objects that stay in view although nothing defines them, since part of the source cannot be read. */
  readonly withheld: readonly ObjectName[];
  /**
   * True for an object that is only temporarily in view: nothing defines it any more. Absent if that does not occur.
   */
  isLeaving?(name: ObjectName): boolean;
  get<Kind extends ObjectKind>(
    kind: Kind,
    namespace: string,
    name: string,
  ): Extract<SourceObject, { kind: Kind }> | undefined;
  all<Kind extends ObjectKind>(kind: Kind): Iterable<Extract<SourceObject, { kind: Kind }>>;
  /**
   * A Profile that is not in view yet, since its references are unknown; undefined also if the previous version, of the
   * same uid, is in view meanwhile. Absent if everything is known at once.
   */
  pendingOf?(name: ObjectName): ObjectMeta | undefined;
  /**
   * True for an object out of view because davit has no right to read it: it may exist. Absent if everything is read.
   */
  isForbidden?(name: ObjectName): boolean;
}

export interface SourceListener {
  /** A full list ended; `view` shows it. A source whose list was empty lists again within a minute. */
  listed(): void;
  /** These names were added, changed, refused or removed since the last call. */
  changed(names: readonly ObjectName[]): void;
}

export interface Source {
  /** `directory` or `cluster`. */
  readonly kind: string;
  readonly view: SourceView;
  /** False while the source receives no changes: more objects may be gone than the view shows. */
  readonly isFollowed: boolean;
  /**
   * Monotonic: `view` shows the state of every readable object at that time, or later. Undefined before the first list.
   * It does not advance while the source cannot be reached.
   */
  readonly provenAtMs: number | undefined;
  /** Begins to list and follow; resolves at once, the first list comes to `listener.listed`. */
  start(listener: SourceListener): Promise<void>;
  /** Ends every timer, watch and thread; idempotent. */
  stop(): Promise<void>;
}

/** `Unknown`: davit could not find out. */
export type ConditionStatus = "True" | "False" | "Unknown";

/** As metav1.Condition, without the times, which the writer adds. Texts hold no counters, times or indexes. */
export interface Condition {
  readonly type: "Accepted" | "ResolvedRefs" | "Synced" | "Conflicted" | "Rendered" | "Ready" | "Stalled";
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

export interface ObjectStatus {
  /** The object's uid: another object under that name has no status yet. Absent if a name is enough. */
  readonly uid?: string;
  readonly observedGeneration: number;
  readonly conditions: readonly Condition[];
  /** Profiles: the configs it has, such as `ipxe,ignition`. */
  readonly configs?: string;
  /** Profiles: how many Groups name it. */
  readonly groupCount?: number;
  /** Groups: the selector as text. */
  readonly selector?: string;
}

export interface StatusSink {
  /** Shows an object's status where its user looks for it. Equal statuses are written once. */
  write(name: ObjectName, status: ObjectStatus): Promise<void>;
  /** Forgets an object that is gone. */
  forget(name: ObjectName): void;
}
