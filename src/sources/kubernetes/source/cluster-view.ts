/**
 * The cluster's objects, as the controller reads them.
 *
 * A Profile is shown only when its ConfigMaps and Secrets are known. Until then its previous version stays: otherwise a
 * reference that davit is still reading would look like a missing one. A refused object also keeps its previous
 * version. An object with another uid has no previous version.
 *
 * An object that is missing in the whole list of an existing namespace is deleted. The list has valid and refused
 * objects, so a refused object causes no doubt about the deletion of others.
 */

import { isDeepStrictEqual } from "node:util";
import {
  type GroupObject,
  isOwnKind,
  type MachineObject,
  type ObjectKind,
  type ObjectName,
  type OwnName,
  objectKey,
  type ProfileObject,
  type Reference,
  type Refusal,
  referencesOf,
  refusedMachine,
  type SourceObject,
  type SourceProblem,
  type SourceView,
} from "../../../model/objects/source.ts";
import { countingAtOnce, givesSame, heldUntilThen } from "../../../model/selection/at-once.ts";
import { type Judgement, origin } from "./judge.ts";
import type { OwnWatches } from "./own-watches.ts";
import { References, type ShownReferences } from "./references.ts";
import type { ScopeNamespaces } from "./scope-namespaces.ts";

type WatchedLists = Pick<OwnWatches, "hasList" | "areListed" | "lost">;

type KnownNamespaces = Pick<ScopeNamespaces, "areBelieved" | "isBelieved" | "areTried" | "problems">;

export class ClusterView implements SourceView {
  readonly withheld = [];
  readonly #shown: ShownReferences;
  readonly #namespaces: KnownNamespaces;
  readonly #watches: WatchedLists;
  readonly #references = new References();
  readonly #profiles = new Map<string, ProfileObject>();
  readonly #groups = new Map<string, GroupObject>();
  readonly #machines = new Map<string, MachineObject>();
  /** Profiles whose newest versions wait for their references. */
  readonly #pending = new Map<string, ProfileObject>();
  readonly #refusals = new Map<string, Refusal>();
  #hasLists = false;
  #wasWhole = false;

  constructor(shown: ShownReferences, namespaces: KnownNamespaces, watches: WatchedLists) {
    this.#shown = shown;
    this.#namespaces = namespaces;
    this.#watches = watches;
  }

  get complete(): boolean {
    return this.#wasWhole && this.#watches.areListed && this.#namespaces.areBelieved;
  }

  get unheard(): ReadonlySet<string> {
    return this.#watches.lost;
  }

  get isHalf(): boolean {
    return !this.complete;
  }

  isGone({ kind, namespace, name }: ObjectName): boolean {
    if (this.get(kind, namespace, name) !== undefined) return false;
    if (!isOwnKind(kind)) return this.#isReferenceGone({ kind, namespace, name });
    const isThere = this.#pending.has(`${namespace}/${name}`) && kind === "Profile";
    if (isThere || this.refusalOf({ kind, namespace, name }) !== undefined) return false;
    return this.#watches.hasList(kind, namespace) && this.#namespaces.isBelieved(namespace);
  }

  /** davit does not request a reference that no Profile names. Such a reference counts as gone. */
  #isReferenceGone(reference: Reference): boolean {
    const [reader] = this.#references.readersOf(reference);
    return this.#wasWhole && (reader === undefined || this.#shown.isKnown(reference));
  }

  /** A text that changes when the problems change, or when more or fewer deletions can be known. */
  get extent(): string {
    const doubted = this.#namespaces.problems.map(({ origin }) => origin);
    return [this.complete, this.#refusals.size, ...doubted, ...this.unheard].join();
  }

  get problems(): readonly SourceProblem[] {
    return [...this.#namespaces.problems, ...[...this.#refusals.values()].map(toProblem)];
  }

  get refusals(): Iterable<Refusal> {
    return this.#refusals.values();
  }

  refusalOf(name: ObjectName): Refusal | undefined {
    return this.#refusals.get(objectKey(name));
  }

  get isEmpty(): boolean {
    return this.#profiles.size + this.#groups.size + this.#machines.size === 0;
  }

  /**
   * True when the view shows all that davit can read now. A Profile is then pending only because reading one of its
   * references failed.
   */
  get isSettled(): boolean {
    if (!this.#hasLists || !this.#namespaces.areTried) return false;
    return [...this.#pending.values()].every((profile) => this.#areAll(profile, "isTried"));
  }

  get<Kind extends ObjectKind>(
    kind: Kind,
    namespace: string,
    name: string,
  ): Extract<SourceObject, { kind: Kind }> | undefined {
    return this.#stores()[kind].get(namespace, name);
  }

  all<Kind extends ObjectKind>(kind: Kind): Iterable<Extract<SourceObject, { kind: Kind }>> {
    return this.#stores()[kind].all();
  }

  pendingOf({ kind, namespace, name }: ObjectName): ProfileObject | undefined {
    const id = `${namespace}/${name}`;
    return kind === "Profile" && !this.#profiles.has(id) ? this.#pending.get(id) : undefined;
  }

  isForbidden({ kind, namespace, name }: ObjectName): boolean {
    if (isOwnKind(kind)) return false;
    return this.#shown.isForbidden({ kind, namespace, name });
  }

  /** Records that every list has been read at least once, except those of lost namespaces. */
  allListed(): void {
    this.#hasLists = true;
    this.#noteWhole();
  }

  /**
   * Takes in the current state of a Profile or Group. @param judgement undefined if the object is gone.
   * @returns true when the view changes.
   */
  take(name: OwnName, judgement: Judgement | undefined): boolean {
    const wasRefused = this.refusalOf(name);
    this.#noteRefusal(name, judgement);
    const isRefused = this.refusalOf(name);
    const isNews = !isDeepStrictEqual(wasRefused, isRefused);
    const id = `${name.namespace}/${name.name}`;
    // A refused object keeps its previous version. If the uid differs, the previous version is of an object that is
    // gone.
    const object = name.kind === "Machine" ? this.#machineOf(id, judgement) : judgement?.object;
    const isKept = isRefused !== undefined && object === undefined && this.#uidOf(name) === isRefused.uid;
    return isKept ? isNews : this.#put(name.kind, id, object) || isNews;
  }

  #machineOf(id: string, judgement: Judgement | undefined): SourceObject | undefined {
    if (judgement?.refusal === undefined) return judgement?.object;
    const { object, uid, refusal } = judgement;
    const shown = this.#machines.get(id);
    const held = shown?.uid === uid ? shown : undefined;
    const refused = refusedMachine(held, object?.kind === "Machine" ? [object] : [], refusal);
    return isDeepStrictEqual(held, refused) ? held : refused;
  }

  /**
   * Takes in only those changes of a Profile or Group that make machines wait. A later `take` does the rest.
   * @returns true when the view changes.
   */
  takeRestrictions(name: OwnName, judgement: Judgement | undefined): boolean {
    if (judgement?.refusal !== undefined) return this.take(name, judgement);
    const shown = this.get(name.kind, name.namespace, name.name);
    const object = this.#restricted(name, judgement);
    return object !== shown && this.#put(name.kind, `${name.namespace}/${name.name}`, object);
  }

  /**
   * Returns the version to show until the newest one may take effect. The machines of a new object with a grant wait,
   * as they would otherwise get what another Group gives them. So do those that an installer without a plan installs,
   * if they are to get something else.
   */
  #restricted({ kind, namespace, name }: OwnName, judgement: Judgement | undefined): SourceObject | undefined {
    const shown = this.get(kind, namespace, name);
    const newest = judgement?.object;
    if (shown === undefined && (newest?.kind === "Group" || newest?.kind === "Machine") && newest.spec.install)
      return heldUntilThen(newest);
    const object = countingAtOnce(shown, newest);
    if (object?.kind !== "Group" || newest?.kind !== "Group" || givesSame(object.spec, newest.spec)) return object;
    const profile = this.get("Profile", namespace, object.spec.profile)?.spec;
    const isRaw = profile?.effect === "Install" && profile.install === undefined;
    return isRaw && !object.spec.hold ? { ...object, spec: { ...object.spec, hold: true } } : object;
  }

  /** True if a version has a grant or changes to an installer, and lets machines do more than the version in view. */
  grants(name: OwnName, judgement: Judgement | undefined): boolean {
    const object = judgement?.refusal === undefined ? judgement?.object : undefined;
    if ((object?.kind !== "Group" && object?.kind !== "Machine") || !this.#opens(object)) return false;
    const restricted = this.#restricted(name, judgement);
    return restricted?.kind !== object.kind || !isDeepStrictEqual(restricted.spec, object.spec);
  }

  /** True for a grant, and for a Group whose version in view has another Profile, if the new one installs. */
  #opens({ kind, namespace, name, spec }: GroupObject | MachineObject): boolean {
    if (kind === "Machine" || spec.install !== undefined) return spec.install !== undefined;
    const shown = this.get("Group", namespace, name);
    if (shown === undefined || shown.spec.profile === spec.profile) return false;
    return this.get("Profile", namespace, spec.profile)?.spec.effect === "Install";
  }

  /**
   * Takes in the current content of a reference. @returns the reference, and the Profiles that are now shown with it.
   */
  takeReference(reference: Reference): readonly ObjectName[] {
    this.#shown.take(reference);
    const shown: ObjectName[] = [];
    for (const id of this.#references.readersOf(reference)) {
      const pending = this.#pending.get(id);
      if (pending !== undefined && this.#showIfKnown(id, pending)) shown.push(nameOf(pending));
    }
    this.#noteWhole();
    return [reference, ...shown];
  }

  #noteRefusal({ kind, namespace, name }: OwnName, judgement: Judgement | undefined): void {
    const key = objectKey({ kind, namespace, name });
    if (judgement?.refusal === undefined) this.#refusals.delete(key);
    else {
      const { uid, generation, refusal: message, hidesMachines, caution, object } = judgement;
      const refused = { kind, namespace, name, uid, generation, origin, message };
      const read = kind === "Group" && { standIns: [object?.kind === "Group" ? object.spec : undefined] };
      this.#refusals.set(key, {
        ...refused,
        ...read,
        ...(hidesMachines && { hidesMachines }),
        ...(caution && { caution }),
      });
    }
  }

  /** Returns the uid of the newest accepted version. */
  #uidOf({ kind, namespace, name }: OwnName): string | undefined {
    const id = `${namespace}/${name}`;
    if (kind === "Group") return this.#groups.get(id)?.uid;
    return kind === "Machine" ? this.#machines.get(id)?.uid : (this.#pending.get(id) ?? this.#profiles.get(id))?.uid;
  }

  #put(kind: OwnName["kind"], id: string, object: SourceObject | undefined): boolean {
    if (kind === "Profile") return this.#putProfile(id, object?.kind === "Profile" ? object : undefined);
    if (kind === "Machine") return putInto(this.#machines, id, object?.kind === "Machine" ? object : undefined);
    return putInto(this.#groups, id, object?.kind === "Group" ? object : undefined);
  }

  #putProfile(id: string, object: ProfileObject | undefined): boolean {
    if (object === undefined) {
      this.#pending.delete(id);
      this.#refer(id, []);
      this.#noteWhole();
      return this.#profiles.delete(id);
    }
    const before = this.#profiles.get(id);
    if (before === object || this.#pending.get(id) === object) return false;
    const isOther = before !== undefined && before.uid !== object.uid;
    // Another object under the same name has no previous version.
    if (isOther) this.#profiles.delete(id);
    this.#refer(id, before === undefined || isOther ? [object] : [object, before]);
    if (this.#showIfKnown(id, object)) return true;
    this.#pending.set(id, object);
    return isOther;
  }

  /** Records the references of all these versions. The previous version needs its references while it is shown. */
  #refer(id: string, versions: readonly ProfileObject[]): void {
    const references = new Map(versions.flatMap(referencesOf).map((reference) => [objectKey(reference), reference]));
    const { wanted, unwanted } = this.#references.update(id, [...references.values()]);
    for (const reference of wanted) this.#shown.want(reference);
    for (const reference of unwanted) this.#shown.unwant(reference);
  }

  #showIfKnown(id: string, object: ProfileObject): boolean {
    if (!this.#areAll(object, "isKnown")) return false;
    this.#pending.delete(id);
    this.#profiles.set(id, object);
    this.#refer(id, [object]);
    return true;
  }

  #areAll(object: ProfileObject, question: "isKnown" | "isTried"): boolean {
    return referencesOf(object).every((reference) => this.#shown[question](reference));
  }

  #noteWhole(): void {
    this.#wasWhole ||= this.#hasLists && this.#pending.size === 0;
  }

  #stores(): Stores {
    return {
      Profile: lookup(this.#profiles),
      Group: lookup(this.#groups),
      Machine: lookup(this.#machines),
      ConfigMap: lookup(this.#shown.configMaps),
      Secret: lookup(this.#shown.secrets),
    };
  }
}

/** @returns true if the map changes. */
function putInto<Put>(objects: Map<string, Put>, id: string, object: Put | undefined): boolean {
  if (object === undefined) return objects.delete(id);
  if (objects.get(id) === object) return false;
  objects.set(id, object);
  return true;
}

type Stores = {
  readonly [Kind in ObjectKind]: {
    readonly get: (namespace: string, name: string) => Extract<SourceObject, { kind: Kind }> | undefined;
    readonly all: () => Iterable<Extract<SourceObject, { kind: Kind }>>;
  };
};

function lookup<Found>(objects: ReadonlyMap<string, Found>) {
  return {
    get: (namespace: string, name: string) => objects.get(`${namespace}/${name}`),
    all: () => objects.values(),
  };
}

function nameOf({ kind, namespace, name }: ProfileObject): ObjectName {
  return { kind, namespace, name };
}

function toProblem({ kind, namespace, name, message }: Refusal): SourceProblem {
  return { origin, message: `${kind} ${namespace}/${name}, ${message}` };
}

/** What the source shows before it is started. */
export const nothingYet: SourceView = {
  complete: false,
  isHalf: true,
  problems: [],
  refusals: [],
  refusalOf: () => undefined,
  isGone: () => false,
  unheard: new Set(),
  withheld: [],
  get: () => undefined,
  all: () => [],
};
