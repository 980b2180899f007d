/**
 * Holds the objects of the directory source. The controller reads them as a view, which follows the files by rules:
 *
 * - If the newest version of an object is refused, its last accepted version stays. Of a Machine only what makes its
 *   machine wait stays (`refusedMachine`).
 * - While a file cannot be read or has a mistake, the view is incomplete and keeps all objects. The view becomes
 *   complete again when a look finds no problem and every file at rest. Until then, davit must expect that a missing
 *   object returns, for example when somebody mounts a volume again.
 * - From a file that may be half written, only changes that make machines wait take effect (`at-once.ts`).
 *   Meanwhile no object is removed.
 * - If a name is defined twice, its last accepted version stays. If there is none, a Group becomes a refused Group, and
 *   an object of another kind is not in the view.
 * - A refused Group without an accepted version is in the view, with the reason for its refusal, if its selector can be
 *   read.
 *
 * This file does no I/O and reads no clock.
 */

import { isDeepStrictEqual } from "node:util";
import { unreachable } from "../../lib/errors.ts";
import type { GroupSpec } from "../../model/objects/group.ts";
import type { ProfileCaution } from "../../model/objects/profile.ts";
import {
  fileUid,
  type GroupObject,
  isOwnKind,
  type ObjectKind,
  type ObjectName,
  objectKey,
  type Refusal,
  refusedMachine,
  type SourceObject,
  type SourceView,
} from "../../model/objects/source.ts";
import { countingAtOnce } from "../../model/selection/at-once.ts";
import type { FileProblem } from "./list-files.ts";
import type { Definition, FileContent } from "./read-file.ts";

/** A file as a look found it. */
export interface LookedFile extends FileContent {
  /** Set only while the file may be half written: what its last finished version defined. */
  readonly before?: readonly Definition[];
}

/** What one look at the directories found. */
interface DirectoryLook {
  /** Every known file, in byte order of the paths. */
  readonly files: Iterable<LookedFile>;
  /** Problems outside the files' contents, such as a directory that cannot be read or is empty. */
  readonly problems: readonly FileProblem[];
  /** False while a file may be half written or is not read yet: an object that seems missing may be in that file. */
  readonly isAtRest: boolean;
}

interface HoldingsChange {
  /** Objects that were added, changed, refused or removed. */
  readonly names: readonly ObjectName[];
  /** Removed objects, in their last version. */
  readonly removed: readonly SourceObject[];
  /** True when the view changed: an object, a problem, or whether it is complete. */
  readonly differs: boolean;
}

type Objects = { readonly [Kind in ObjectKind]: Map<string, Extract<SourceObject, { kind: Kind }>> };

export class Holdings implements SourceView {
  readonly unheard: ReadonlySet<string> = new Set();
  readonly #objects: Objects = {
    Profile: new Map(),
    Group: new Map(),
    Machine: new Map(),
    ConfigMap: new Map(),
    Secret: new Map(),
  };
  #problems: readonly FileProblem[] = [];
  #refusals: ReadonlyMap<string, Refusal> = new Map();
  #isComplete = false;
  #isHalf = true;
  #isChanging = false;
  /** Objects that stay in the view for now, although no file defines them. */
  #leaving: ReadonlyMap<string, ObjectName> = new Map();

  get complete(): boolean {
    return this.#isComplete;
  }

  get isHalf(): boolean {
    return this.#isHalf;
  }

  get isChanging(): boolean {
    return this.#isChanging;
  }

  get problems(): readonly FileProblem[] {
    return this.#problems;
  }

  get refusals(): Iterable<Refusal> {
    return this.#refusals.values();
  }

  refusalOf(name: ObjectName): Refusal | undefined {
    return this.#refusals.get(objectKey(name));
  }

  isGone(name: ObjectName): boolean {
    return this.complete && this.#held(name) === undefined;
  }

  get withheld(): readonly ObjectName[] {
    return this.#isComplete ? [] : [...this.#leaving.values()];
  }

  isLeaving(name: ObjectName): boolean {
    return this.#leaving.has(objectKey(name));
  }

  get size(): number {
    return Object.values(this.#objects).reduce((sum, objects) => sum + objects.size, 0);
  }

  get<Kind extends ObjectKind>(
    kind: Kind,
    namespace: string,
    name: string,
  ): Extract<SourceObject, { kind: Kind }> | undefined {
    return this.#objects[kind].get(`${namespace}/${name}`);
  }

  all<Kind extends ObjectKind>(kind: Kind): Iterable<Extract<SourceObject, { kind: Kind }>> {
    return this.#objects[kind].values();
  }

  take(look: DirectoryLook): HoldingsChange {
    const files = [...look.files];
    const definitions = groupByName(files.flatMap((file) => file.definitions));
    const unsettled = unsettledKeys(files);
    const resolved = [...definitions].map(([key, same]) => this.#resolve(same, unsettled.has(key)));
    const problems = [
      ...look.problems,
      ...files.flatMap((file) => file.problems),
      ...resolved.flatMap(({ problem }) => (problem === undefined ? [] : [problem])),
    ];
    const isComplete = problems.length === 0 && (look.isAtRest || this.#isComplete);
    const differs = isComplete !== this.#isComplete || !isDeepStrictEqual(problems, this.#problems);
    this.#problems = problems;
    this.#isComplete = isComplete;
    this.#isChanging = !look.isAtRest;
    this.#isHalf = hasNameless([...look.problems, ...files.flatMap((file) => file.problems)], definitions);
    const changed = resolved.flatMap(({ object }) =>
      object !== undefined && this.#put(object) ? [nameOf(object)] : [],
    );
    const judged = this.#takeRefusals(resolved.flatMap(({ refusal }) => refusal ?? []));
    const removed = this.#removeMissing(definitions, look);
    const named = [...changed, ...judged, ...removed.map(nameOf), ...this.#takeLeaving(definitions)];
    const names = [...new Map(named.map((name) => [objectKey(name), name])).values()];
    return { names, removed, differs: differs || names.length > 0 };
  }

  /** Replaces all refusals. @returns the objects whose refusal is new, changed or over. */
  #takeRefusals(refusals: readonly Refusal[]): readonly ObjectName[] {
    const before = this.#refusals;
    this.#refusals = new Map(refusals.map((refusal) => [objectKey(refusal), refusal]));
    const all = new Map([...before, ...this.#refusals]);
    return [...all].flatMap(([key, { kind, namespace, name }]) =>
      isDeepStrictEqual(before.get(key), this.#refusals.get(key)) ? [] : [{ kind, namespace, name }],
    );
  }

  /** Chooses the version of an object for the view. @param same all definitions of its name. */
  #resolve(same: readonly Definition[], isUnsettled: boolean): Resolved {
    const [first, second] = same;
    if (first === undefined) return {};
    if (second === undefined && first.kind === "accepted") return this.#accept(first.object, isUnsettled);
    const name = nameOfDefinition(first);
    const held = this.#held(name);
    const problem = second === undefined ? undefined : duplicateProblem(first, second);
    const message = problem?.message ?? (first.kind === "refused" ? first.text : "");
    const object = refusedObject(held, same.map(objectIn), message);
    const refusal = toRefusal(name, message, same);
    return { ...(object && { object }), ...(problem && { problem }), ...(refusal && { refusal }) };
  }

  /** Updates `#leaving`. @returns the objects that were added to it or removed from it. */
  #takeLeaving(found: ReadonlyMap<string, unknown>): readonly ObjectName[] {
    const before = this.#leaving;
    const names = Object.values(this.#objects).flatMap((objects) => [...objects.values()].map(nameOf));
    const keyed = names.map((name) => [objectKey(name), name] as const);
    this.#leaving = new Map(keyed.filter(([key]) => !found.has(key)));
    const all = new Map([...before, ...this.#leaving]);
    return [...all].flatMap(([key, name]) => (before.has(key) && this.#leaving.has(key) ? [] : [name]));
  }

  #accept(object: SourceObject, isUnsettled: boolean): Resolved {
    const counting = isUnsettled ? countingAtOnce(this.#held(nameOf(object)), object) : object;
    return counting === undefined ? {} : { object: counting };
  }

  #held({ kind, namespace, name }: ObjectName): SourceObject | undefined {
    return this.get(kind, namespace, name);
  }

  /** Puts an object into the view. @returns true if it is new or differs from its previous version. */
  #put(object: SourceObject): boolean {
    const held = this.#held(nameOf(object));
    if (held === object || isDeepStrictEqual(held, object)) return false;
    const key = `${object.namespace}/${object.name}`;
    switch (object.kind) {
      case "Profile":
        this.#objects.Profile.set(key, object);
        break;
      case "Group":
        this.#objects.Group.set(key, object);
        break;
      case "Machine":
        this.#objects.Machine.set(key, object);
        break;
      case "ConfigMap":
        this.#objects.ConfigMap.set(key, object);
        break;
      case "Secret":
        this.#objects.Secret.set(key, object);
        break;
      default:
        unreachable(object);
    }
    return true;
  }

  /** Removes objects that no file defines; none while the view is incomplete or a file is not at rest. */
  #removeMissing(found: ReadonlyMap<string, unknown>, { isAtRest }: DirectoryLook): readonly SourceObject[] {
    if (!this.complete || !isAtRest) return [];
    const removed: SourceObject[] = [];
    for (const objects of Object.values(this.#objects)) {
      for (const [id, object] of objects) {
        if (found.has(objectKey(nameOf(object)))) continue;
        objects.delete(id);
        removed.push(object);
      }
    }
    return removed;
  }
}

interface Resolved {
  readonly object?: SourceObject;
  readonly problem?: FileProblem;
  readonly refusal?: Refusal;
}

/**
 * Returns the refusal of an object; undefined for ConfigMaps and Secrets, because they have no status that could show
 * it. The generation is always 1, because files have no generations.
 */
function toRefusal(id: ObjectName, message: string, same: readonly Definition[]): Refusal | undefined {
  const { kind, namespace, name } = id;
  if (!isOwnKind(kind)) return undefined;
  const origin = same[0] === undefined ? "" : originOf(same[0]);
  const refusal = { kind, namespace, name, uid: fileUid(id), generation: 1, origin, message };
  if (kind === "Machine") return refusal;
  if (kind === "Profile") return { ...refusal, caution: cautionOf(same) };
  const isVague = same.length > 1 || same.some(hidesMachines);
  return { ...refusal, standIns: same.map(standInOf), ...(isVague && { hidesMachines: true }) };
}

/**
 * Returns what takes effect of a Profile although it is refused. If the Profile is defined twice, either definition may
 * be the intended one. So its machines boot from their own disk only if all definitions say so. If one definition has
 * the effect `Install`, the Profile counts as an installing one.
 */
function cautionOf(same: readonly Definition[]): ProfileCaution {
  const all = same.map((definition): ProfileCaution => {
    if (definition.kind === "refused") return definition.caution ?? {};
    const spec = definition.object.kind === "Profile" ? definition.object.spec : undefined;
    const isInstall = spec?.effect === "Install" && { isInstall: true as const };
    const local = spec?.boot?.kind === "local" && { local: spec.boot.local };
    return { ...local, ...isInstall, ...(spec?.requireTls && { requireTls: true }) };
  });
  const [first] = all;
  const local = all.every((each) => each.local !== undefined) ? first?.local : undefined;
  const isInstall = all.some((each) => each.isInstall) && { isInstall: true as const };
  const requireTls = all.some((each) => each.requireTls) && { requireTls: true as const };
  return { ...(local && { local }), ...isInstall, ...requireTls };
}

/** Returns the readable part of a Group; undefined if there is none, or for an object of another kind. */
function standInOf(definition: Definition): GroupSpec | undefined {
  const object = objectIn(definition);
  return object?.kind === "Group" ? object.spec : undefined;
}

function hidesMachines(definition: Definition): boolean {
  return definition.kind === "refused" && definition.hidesMachines === true;
}

/**
 * True if a problem may hide objects. Only the problem of a refused Profile or Group with a known name hides none. A
 * problem belongs to a refused object if both have the same origin.
 */
function hasNameless(
  problems: readonly FileProblem[],
  definitions: ReadonlyMap<string, readonly Definition[]>,
): boolean {
  if (problems.length === 0) return false;
  const named = [...definitions.values()].flat().filter(({ kind }) => kind === "refused");
  const places = new Set(named.filter(isOwn).map(originOf));
  return problems.some(({ origin }) => !places.has(origin));
}

function isOwn(definition: Definition): boolean {
  return isOwnKind(nameOfDefinition(definition).kind);
}

function groupByName(definitions: readonly Definition[]): ReadonlyMap<string, readonly Definition[]> {
  return Map.groupBy(definitions, definitionKey);
}

/** Returns the keys of the objects that half-written files define now, or defined in their last finished versions. */
function unsettledKeys(files: readonly LookedFile[]): ReadonlySet<string> {
  const definitions = files.flatMap((file) => (file.before === undefined ? [] : [...file.definitions, ...file.before]));
  return new Set(definitions.map(definitionKey));
}

function duplicateProblem(first: Definition, second: Definition): FileProblem {
  const { kind, namespace, name } = nameOfDefinition(second);
  const place = originOf(first);
  const message = `${kind} ${namespace}/${name} is defined a second time, first in ${place}: remove or rename one`;
  const { file, at } = second.place;
  return { origin: originOf(second), message, code: "duplicate-object", file, at, text: message };
}

/** Returns what counts of an object whose newest version is refused; undefined for nothing. */
function refusedObject(
  held: SourceObject | undefined,
  read: readonly (SourceObject | undefined)[],
  refusal: string,
): SourceObject | undefined {
  if (held?.kind === "Machine" || read.some((object) => object?.kind === "Machine")) {
    const machines = read.filter((object) => object?.kind === "Machine");
    return refusedMachine(held?.kind === "Machine" ? held : undefined, machines, refusal);
  }
  return held !== undefined && !isRefused(held) ? held : refusedGroup([...read, held], refusal);
}

/** Returns the first readable version of a Group as a refused Group; undefined if no version is readable. */
function refusedGroup(same: readonly (SourceObject | undefined)[], refusal: string): GroupObject | undefined {
  for (const object of same) {
    if (object?.kind === "Group") return { ...object, refusal };
  }
  return undefined;
}

function objectIn(definition: Definition): SourceObject | undefined {
  return definition.kind === "accepted" ? definition.object : definition.standIn;
}

function isRefused(object: SourceObject): boolean {
  return object.kind === "Group" && object.refusal !== undefined;
}

/** Returns the `objectKey` of the object that a document names. */
export function definitionKey(definition: Definition): string {
  return objectKey(nameOfDefinition(definition));
}

function nameOfDefinition(definition: Definition): ObjectName {
  return definition.kind === "accepted" ? nameOf(definition.object) : definition.name;
}

function originOf(definition: Definition): string {
  return definition.kind === "accepted" ? definition.object.origin : definition.origin;
}

function nameOf({ kind, namespace, name }: SourceObject): ObjectName {
  return { kind, namespace, name };
}
