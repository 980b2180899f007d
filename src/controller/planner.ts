/**
 * Plans steps: what the store should hold of some objects, as the source shows them now, and what their users are told.
 * It reads the source's view and the documents that are stored, and changes neither: a plan that could not be written
 * is made anew, and comes out right whatever has happened since.
 */

import type { DocumentChange } from "../model/feed.ts";
import type { ObjectName, ObjectStatus, Source } from "../model/source.ts";
import { Dependents } from "./dependents.ts";
import type { Documents, DocumentWrite } from "./documents.ts";
import { reconcileGroup, removeGroup } from "./reconcile-group.ts";
import { reconcileProfile, removeProfile } from "./reconcile-profile.ts";
import type { ProfileWorld } from "./resolve-profile.ts";
import { type Passing, tombstoneWrites } from "./tombstones.ts";

export interface PlannerOptions {
  readonly source: Source;
  readonly documents: Documents;
  readonly sha256: (text: string) => string;
  readonly checkTemplate: ProfileWorld["checkTemplate"];
  /** How long a tombstone stays, whole seconds from 1 on. */
  readonly tombstoneTtlSeconds: number;
}

/** What became of one name. */
export interface Planned {
  readonly name: ObjectName;
  /** Undefined for an object that is gone. */
  readonly status: ObjectStatus | undefined;
  /** True when documents of an object that is gone are removed. */
  readonly isRemoved: boolean;
}

/** Documents to change in one step, in this order, and what to tell once they are. */
export interface Step {
  readonly planned: readonly Planned[];
  readonly writes: readonly DocumentWrite[];
  /** Others that have to be looked at again. */
  readonly alsoLookAt: readonly ObjectName[];
}

/** A step in the making. */
interface Draft {
  readonly planned: Planned[];
  readonly changes: DocumentChange[];
  readonly passings: Passing[];
  readonly alsoLookAt: ObjectName[];
}

export class Planner {
  readonly #options: PlannerOptions;
  readonly #dependents = new Dependents();
  readonly #world: ProfileWorld;

  constructor(options: PlannerOptions) {
    this.#options = options;
    const { source, sha256, checkTemplate } = options;
    this.#world = {
      sha256,
      checkTemplate,
      configMap: (namespace, name) => source.view.get("ConfigMap", namespace, name),
      secret: (namespace, name) => source.view.get("Secret", namespace, name),
    };
  }

  /** The objects that refer to this one. */
  dependentsOf(name: ObjectName): Iterable<ObjectName> {
    return this.#dependents.of(name);
  }

  /** Every Profile and Group that the source shows or the store holds. */
  names(): readonly ObjectName[] {
    const { source, documents } = this.#options;
    const names = new Map<string, ObjectName>();
    const add = ({ kind, namespace, name }: ObjectName) =>
      names.set(`${kind}/${namespace}/${name}`, { kind, namespace, name });
    for (const name of documents.names()) add(name);
    for (const kind of ["Profile", "Group"] as const) for (const object of source.view.all(kind)) add(object);
    return [...names.values()];
  }

  /** Plans one step for all of these names. */
  plan(names: readonly ObjectName[]): Step {
    const draft: Draft = { planned: [], changes: [], passings: [], alsoLookAt: [] };
    for (const name of names) {
      if (name.kind === "Profile") this.#planProfile(name, draft);
      if (name.kind === "Group") this.#planGroup(name, draft);
    }
    const { documents, tombstoneTtlSeconds } = this.#options;
    const tombstones = tombstoneWrites(draft.passings, {
      textAt: (path) => documents.textAt(path),
      ttlSeconds: tombstoneTtlSeconds,
    });
    return { ...draft, writes: [...tombstones, ...draft.changes] };
  }

  #planProfile(id: ObjectName, draft: Draft): void {
    const { source, documents } = this.#options;
    const { namespace, name } = id;
    const object = source.view.get("Profile", namespace, name);
    const stored = documents.profile(namespace, name);
    if (object === undefined && !source.view.complete) return void draft.planned.push(untold(id));
    this.#dependents.update(id, object);
    if ((object === undefined) !== (stored.document === undefined)) draft.alsoLookAt.push(...this.dependentsOf(id));
    const { changes, status } =
      object === undefined ? removeProfile(namespace, name, stored) : reconcileProfile(object, stored, this.#world);
    draft.changes.push(...changes);
    draft.planned.push({ name: id, status, isRemoved: object === undefined && changes.length > 0 });
  }

  #planGroup(id: ObjectName, draft: Draft): void {
    const { source, documents } = this.#options;
    const { namespace, name } = id;
    const object = source.view.get("Group", namespace, name);
    const stored = documents.group(namespace, name);
    if (object === undefined && !source.view.complete) return void draft.planned.push(untold(id));
    this.#dependents.update(id, object);
    const { changes, status, document } =
      object === undefined
        ? { ...removeGroup(namespace, name, stored), document: undefined }
        : reconcileGroup(object, stored, (ns, profile) => this.#profileExists(ns, profile));
    draft.changes.push(...changes);
    draft.passings.push({ id: `${namespace}/${name}`, before: stored?.spec, after: document?.spec });
    draft.planned.push({ name: id, status, isRemoved: object === undefined && changes.length > 0 });
  }

  /** In view, or out of view for now and still served from the store. */
  #profileExists(namespace: string, name: string): boolean {
    const { source, documents } = this.#options;
    if (source.view.get("Profile", namespace, name) !== undefined) return true;
    return !source.view.complete && documents.profile(namespace, name).document !== undefined;
  }
}

function untold(name: ObjectName): Planned {
  return { name, status: undefined, isRemoved: false };
}
