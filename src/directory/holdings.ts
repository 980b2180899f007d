/**
 * Holds the objects of the directory source. The controller reads them as a view, which follows the files by rules:
 *
 * - If the newest version of an object is refused, its last accepted version stays. Of a Machine only what makes its
 *   machine wait stays (model/objects/refused-machine.ts).
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
import { unreachable } from "../lib/errors.ts";
import { atOnce, forEachInSlices, Slices } from "../lib/slices.ts";
import {
  isOwnKind,
  type ObjectKind,
  type ObjectName,
  objectKey,
  type Refusal,
  type SourceObject,
  type SourceView,
} from "../model/objects/source.ts";
import { countingAtOnce } from "../model/selection/at-once.ts";
import {
  duplicateProblem,
  nameOf,
  nameOfDefinition,
  objectIn,
  originOf,
  refusedObject,
  toRefusal,
} from "./definitions.ts";
import type { FileProblem } from "./file-problem.ts";
import type { Definition, FileContent } from "./read-file.ts";

/** A file as a look found it. */
export interface LookedFile extends FileContent {
  /** Set only while the file may be half written: what its last finished version defined. */
  readonly before?: readonly Definition[];
}

/** What one look at the directories found. */
export interface DirectoryLook {
  /** Every known file, in byte order of the paths. */
  readonly files: Iterable<LookedFile>;
  /** Problems outside the files' contents, such as a directory that cannot be read or is empty. */
  readonly problems: readonly FileProblem[];
  /** False while a file may be half written or is not read yet: an object that seems missing may be in that file. */
  readonly isAtRest: boolean;
}

export interface HoldingsChange {
  /** Objects that were added, changed, refused or removed. */
  readonly names: readonly ObjectName[];
  /** Removed objects, in their last version. */
  readonly removed: readonly SourceObject[];
  /** True when the view changed: an object, a problem, or whether it is complete. */
  readonly differs: boolean;
}

// Comparing one definition with the view takes about 5 µs.
const definitionsPerSlice = 2_000;

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
  /** Objects that stay in the view for now, although no file defines them. */
  #leaving: ReadonlyMap<string, ObjectName> = new Map();

  get complete(): boolean {
    return this.#isComplete;
  }

  get isHalf(): boolean {
    return this.#isHalf;
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

  /** Updates the view from a look. Returns what changed. */
  take(look: DirectoryLook): HoldingsChange {
    return atOnce(this.prepare(look))();
  }

  /**
   * Finds out, in slices, how a look changes the view.
   * @returns a function that changes the view in one turn, and returns what changed. Call it before the next look.
   */
  *prepare(look: DirectoryLook): Generator<undefined, () => HoldingsChange> {
    const slices = new Slices(definitionsPerSlice);
    const files = [...look.files];
    const found = yield* groupByName(files, slices);
    const unsettled = yield* unsettledKeys(files, slices);
    const resolved = yield* this.#resolveAll(found, unsettled, slices);
    const outside = [...look.problems, ...files.flatMap((file) => file.problems)];
    const problems = [...outside, ...resolved.problems];
    const isComplete = problems.length === 0 && (look.isAtRest || this.#isComplete);
    const differs = isComplete !== this.#isComplete || !isDeepStrictEqual(problems, this.#problems);
    const isHalf = hasNameless(outside, found);
    const judged = yield* this.#judged(resolved.refusals, slices);
    const missing = yield* this.#missing(found, slices);
    const removed = isComplete && look.isAtRest ? missing : [];
    const leaving = byKey((removed.length > 0 ? [] : missing).map(nameOf));
    const named = [...resolved.changed.map(nameOf), ...judged, ...removed.map(nameOf), ...this.#left(leaving)];
    const names = [...byKey(named).values()];
    return () => {
      this.#problems = problems;
      this.#isComplete = isComplete;
      this.#isHalf = isHalf;
      this.#refusals = resolved.refusals;
      this.#leaving = leaving;
      for (const object of resolved.changed) this.#put(object);
      for (const { kind, namespace, name } of removed) this.#objects[kind].delete(`${namespace}/${name}`);
      return { names, removed, differs: differs || names.length > 0 };
    };
  }

  *#resolveAll(
    found: ReadonlyMap<string, readonly Definition[]>,
    unsettled: ReadonlySet<string>,
    slices: Slices,
  ): Generator<undefined, ResolvedLook> {
    const changed: SourceObject[] = [];
    const problems: FileProblem[] = [];
    const refusals = new Map<string, Refusal>();
    yield* forEachInSlices(found, { slices }, ([key, same]) => {
      const { object, problem, refusal } = this.#resolve(same, unsettled.has(key));
      if (problem !== undefined) problems.push(problem);
      if (refusal !== undefined) refusals.set(key, refusal);
      if (object !== undefined && this.#isNews(object)) changed.push(object);
    });
    return { changed, problems, refusals };
  }

  /** The objects whose refusal is new, changed or over. */
  *#judged(refusals: ReadonlyMap<string, Refusal>, slices: Slices): Generator<undefined, readonly ObjectName[]> {
    const judged: ObjectName[] = [];
    yield* forEachInSlices(
      new Map([...this.#refusals, ...refusals]),
      { slices },
      ([key, { kind, namespace, name }]) => {
        if (!isDeepStrictEqual(this.#refusals.get(key), refusals.get(key))) judged.push({ kind, namespace, name });
      },
    );
    return judged;
  }

  /** The objects of the view that no file defines. */
  *#missing(found: ReadonlyMap<string, unknown>, slices: Slices): Generator<undefined, readonly SourceObject[]> {
    const missing: SourceObject[] = [];
    for (const objects of Object.values(this.#objects)) {
      yield* forEachInSlices<SourceObject>(objects.values(), { slices }, (object) => {
        if (!found.has(objectKey(object))) missing.push(object);
      });
    }
    return missing;
  }

  /** The objects that are in only one of `#leaving` and its new value. */
  #left(leaving: ReadonlyMap<string, ObjectName>): readonly ObjectName[] {
    const all = new Map([...this.#leaving, ...leaving]);
    return [...all].flatMap(([key, name]) => (this.#leaving.has(key) && leaving.has(key) ? [] : [name]));
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

  #accept(object: SourceObject, isUnsettled: boolean): Resolved {
    const counting = isUnsettled ? countingAtOnce(this.#held(nameOf(object)), object) : object;
    return counting === undefined ? {} : { object: counting };
  }

  #held({ kind, namespace, name }: ObjectName): SourceObject | undefined {
    return this.get(kind, namespace, name);
  }

  /** True for an object that is not in the view, or differs from its previous version. */
  #isNews(object: SourceObject): boolean {
    const held = this.#held(object);
    return held !== object && !isDeepStrictEqual(held, object);
  }

  #put(object: SourceObject): void {
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
  }
}

interface ResolvedLook {
  /** New and changed objects. */
  readonly changed: readonly SourceObject[];
  readonly problems: readonly FileProblem[];
  /** By key. */
  readonly refusals: ReadonlyMap<string, Refusal>;
}

interface Resolved {
  readonly object?: SourceObject;
  readonly problem?: FileProblem;
  readonly refusal?: Refusal;
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

function* groupByName(
  files: readonly LookedFile[],
  slices: Slices,
): Generator<undefined, ReadonlyMap<string, readonly Definition[]>> {
  const found = new Map<string, Definition[]>();
  for (const file of files) {
    yield* forEachInSlices(file.definitions, { slices }, (definition) => {
      const key = keyOf(definition);
      const same = found.get(key);
      if (same === undefined) found.set(key, [definition]);
      else same.push(definition);
    });
  }
  return found;
}

/** Returns the keys of the objects that half-written files define now, or defined in their last finished versions. */
function* unsettledKeys(files: readonly LookedFile[], slices: Slices): Generator<undefined, ReadonlySet<string>> {
  const keys = new Set<string>();
  for (const { definitions, before } of files) {
    if (before === undefined) continue;
    for (const each of [definitions, before]) {
      yield* forEachInSlices(each, { slices }, (definition) => keys.add(keyOf(definition)));
    }
  }
  return keys;
}

function keyOf(definition: Definition): string {
  return objectKey(nameOfDefinition(definition));
}

function byKey(names: readonly ObjectName[]): ReadonlyMap<string, ObjectName> {
  return new Map(names.map((name) => [objectKey(name), name]));
}
