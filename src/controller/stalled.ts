/**
 * The condition `Stalled`, by which kstatus (Flux, `helm --wait`) knows an object that waiting does not make ready. It is
 * true or absent: kstatus takes it for a failure, and an object without it that is not ready for one in progress. Pure.
 */

import type { ObjectStatus } from "../model/source.ts";

/** What passes by itself, or when another object comes, or is meant. Every other reason is for a person. */
const passing: ReadonlySet<string> = new Set([
  ...["ProfileNotFound", "TemplateNotFound"],
  ...["StoreUnavailable", "InternalError"],
  "Held",
]);

/** The status as it is shown: with `Stalled` where only a person can make the object ready. */
export function withStalled(status: ObjectStatus): ObjectStatus {
  const ready = status.conditions.find(({ type }) => type === "Ready");
  if (ready?.status !== "False" || passing.has(ready.reason)) return status;
  return { ...status, conditions: [...status.conditions, { ...ready, type: "Stalled", status: "True" }] };
}
