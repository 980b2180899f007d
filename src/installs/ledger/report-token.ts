/**
 * The token in the URL at which a machine reports. It is stateless: a key of the ledger makes it from the entry and the
 * grant that the entry has spent last. So it is valid until the next install, and the same after a restart.
 */

import { createHmac, timingSafeEqual } from "node:crypto";
import { claimTokenOf } from "../../lib/claim-token.ts";
import type { LedgerEntry } from "../../model/permits/permit.ts";

const idBytes = 8;
const proofBytes = 16;
// 24 bytes as base64url.
const tokenForm = /^[\w-]{32}$/;

/** What tokens are made with. */
export interface TokenKey {
  readonly ledgerId: string;
  /** 64 hexadecimal digits. */
  readonly secret: string;
}

/** Returns the token of an entry's install: 32 characters. */
export function reportTokenOf(key: TokenKey, entry: Pick<LedgerEntry, "id" | "grant">): string {
  return Buffer.concat([Buffer.from(entry.id, "hex"), proofOf(key, entry)]).toString("base64url");
}

/** Returns the id of the entry that a token names; undefined for a text that is no token. */
export function entryIdOf(token: string): string | undefined {
  return tokenForm.test(token) ? Buffer.from(token, "base64url").subarray(0, idBytes).toString("hex") : undefined;
}

/**
 * True if the token's proof is that of the entry's present install. Look up the entry by `entryIdOf` first: the id in
 * the token is not compared. The time of the comparison does not depend on the token.
 */
export function isTokenOf(key: TokenKey, entry: Pick<LedgerEntry, "id" | "grant">, token: string): boolean {
  if (entry.grant === undefined || !tokenForm.test(token)) return false;
  return timingSafeEqual(Buffer.from(token, "base64url").subarray(idBytes), proofOf(key, entry));
}

/** As `isTokenOf`, for a claim token, with which a machine can report only that the install begins. */
export function isClaimTokenOf(key: TokenKey, entry: Pick<LedgerEntry, "id" | "grant">, token: string): boolean {
  if (entry.grant === undefined || !tokenForm.test(token)) return false;
  return timingSafeEqual(Buffer.from(token), Buffer.from(claimTokenOf(reportTokenOf(key, entry))));
}

function proofOf({ ledgerId, secret }: TokenKey, { id, grant }: Pick<LedgerEntry, "id" | "grant">): Buffer {
  const text = [ledgerId, id, grant?.key ?? "", grant?.generation ?? 0].join("|");
  return createHmac("sha256", Buffer.from(secret, "hex")).update(text).digest().subarray(0, proofBytes);
}
