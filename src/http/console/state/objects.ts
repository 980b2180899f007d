/**
 * The objects that the console lists. A davit that reads the source knows their statuses. Any other davit knows only
 * the Groups in its copy of the store, and the Profiles that they name.
 */

import type { BootIndex } from "../../../boot/selection/boot-index.ts";
import {
  type Condition,
  heldReason,
  type ObjectName,
  type ObjectStatus,
  objectKey,
  type SourceProblem,
  type SourceView,
  type StatusSink,
} from "../../../model/objects/source.ts";

interface ConsoleObjectsOptions {
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

export class KnownStatuses implements StatusSink {
  readonly #known = new Map<string, ObjectStatus>();
  readonly #troubled = new Set<string>();
  #keys: readonly string[] | undefined;
  #revision = 0;

  /** Counts changes. */
  get revision(): number {
    return this.#revision;
  }

  /** The keys of all objects (`objectKey`) in their order. They are sorted again only after objects came or went. */
  get keys(): readonly string[] {
    this.#keys ??= [...this.#known.keys()].sort();
    return this.#keys;
  }

  /** The keys of the objects that need a person. */
  get troubled(): ReadonlySet<string> {
    return this.#troubled;
  }

  write(name: ObjectName, status: ObjectStatus): Promise<void> {
    this.#revision += 1;
    const key = objectKey(name);
    if (!this.#known.has(key)) this.#keys = undefined;
    this.#known.set(key, status);
    if (problemIn(status) === undefined) this.#troubled.delete(key);
    else this.#troubled.add(key);
    return Promise.resolve();
  }

  forget(name: ObjectName): void {
    this.#revision += 1;
    const key = objectKey(name);
    if (this.#known.delete(key)) this.#keys = undefined;
    this.#troubled.delete(key);
  }

  /** Forgets everything: another davit writes statuses now. */
  clear(): void {
    this.#revision += 1;
    this.#known.clear();
    this.#troubled.clear();
    this.#keys = undefined;
  }

  of(name: ObjectName): ObjectStatus | undefined {
    return this.#known.get(objectKey(name));
  }
}

/**
 * Returns what is wrong with a Group or its Profile, for its machines' rows; undefined if nobody needs to act.
 * @param group and `profile` are `namespace/name`.
 */
export function problemOf(
  statuses: { of(name: ObjectName): ObjectStatus | undefined },
  group: string,
  profile: string | undefined,
): string | undefined {
  const named = [profile === undefined ? undefined : ownName("Profile", profile), ownName("Group", group)];
  for (const name of named.filter((each) => each !== undefined)) {
    const problem = problemIn(statuses.of(name));
    if (problem !== undefined) return `${name.kind} ${name.namespace}/${name.name}: ${problem.message}`;
  }
  return undefined;
}

/** Returns the condition that says what is wrong with an object; undefined if nothing is. A held object is right. */
export function problemIn(status: ObjectStatus | undefined): Condition | undefined {
  const of = (type: Condition["type"]) => status?.conditions.find((condition) => condition.type === type);
  const found = [of("Ready"), of("Rendered")].filter((condition) => condition !== undefined);
  return found.find(({ status: is, reason }) => is === "False" && reason !== heldReason);
}

function ownName(kind: "Profile" | "Group", name: string): ObjectName {
  const [namespace = "", plain = ""] = name.split("/");
  return { kind, namespace, name: plain };
}
