/**
 * Adds the claim to a Group's document. The claim comes from the Group's stored document. A new Group inherits the
 * claim of a Group of its namespace with the same selector, present or just removed. Without such a Group, it claims
 * its machines now.
 */

import type { GroupDocument } from "../model/objects/documents.ts";
import { type GroupSpec, selectorText } from "../model/objects/group.ts";
import type { ObjectName } from "../model/objects/source.ts";
import type { ControllerOptions } from "./controller-options.ts";
import type { Documents } from "./core/documents.ts";
import { type Claim, claimOf, withClaim } from "./ranking/claims.ts";
import type { Ranking } from "./ranking/ranking.ts";
import { claimLeft } from "./tombstones/tombstones.ts";

export interface ClaimsAround extends Pick<ControllerOptions, "sha256" | "adminNamespace"> {
  /** The stored documents. */
  readonly documents: Pick<Documents, "claimIndex" | "textAt">;
  readonly ranking: Pick<Ranking, "claimIn">;
}

/**
 * Returns a Group's document with its claim. Call it before `Ranking.update`, because the ranking reads the claim.
 * @param stored the Group's stored document.
 */
export function claimed(
  id: ObjectName,
  document: GroupDocument | undefined,
  stored: GroupDocument | undefined,
  around: ClaimsAround,
): GroupDocument | undefined {
  if (document === undefined) return undefined;
  const { adminNamespace, documents } = around;
  const { spec } = document;
  const tenant = adminNamespace !== undefined && id.namespace !== adminNamespace && { tenant: true as const };
  const inherited = stored === undefined ? inheritedClaim(id, spec, around) : undefined;
  return withClaim(document, { ...(inherited ?? claimOf(stored, spec, documents.claimIndex)), ...tenant });
}

/**
 * The claim that a new Group inherits. Undefined if no other Group of its namespace has this selector, or just had it.
 */
function inheritedClaim(
  { namespace, name }: ObjectName,
  spec: GroupSpec,
  { documents, sha256, adminNamespace, ranking }: ClaimsAround,
): Claim | undefined {
  const known = ranking.claimIn(namespace, selectorText(spec.selector, spec.expressions));
  if (known !== undefined) return known;
  const textAt = (path: string) => documents.textAt(path);
  const claimedAt = claimLeft(`${namespace}/${name}`, spec, { sha256, adminNamespace, textAt });
  return claimedAt === undefined ? undefined : { claimedAt };
}
