/**
 * Holds back deletions. An object that the source no longer shows stays in effect while an unreadable part of the
 * source may hold it.
 */

import type { Log } from "../lib/log.ts";
import type { GroupDocument } from "../model/objects/documents.ts";
import { type ObjectName, objectKey, type SourceView } from "../model/objects/source.ts";

// A message names this many objects and counts the others.
const shownNames = 3;

/** Holds the source, not its view: the source replaces its view when it starts. */
interface WatchedSource {
  readonly view: Pick<SourceView, "isGone" | "isLeaving" | "withheld">;
}

export class Withheld {
  readonly #source: WatchedSource;
  /** Stored objects that the source does not show, but that may still exist. */
  readonly #stored = new Map<string, ObjectName>();
  #wasLogged = false;

  constructor(source: WatchedSource) {
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
