/**
 * The copy of the store's documents that a follower serves. It takes the protocol's lines and returns what they change,
 * a whole step at a time. Pure: it knows no sockets and no time.
 *
 * One rule precedes the protocol: a follower never replaces its copy by one with less information. A copy has most if a
 * complete sync made it, and least if no sync has finished. If a store began anew, or lost its sync, the follower reads
 * it into a second copy, and serves the old one until the second has as much information.
 */

import { unreachable } from "../lib/errors.ts";
import { decodeSynced, syncedPath } from "../model/documents.ts";
import type { DocumentChange } from "../model/feed.ts";
import type { FollowLine, FollowPlace } from "../model/follow-line.ts";
import { FollowError } from "./follow-error.ts";

/** Documents at one place in the history of one store. */
export interface Copy extends FollowPlace {
  readonly cluster: string;
  readonly documents: ReadonlyMap<string, string>;
}

/** The effect of a line on the served copy. */
export type LineEffect =
  | { readonly kind: "none" }
  /** The copy equals the store's state of now. */
  | { readonly kind: "current" }
  /** As `current`, after a step. */
  | { readonly kind: "changed"; readonly changes: readonly DocumentChange[] }
  /** As `current`, but it is a different copy. */
  | { readonly kind: "replaced" }
  /** The store has less information than the served copy, which stays unchanged although it may be outdated. */
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
  /** The store's documents, if they may not be served. */
  #aside: HeldBack | undefined;
  /** An unfinished dump. */
  #dump: HeldBack | undefined;
  /** Lines of an unfinished step; the last one for each path. */
  #pending = new Map<string, string | undefined>();
  #isGreeted = false;

  /** @param served the copy of an earlier run. */
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

  /** The place from which the store is asked to continue. */
  get place(): Omit<Copy, "documents"> | undefined {
    return this.#aside ?? this.#served;
  }

  /** Begins a connection: discards unfinished parts of the last one. */
  begin(): void {
    this.#dump = undefined;
    this.#pending = new Map();
    this.#isGreeted = false;
  }

  /**
   * Takes a line.
   * @throws {FollowError} protocol, for a line out of place.
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
      // From here on the second copy follows the store.
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

  /** Serves the store's documents, or holds them back. */
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

/** True for a copy from which machines may be answered. */
export function isSynced({ documents }: Pick<Copy, "documents">): boolean {
  return documents.has(syncedPath);
}

function knowledgeIn({ documents }: Pick<Copy, "documents">): number {
  return knowledgeOf(documents.get(syncedPath));
}

/** @param synced the text at `syncedPath`. @returns 0 without a finished sync, 1 without a complete one, else 2. */
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
