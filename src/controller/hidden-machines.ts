/**
 * Machines that may have unreadable Groups. If the selector of a refused Group cannot be read whole, it may name any
 * machine of its namespace. A lost namespace may hold a Group of any machine. So an Install from a Group that names no
 * machine waits. The machines of a lost namespace always wait, because their Groups may have changed.
 */

import type { GroupDocument } from "../model/documents.ts";
import type { Group } from "../model/group.ts";
import { type ObjectName, objectKey, type SourceView } from "../model/source.ts";
import { namesMachine } from "../model/specificity.ts";

/** The source replaces its view when it starts. */
interface RefusingSource {
  readonly view: Pick<SourceView, "refusalOf" | "unheard">;
}

export class HiddenMachines {
  readonly #source: RefusingSource;
  /** Names of such Groups, by namespace. */
  readonly #hidden = new Map<string, Map<string, ObjectName>>();
  #unheard = "";

  constructor(source: RefusingSource) {
    this.#source = source;
  }

  /**
   * Records what the view holds of a Group now. @returns true when the namespace got its first such Group, or lost its
   * last.
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

  /** True when the set of lost namespaces has changed since the last call: every Group must be marked anew. */
  takeUnheard(): boolean {
    const before = this.#unheard;
    this.#unheard = [...this.#source.view.unheard].toSorted().join();
    return this.#unheard !== before;
  }

  /** A Group's document, marked where its machines must wait or may be those of an unreadable Group. */
  mark(document: GroupDocument, namespace: string, group: Group): GroupDocument {
    const { unheard } = this.#source.view;
    const isHidden = this.#hidden.has(namespace) || unheard.size > 0;
    const doubted = isHidden && !namesMachine(group) ? { doubted: true as const } : {};
    return { ...document, ...doubted, ...(unheard.has(namespace) && { unheard: true }) };
  }

  /** For a person: what waits and for which Groups, one line for each namespace. */
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
