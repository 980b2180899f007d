/** Listings, gone through at a stretch. */

import { readPieces } from "../../src/http/keys/json.ts";
import type { StorePath } from "../../src/store/core/node.ts";
import type { Listing } from "../../src/store/tree/listing.ts";

/** The paths of all that is listed, a directory before what is in it. */
export function pathsOf(listing: Listing): readonly StorePath[] {
  const paths: StorePath[] = [];
  for (const step of listing.steps()) if (step !== undefined && step.kind !== "close") paths.push(step.node.path);
  listing.end();
  return paths;
}

/** The body that a read is answered with. @param between is called between any two steps. */
export function bodyOf(listing: Listing, between: () => void = () => {}): string {
  const pieces = readPieces(listing.steps(), 1);
  const texts: string[] = [];
  let piece = pieces.next();
  for (; piece.done !== true; piece = pieces.next()) {
    texts.push(piece.value);
    between();
  }
  listing.end();
  return texts.join("") + piece.value;
}
