/**
 * Makes machines wait if an unreadable Group may name them.
 *
 * - If the selector of a refused Group cannot be read whole, it may name any machine. So in that Group's namespace, a
 *   machine waits instead of installing, unless its own Group names machines by an identity label.
 * - A lost namespace may hold a Group for any machine. So in every namespace, a machine waits instead of installing,
 *   with the same exception.
 * - All machines of a Group in a lost namespace wait, because the Group may have changed.
 */

import type { GroupDocument } from "../model/objects/documents.ts";
import type { Group } from "../model/objects/group.ts";
import { type ObjectName, objectKey, type SourceView } from "../model/objects/source.ts";
import { namesMachine } from "../model/selection/specificity.ts";

/** Holds the source, not its view: the source replaces its view when it starts. */
interface RefusingSource {
  readonly view: Pick<SourceView, "refusalOf" | "unheard">;
}

export class HiddenMachines {
  readonly #source: RefusingSource;
  /** Refused Groups whose selectors cannot be read whole, by namespace and then by key. */
  readonly #hidden = new Map<string, Map<string, ObjectName>>();
  #unheard = "";

  constructor(source: RefusingSource) {
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
