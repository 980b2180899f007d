/** Listings asked for as the key API asks, of a tree without a store. */

import { readPieces } from "../../src/http/keys/json.ts";
import { KeptTexts, type ListingPieces } from "../../src/http/keys/kept-texts.ts";
import { apply, type Command, type SingleCommand } from "../../src/store/command/command.ts";
import { type StorePath, storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { singlesOf } from "../helpers/any-command.ts";

export interface Query {
  readonly path: StorePath;
  readonly recursive: boolean;
  readonly sorted: boolean;
}

export const set = (path: string, value: string, ttlSeconds?: number): SingleCommand => ({
  kind: "set",
  path: storePath(path),
  value,
  ...(ttlSeconds !== undefined && { ttlSeconds }),
});
export const remove = (path: string): SingleCommand => ({ kind: "delete", path: storePath(path), recursive: true });
export const query = (path: string, recursive = true): Query => ({ path: storePath(path), recursive, sorted: false });

export function run(tree: Tree, command: Command, atMs = 0): void {
  try {
    apply(tree, { atMs, command });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
  }
}

export function treeOf(...commands: readonly Command[]): Tree {
  const tree = new Tree();
  for (const command of commands) run(tree, command);
  return tree;
}

/** A batch that is undone, whatever it did. */
export const undone = (command: Command): Command => ({
  kind: "batch",
  commands: [...singlesOf(command), remove("/never/there")],
});

/** Asks for listings as the key API does, and counts those that had to be written. */
export class Reader {
  readonly kept: KeptTexts;
  tree: Tree;
  made = 0;

  constructor(tree: Tree, kept = new KeptTexts()) {
    this.tree = tree;
    this.kept = kept;
  }

  begin(request: Query, nowMs = 0, pieceLength = 100): ListingPieces {
    const listing = this.tree.list(request.path, { ...request, nowMs });
    return this.kept.piecesOf({ request: { kind: "read", quorum: false, ...request }, headers: [], listing }, () => {
      this.made += 1;
      return readPieces(listing.steps(), pieceLength);
    });
  }

  /** The pieces of a listing, with `between` any two of them. */
  all(request: Query, nowMs = 0, between: () => void = () => {}): readonly string[] {
    const pieces = this.begin(request, nowMs);
    const texts: string[] = [];
    for (let piece = pieces.next(); ; piece = pieces.next()) {
      texts.push(piece.value.toString());
      if (piece.done === true) return texts;
      between();
    }
  }

  /** What `all` would be if nothing were kept. */
  fresh(request: Query, nowMs = 0): readonly string[] {
    return new Reader(this.tree).all(request, nowMs);
  }

  /** True when a listing is answered by what was kept. */
  keeps(request: Query, nowMs = 0): boolean {
    const { made } = this;
    this.all(request, nowMs);
    return this.made === made;
  }
}
