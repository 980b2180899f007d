/** What an unreadable part of the source does: deletions wait, and machines that it may name wait. */

import type { Log } from "../lib/log.ts";
import type { GroupDocument } from "../model/objects/documents.ts";
import type { Group } from "../model/objects/group.ts";
import { type ObjectName, objectKey, type Source } from "../model/objects/source.ts";
import { namesMachine } from "../model/selection/specificity.ts";

// A message names this many objects and counts the others.
const shownNames = 3;

/** The source itself, not only its view, because the source replaces the view when it starts. */
type ViewedSource = Pick<Source, "view">;

/**
 * Holds back deletions. An object that the source no longer shows stays in effect while an unreadable part of the
 * source may hold it.
 */
export class Withheld {
  readonly #source: ViewedSource;
  /** Stored objects that the source does not show, but that may still exist. */
  readonly #stored = new Map<string, ObjectName>();
  #wasLogged = false;

  constructor(source: ViewedSource) {
    this.#source = source;
  }

  /** Records whether the deletion of a stored object waits. */
  note(name: ObjectName, isWithheld: boolean): void {
    if (isWithheld) this.#stored.set(objectKey(name), name);
    else this.#stored.delete(objectKey(name));
  }

  /**
   * Returns a Group's document, marked `leaving` if the Group may be gone. Then its machines wait instead of
   * installing.
   */
  mark(document: GroupDocument, name: ObjectName): GroupDocument {
    const isLeaving = this.#stored.has(objectKey(name)) || this.#source.view.isLeaving?.(name) === true;
    return isLeaving ? { ...document, leaving: true } : document;
  }

  /** True if a deletion need not wait any more, because its object is now known to be gone. */
  get isOver(): boolean {
    const { view } = this.#source;
    return [...this.#stored.values()].some((name) => view.isGone(name));
  }

  /** All objects whose deletion waits: those recorded here, and those that the source withholds. */
  get names(): readonly ObjectName[] {
    const known = new Map(this.#source.view.withheld.map((name) => [objectKey(name), name]));
    return [...new Map([...this.#stored, ...known]).values()];
  }

  /** Logs when the first deletion has to wait, and when no deletion waits any more. */
  logChange(log: Pick<Log, "warn" | "info">): void {
    const { names } = this;
    const isNews = names.length > 0 !== this.#wasLogged;
    this.#wasLogged = names.length > 0;
    if (!isNews) return;
    if (this.#wasLogged) log.warn({ objects: shown(names) }, "deletions wait until the whole source can be read");
    else log.info({}, "no deletion waits any more");
  }

  /** For a person: which objects stay, and what their machines get meanwhile. */
  get attention(): readonly string[] {
    const { names } = this;
    if (names.length === 0) return [];
    const what = names.length === 1 ? "1 object is" : `${names.length} objects are`;
    const effect = "machines boot by them as before until the whole source can be read";
    return [`source: ${what} not found, but may be where it cannot be read (${shown(names)}): ${effect}`];
  }
}

function shown(names: readonly ObjectName[]): string {
  const first = names.slice(0, shownNames).map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`);
  const more = names.length - first.length;
  return `${first.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/**
 * Makes machines wait if an unreadable Group may name them.
 *
 * - If the selector of a refused Group cannot be read whole, it may name any machine. So in that Group's namespace, a
 *   machine waits instead of installing, unless its own Group names machines by an identity label.
 * - A lost namespace may hold a Group for any machine. So in every namespace, a machine waits instead of installing,
 *   with the same exception.
 * - All machines of a Group in a lost namespace wait, because the Group may have changed.
 */
export class HiddenMachines {
  readonly #source: ViewedSource;
  /** Refused Groups whose selectors cannot be read whole, by namespace and then by key. */
  readonly #hidden = new Map<string, Map<string, ObjectName>>();
  #unheard = "";

  constructor(source: ViewedSource) {
    this.#source = source;
  }

  /**
   * Records whether the view refuses this Group with a selector that cannot be read whole.
   * @returns true if the namespace got its first such Group, or lost its last one: then all Groups of the namespace
   *   need new marks.
   */
  note(name: ObjectName): boolean {
    const { namespace } = name;
    const names = this.#hidden.get(namespace) ?? new Map<string, ObjectName>();
    const before = names.size;
    if (this.#source.view.refusalOf(name)?.hidesMachines === true) names.set(objectKey(name), name);
    else names.delete(objectKey(name));
    if (names.size === 0) this.#hidden.delete(namespace);
    else this.#hidden.set(namespace, names);
    return (before === 0) !== (names.size === 0);
  }

  /** True if the set of lost namespaces has changed since the last call: then every Group needs new marks. */
  takeUnheard(): boolean {
    const before = this.#unheard;
    this.#unheard = [...this.#source.view.unheard].toSorted().join();
    return this.#unheard !== before;
  }

  /**
   * Returns a Group's document with its marks: `unheard` in a lost namespace, and `doubted` if an unreadable Group may
   * name its machines.
   */
  mark(document: GroupDocument, namespace: string, group: Group): GroupDocument {
    const { unheard } = this.#source.view;
    const isHidden = this.#hidden.has(namespace) || unheard.size > 0;
    const doubted = isHidden && !namesMachine(group) ? { doubted: true as const } : {};
    return { ...document, ...doubted, ...(unheard.has(namespace) && { unheard: true }) };
  }

  /** For a person, one line for each namespace: which machines wait, and which Groups are the cause. */
  get attention(): readonly string[] {
    return [...this.#hidden].map(([namespace, names]) => {
      const [first] = names.values();
      const others = names.size === 1 ? "" : ` (and of ${names.size - 1} more)`;
      const who = `the selector of Group ${namespace}/${first?.name ?? ""}${others} cannot be read`;
      const effect = "machines that no Group names wait instead of an Install until it is corrected";
      return `namespace "${namespace}": ${who}: ${effect}`;
    });
  }
}
