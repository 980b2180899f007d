/**
 * The ports for reading objects and for writing their status. The controller knows a cluster or a directory of files
 * only through these ports. A source only reports which names changed, like a watch cache, and the controller then
 * reads the view. So the controller may miss intermediate states, which do not matter.
 */

import type { InstallState } from "../permits/permit.ts";
import type { GroupSpec } from "./group.ts";
import type { MachinePhase, MachineSpec } from "./machine.ts";
import type { ProfileCaution, ProfileSpec, TemplateSource } from "./profile.ts";

/** The kinds that davit defines; their objects have a status. */
export const ownKinds = ["Profile", "Group", "Machine"] as const;
export type OwnKind = (typeof ownKinds)[number];
export type ObjectKind = OwnKind | Reference["kind"];

export interface ObjectName {
  readonly kind: ObjectKind;
  readonly namespace: string;
  readonly name: string;
}

export const apiGroup = "davit.dev";
/** The `apiVersion` of Profiles, Groups and Machines. */
export const apiVersion = `${apiGroup}/v1alpha1`;
/** The label that a Secret must have, with the value `true`, before templates may come from it. */
export const allowTemplateLabel = `${apiGroup}/allow-template`;

/**
 * Returns a name as one text, for maps and queues. `join` instead of `+`: V8 keeps concatenated strings in pieces,
 * which take three times as much memory. Each object is in a dozen maps.
 */
export function objectKey({ kind, namespace, name }: ObjectName): string {
  return [kind, namespace, name].join("/");
}

/**
 * Makes an object's uid from its name. Files have no uids, so an object that is removed and written again keeps its
 * own.
 */
export function fileUid(name: ObjectName): string {
  return `directory/${objectKey(name)}`;
}

export interface ObjectMeta {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `metadata.generation`; 1 for files, which have none. */
  readonly generation: number;
  /** Where a person finds the object: `web.yaml, document 2 (line 14)` or `cluster`. */
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
   * Why the object was refused. Set for a stand-in, when no accepted version is known. Its selector still takes part,
   * so that its machines do not get a less specific Group.
   */
  readonly refusal?: string;
}

export interface MachineObject extends ObjectMeta {
  readonly kind: "Machine";
  readonly spec: MachineSpec;
  /** As in `GroupObject`. The stand-in of a refused Machine approves and grants nothing. */
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

/** Returns the ConfigMap or Secret that has a template's text. */
export function holderOf({ kind, name }: Exclude<TemplateSource, { kind: "inline" }>, namespace: string): Reference {
  return { kind: kind === "configMap" ? "ConfigMap" : "Secret", namespace, name };
}

/** Returns the ConfigMaps and Secrets that a Profile names, each once. */
export function referencesOf({ namespace, spec }: ProfileObject): readonly Reference[] {
  const sources = Object.values(spec.templates).filter((source) => source.kind !== "inline");
  return [...new Map(sources.map((source) => [`${source.kind}/${source.name}`, holderOf(source, namespace)])).values()];
}

export type SourceObject = ProfileObject | GroupObject | MachineObject | ConfigMapObject | SecretObject;

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
  return ownKinds.some((own) => own === kind);
}

/**
 * An object whose newest version is refused, as its status shows. The view has the object's previous version, a
 * stand-in, or nothing. It never has a version with another uid.
 */
export interface Refusal extends ObjectMeta, OwnName {
  /** As `SourceProblem.message`. */
  readonly message: string;
  /**
   * For a Group: the stand-in of each definition; several if the Group is defined more than once. Undefined for a
   * definition whose selector cannot be read.
   */
  readonly standIns?: readonly (GroupSpec | undefined)[];
  /** For a Profile: what davit reads of the refused version. */
  readonly caution?: ProfileCaution;
  /** For a Group: davit cannot read its whole selector, so the Group may name further machines. */
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
  /**
   * True while the source has seen changes that the view lacks, in any object. Absent for a source that takes in each
   * change when it sees it.
   */
  readonly isChanging?: boolean;
  readonly problems: readonly SourceProblem[];
  readonly refusals: Iterable<Refusal>;
  refusalOf(name: ObjectName): Refusal | undefined;
  /**
   * True for an object that certainly does not exist. False for an object in view, and for one that an unreadable part
   * of the source may hold: a file that does not parse, or a namespace that was not listed.
   */
  isGone(name: ObjectName): boolean;
  /** The lost namespaces: without news for so long that their machines wait. */
  readonly unheard: ReadonlySet<string>;
  /** Objects that stay in view although no readable part defines them: an unreadable part may do so. */
  readonly withheld: readonly ObjectName[];
  /**
   * True for an object that is still in view although nothing defines it any more. Absent for a source without such
   * objects.
   */
  isLeaving?(name: ObjectName): boolean;
  get<Kind extends ObjectKind>(
    kind: Kind,
    namespace: string,
    name: string,
  ): Extract<SourceObject, { kind: Kind }> | undefined;
  all<Kind extends ObjectKind>(kind: Kind): Iterable<Extract<SourceObject, { kind: Kind }>>;
  /**
   * Returns a Profile that is not in view yet, because davit has not read its references yet. Undefined if the view has
   * a previous version with the same uid. Absent for a source that reads Profiles and references together.
   */
  pendingOf?(name: ObjectName): ProfileObject | undefined;
  /**
   * True for an object that is not in view because davit has no right to read it: the object may exist. Absent for a
   * source without rights.
   */
  isForbidden?(name: ObjectName): boolean;
}

export interface SourceListener {
  /**
   * Called when `view` shows a full list, and again when parts of the source become readable or unreadable. A source
   * whose list was empty lists again within a minute.
   */
  listed(): void;
  /** Called with the names that were added, changed, refused or removed since the last call. */
  changed(names: readonly ObjectName[]): void;
  /** Called when `SourceView.isChanging` changes, after the other calls for this change. */
  stirred?(): void;
}

/**
 * The newest versions of the source that davit has seen, by name. Only the source knows the names and their form.
 */
export type SourceVersions = Readonly<Record<string, string>>;

export interface Source {
  /** `directory` or `cluster`. */
  readonly kind: string;
  readonly view: SourceView;
  /** False while the source receives no changes: more objects may be gone than the view shows. */
  readonly isFollowed: boolean;
  /**
   * Monotonic: `view` shows the state of every readable object at that time, or later: the time of a question, not of
   * its answer. Undefined before the first list. It does not advance while the source cannot be reached.
   */
  readonly provenAtMs: number | undefined;
  /** Returns who wrote the newest version of an object; undefined if the source has no such object. */
  writerOf?(name: OwnName): ObjectWriter | undefined;
  /** What davit has seen so far; absent for a source without versions. */
  readonly versions?: SourceVersions;
  /**
   * Begins to list and follow. It does not wait for the first list, which `listener.listed` reports.
   * @param seen the `versions` of an earlier run or of another davit: an older list may show the past.
   */
  start(listener: SourceListener, seen?: SourceVersions): Promise<void>;
  /** Ends every timer, watch and thread; idempotent. */
  stop(): Promise<void>;
}

/** `Unknown`: davit could not find out. */
export type ConditionStatus = "True" | "False" | "Unknown";

/**
 * A metav1.Condition without its time and generation, which the writer adds. Texts hold no counters, times or indexes,
 * so that a status stays equal until something changes.
 */
export interface Condition {
  readonly type:
    | "Accepted"
    | "ResolvedRefs"
    | "Synced"
    | "Conflicted"
    | "Rendered"
    | "AssetsReady"
    | "Ready"
    | "Stalled"
    | "Identified"
    | "Approved"
    | "Permitted"
    | "Installed";
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

/** The reason of `Ready` if an object is held and nothing else is wrong. */
export const heldReason = "Held";

export interface ObjectStatus {
  /** The uid of the object that the status is for. Absent if the name is enough. */
  readonly uid?: string;
  readonly observedGeneration: number;
  readonly conditions: readonly Condition[];
  /** For a Profile: its configs, such as `ipxe,ignition`. */
  readonly configs?: string;
  /** For a Profile: how many Groups name it. */
  readonly groupCount?: number;
  /** For a Group: the selector as text. */
  readonly selector?: string;
  /** For a Machine. */
  readonly machine?: MachineStatus;
}

/** What the status of a Machine shows besides its conditions. Times are RFC 3339. */
export interface MachineStatus {
  readonly phase: MachinePhase;
  /** In steps of ten minutes. */
  readonly lastSeen?: string;
  readonly address?: string;
  /** `namespace/name`. */
  readonly group?: string;
  readonly profile?: string;
  /** SHA-256 of the last boot script. */
  readonly rendered?: string;
  /** The last boot and how far it came. */
  readonly boot?: { readonly at: string; readonly stage: string; readonly result: string };
  readonly install?: { readonly generation: number; readonly state: InstallState; readonly claimedAt: string };
  readonly reported?: { readonly state: string; readonly progress?: number; readonly message?: string };
}

/** Who wrote a version of an object, as far as the source knows. */
export interface ObjectWriter {
  /** Of the version that was written: as in `ObjectMeta`. */
  readonly generation: number;
  /** Of the API server. */
  readonly resourceVersion?: string;
  /** The field manager that changed the spec last, such as `kubectl-client-side-apply` or `helm`. */
  readonly manager?: string;
  /** `Apply` or `Update`. */
  readonly operation?: string;
  /** When the manager changed it, RFC 3339. */
  readonly managedAt?: string;
  /** The place of the object in files: `web.yaml, document 2 (line 14)`. */
  readonly file?: string;
  /** SHA-256 of the file, in hexadecimal digits. */
  readonly sha256?: string;
}

export interface StatusSink {
  /** Shows an object's status where its user looks for it. Equal statuses are written once. */
  write(name: ObjectName, status: ObjectStatus): Promise<void>;
  /** Forgets an object that is gone. */
  forget(name: ObjectName): void;
}

/** Shows what happened to an object, where its user looks for events. */
export interface EventSink {
  /** Never waits. An event that cannot be written is dropped, so callers limit their rate. */
  note(event: NotedEvent): void;
}

export interface NotedEvent {
  readonly object: ObjectName;
  readonly uid: string;
  /** One word, such as `Claimed`. */
  readonly reason: string;
  readonly isTrouble: boolean;
  readonly message: string;
}

/**
 * Returns what counts of a Machine whose newest version is refused: only what makes a machine wait. Identities and
 * `hold` of the refused version count together with those of the last accepted one. Nothing is approved, and no install
 * is granted. Labels and metadata stay those of the last accepted version, because without them another Group could
 * win. Undefined if nothing is known of the Machine.
 * @param held the version in use, which may be such a Machine itself.
 * @param read the readable parts of the refused version; of several versions if the Machine is defined more than once.
 * @param refusal why the newest version is refused.
 */
export function refusedMachine(
  held: MachineObject | undefined,
  read: readonly MachineObject[],
  refusal: string,
): MachineObject | undefined {
  const known = held === undefined ? read : [held, ...read];
  const newest = known.at(-1);
  if (newest === undefined) return undefined;
  const identities = [...new Set(known.flatMap(({ spec }) => spec.identities))];
  return {
    ...newest,
    refusal,
    spec: {
      identities,
      approved: false,
      hold: known.some(({ spec }) => spec.hold),
      labels: held?.spec.labels ?? {},
      metadata: held?.spec.metadata ?? {},
    },
  };
}
