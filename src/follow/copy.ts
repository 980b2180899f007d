/**
 * The copy of the store's documents that a follower serves. `FollowedCopy` takes the protocol's lines and returns what
 * they change, a whole step at a time. Pure: it reads no clock and no socket.
 *
 * One rule overrides the protocol: a follower never replaces its copy by one with less information. A copy has most
 * information after a complete sync, less after an incomplete one, and least before any sync. A store may begin empty,
 * or lose the document of its sync. Then the follower reads the store into a second copy. It serves the first copy
 * until the second one has as much information.
 */

import { unreachable } from "../lib/errors.ts";
import type { DocumentChange } from "../model/feed.ts";
import type { FollowLine, FollowPlace } from "../model/follow-line.ts";
import { decodeSynced, syncedPath } from "../model/objects/documents.ts";
import { FollowError } from "./follow-error.ts";

/** Documents at one place in the history of one store. */
export interface Copy extends FollowPlace {
  readonly cluster: string;
  readonly documents: ReadonlyMap<string, string>;
}

/** The effect of a line on the served copy. */
export type LineEffect =
  | { readonly kind: "none" }
  /** The served copy equals the store's present state. */
  | { readonly kind: "current" }
  /** Like `current`, and a step changed the copy. */
  | { readonly kind: "changed"; readonly changes: readonly DocumentChange[] }
  /** Like `current`, but a different copy is served now. */
  | { readonly kind: "replaced" }
  /** The store has less information than the served copy. The copy stays unchanged, and may be outdated. */
  | { readonly kind: "withheld" };

interface HeldBack {
  readonly cluster: string;
  index: number;
  run?: string | undefined;
  readonly documents: Map<string, string>;
}

const nothing: LineEffect = { kind: "none" };

export class FollowedCopy {
  #served: HeldBack | undefined;
  /** The second copy: the store's documents, while they have less information than the served ones. */
  #aside: HeldBack | undefined;
  /** The documents of an unfinished dump. */
  #dump: HeldBack | undefined;
  /** The changes of an unfinished step: the last one for each path. */
  #pending = new Map<string, string | undefined>();
  #isGreeted = false;

  /** @param served the copy on disk, which an earlier process saved. */
  constructor(served?: Copy) {
    if (served !== undefined) this.#served = { ...served, documents: new Map(served.documents) };
  }

  /** The served copy; undefined before the first one. */
  get served(): Copy | undefined {
    return this.#served;
  }

  /** True while the store has less information than the served copy. */
  get isWithheld(): boolean {
    return this.#aside !== undefined;
  }

  /** The place in the history after which the store should continue. */
  get place(): Omit<Copy, "documents"> | undefined {
    return this.#aside ?? this.#served;
  }

  /** Begins a connection: drops unfinished parts of the last connection. */
  begin(): void {
    this.#dump = undefined;
    this.#pending = new Map();
    this.#isGreeted = false;
  }

  /**
   * Takes a line and returns its effect.
   * @throws {FollowError} protocol, for a line that may not come now.
   */
  take(line: FollowLine): LineEffect {
    const isGreeting = line.kind === "dump" || line.kind === "resume";
    if (isGreeting === this.#isGreeted) throw new FollowError("protocol", `an unexpected ${line.kind}`);
    switch (line.kind) {
      case "dump":
        this.#isGreeted = true;
        this.#dump = { cluster: line.cluster, index: 0, documents: new Map() };
        return nothing;
      case "resume":
        this.#isGreeted = true;
        if (line.cluster !== this.place?.cluster) throw new FollowError("protocol", "a resume of another cluster");
        return nothing;
      case "put":
        this.#put(line.path, line.text);
        return nothing;
      case "delete":
        this.#put(line.path, undefined);
        return nothing;
      case "commit":
        return this.#dump === undefined ? this.#commitStep(line) : this.#commitDump(this.#dump, line);
      case "heartbeat":
        return this.#heartbeat(line);
      default:
        return unreachable(line);
    }
  }

  #put(path: string, text: string | undefined): void {
    if (this.#dump === undefined) this.#pending.set(path, text);
    else if (text !== undefined) this.#dump.documents.set(path, text);
    else throw new FollowError("protocol", "a delete in a dump");
  }

  #commitDump(dump: HeldBack, place: FollowPlace): LineEffect {
    this.#dump = undefined;
    goTo(dump, place);
    return this.#serve(dump);
  }

  #commitStep(place: FollowPlace): LineEffect {
    const changes = [...this.#pending].map(([path, text]) => ({ path, text }));
    this.#pending = new Map();
    const held = this.#aside ?? this.#served;
    if (held === undefined || place.index < held.index) throw new FollowError("protocol", "a step into the past");
    const synced = changes.findLast(({ path }) => path === syncedPath);
    if (held === this.#served && synced !== undefined && knowledgeOf(synced.text) < knowledgeIn(held)) {
      // From now on, a second copy follows the store.
      return this.#serve(changed({ ...held, documents: new Map(held.documents) }, changes, place));
    }
    changed(held, changes, place);
    return held === this.#served ? { kind: "changed", changes } : this.#serve(held);
  }

  #heartbeat(place: FollowPlace): LineEffect {
    const held = this.#aside ?? this.#served;
    if (this.#dump !== undefined || this.#pending.size > 0 || held === undefined || place.index < held.index) {
      throw new FollowError("protocol", "an untimely heartbeat");
    }
    goTo(held, place);
    return { kind: this.#aside === undefined ? "current" : "withheld" };
  }

  /** Serves a copy, or keeps it as the second copy if it has less information. */
  #serve(held: HeldBack): LineEffect {
    if (this.#served !== undefined && knowledgeIn(held) < knowledgeIn(this.#served)) {
      this.#aside = held;
      return { kind: "withheld" };
    }
    this.#aside = undefined;
    this.#served = held;
    return { kind: "replaced" };
  }
}

/** True if machines may be answered from a copy. */
export function isSynced({ documents }: Pick<Copy, "documents">): boolean {
  return documents.has(syncedPath);
}

function knowledgeIn({ documents }: Pick<Copy, "documents">): number {
  return knowledgeOf(documents.get(syncedPath));
}

/**
 * How much information a copy has: 0 before any finished sync, 1 after an incomplete sync, 2 after a complete one.
 * @param synced the text at `syncedPath`.
 */
function knowledgeOf(synced: string | undefined): number {
  if (synced === undefined) return 0;
  return decodeSynced(synced)?.complete === true ? 2 : 1;
}

function changed(held: HeldBack, changes: readonly DocumentChange[], place: FollowPlace): HeldBack {
  for (const { path, text } of changes) {
    if (text === undefined) held.documents.delete(path);
    else held.documents.set(path, text);
  }
  goTo(held, place);
  return held;
}

function goTo(held: HeldBack, { index, run }: FollowPlace): void {
  held.index = index;
  held.run = run;
}
