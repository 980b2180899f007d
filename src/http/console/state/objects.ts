/**
 * The objects that the console lists. A davit that reads the source knows their statuses. Any other davit knows only
 * the Groups in its copy of the store, and the Profiles that they name.
 */

import type { BootIndex } from "../../../boot/selection/boot-index.ts";
import {
  type ObjectName,
  type ObjectStatus,
  objectKey,
  type SourceProblem,
  type SourceView,
} from "../../../model/objects/source.ts";
import type { KnownStatuses } from "./known-statuses.ts";

export interface ConsoleObjectsOptions {
  /** Undefined in a follower. */
  readonly statuses: KnownStatuses | undefined;
  /** Returns what this davit reads of the source; undefined while it reads nothing. */
  readonly view: () => SourceView | undefined;
  /** The store's objects. */
  readonly index: Pick<BootIndex, "groups" | "revision">;
}

/** What a reader looks for. */
export interface ObjectFilter {
  readonly show: "all" | "person" | "profiles" | "groups";
  /** Part of a key, in any letter case. */
  readonly text: string | undefined;
}

export class ConsoleObjects {
  readonly #options: ConsoleObjectsOptions;
  #stored: { readonly revision: number; readonly keys: readonly string[] } | undefined;

  constructor(options: ConsoleObjectsOptions) {
    this.#options = options;
  }

  /** True if this davit reads the source: then it knows statuses. */
  get isReading(): boolean {
    return this.#options.view() !== undefined;
  }

  /** How many objects need a person. */
  get troubledCount(): number {
    return this.#options.statuses?.troubled.size ?? 0;
  }

  /** Files and documents that davit cannot use. */
  get problems(): readonly SourceProblem[] {
    return this.#options.view()?.problems ?? [];
  }

  /**
   * Returns the keys of the objects that a filter selects. Machines that need nobody are not listed: the fleet has
   * them. Nothing but the keys is looked at.
   */
  find({ show, text }: ObjectFilter): readonly string[] {
    const words = text?.toLowerCase();
    const { troubled } = this.#options.statuses ?? { troubled: new Set<string>() };
    const keys = show === "person" ? [...troubled].sort() : this.#keys;
    const prefix = { all: "", person: "", profiles: "Profile/", groups: "Group/" }[show];
    return keys.filter(
      (key) =>
        key.startsWith(prefix) &&
        (!key.startsWith("Machine/") || troubled.has(key)) &&
        (words === undefined || key.toLowerCase().includes(words)),
    );
  }

  /** True for an object that exists. */
  has(name: ObjectName): boolean {
    const key = objectKey(name);
    return this.isReading ? this.statusOf(name) !== undefined : this.#keys.includes(key);
  }

  statusOf(name: ObjectName): ObjectStatus | undefined {
    return this.#options.statuses?.of(name);
  }

  /** Returns where a person finds the newest version of an object: a file and its line, or `cluster`. */
  originOf(name: ObjectName): string | undefined {
    const view = this.#options.view();
    return (view?.refusalOf(name) ?? view?.get(name.kind, name.namespace, name.name))?.origin;
  }

  /** Returns the Groups that name a Profile. @param profile `namespace/name` */
  *groupsOf(profile: string): Iterable<string> {
    for (const [group, { profileId }] of this.#options.index.groups) if (profileId === profile) yield group;
  }

  /** Returns the Profile that a Group names. Both are `namespace/name`. */
  profileOf(group: string): string | undefined {
    return this.#options.index.groups.get(group)?.profileId;
  }

  get #keys(): readonly string[] {
    const { statuses, index } = this.#options;
    const { groups, revision } = index;
    if (statuses !== undefined && this.isReading) return statuses.keys;
    if (this.#stored?.revision !== revision) {
      const profiles = new Set([...groups.values()].map(({ profileId }) => `Profile/${profileId}`));
      const keys = [...groups.keys()].map((group) => `Group/${group}`);
      this.#stored = { revision, keys: [...keys, ...profiles].sort() };
    }
    return this.#stored.keys;
  }
}

/** Reads a key of `ConsoleObjects`. @returns undefined for anything else. */
export function nameIn(key: string): (ObjectName & { readonly kind: "Group" | "Profile" | "Machine" }) | undefined {
  const [kind, namespace, name, ...rest] = key.split("/");
  if (kind !== "Group" && kind !== "Profile" && kind !== "Machine") return undefined;
  if (namespace === undefined || name === undefined || rest.length > 0) return undefined;
  return { kind, namespace, name };
}
