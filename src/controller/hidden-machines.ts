/**
 * Groups that are refused and whose selectors cannot be read whole. Nobody knows every machine that they name, so each
 * machine of their namespace that no Group names could be one of theirs: an Install that only a Group of many gives it
 * waits until the selector is mended.
 */

import type { GroupDocument } from "../model/documents.ts";
import type { Group } from "../model/group.ts";
import { type ObjectName, objectKey, type SourceView } from "../model/source.ts";
import { namesMachine } from "../model/specificity.ts";

/** Its view is another one once it is started. */
interface RefusingSource {
  readonly view: Pick<SourceView, "refusalOf">;
}

export class HiddenMachines {
  readonly #source: RefusingSource;
  /** Names of such Groups, by namespace. */
  readonly #hidden = new Map<string, Map<string, ObjectName>>();

  constructor(source: RefusingSource) {
    this.#source = source;
  }

  /** Takes in what the view says of a Group now. @returns true when the first of its namespace came, or the last went. */
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

  /** A Group's document, marked where its machines may be those of a hidden selector. */
  mark(document: GroupDocument, namespace: string, group: Group): GroupDocument {
    return this.#hidden.has(namespace) && !namesMachine(group) ? { ...document, doubted: true } : document;
  }

  /** For a person: what waits, and for which Groups; a line for each namespace. */
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
