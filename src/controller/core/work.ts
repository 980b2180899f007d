/** What the controller has to do. */

import type { ObjectName } from "../../model/objects/source.ts";

/** What to look at: one name, everything, tombstones to renew, or a view that has become half. */
export type Work = ObjectName | { readonly kind: "everything" | "tombstones" | "half" };

/** True for work on one object. */
export function isName(work: Work): work is ObjectName {
  return work.kind !== "everything" && work.kind !== "tombstones" && work.kind !== "half";
}
