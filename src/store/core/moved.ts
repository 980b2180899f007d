/**
 * The mark that a moved store leaves in its former place. The records there are whole, but no davit may go on from
 * them by accident: clients would write to two stores with the same cluster id.
 */

import { WalError } from "./log-port.ts";

/** The name of the mark, in a directory or below a prefix. */
export const movedName = "moved";

/** The error of a start on a marked place. @param to where the store is now. @param mark what to remove, for people. */
export function movedAway(place: string, to: string, mark: string): WalError {
  const advice = `start davit on that one; to go on with this copy instead, remove ${mark}`;
  return new WalError("unusable", `Opening ${place}: davit migrate-store moved its store to ${to}: ${advice}`);
}
