/**
 * The condition `Stalled` shows kstatus (Flux, `helm --wait`) that waiting does not make an object ready. It is true or
 * absent: kstatus reads it as a failure, and an unready object without it as in progress. Pure.
 */

import type { ObjectStatus } from "../../model/source.ts";

/** Reasons that end by themselves or with another object, or that are intended. Any other reason needs a person. */
const passing: ReadonlySet<string> = new Set([
  ...["ProfileNotFound", "ProfileOutdated", "TemplateNotFound"],
  ...["StoreUnavailable", "InternalError"],
  "Held",
]);

/** The status to show: with `Stalled` where only a person can make the object ready. */
export function withStalled(status: ObjectStatus): ObjectStatus {
  const ready = status.conditions.find(({ type }) => type === "Ready");
  if (ready?.status !== "False" || passing.has(ready.reason)) return status;
  return { ...status, conditions: [...status.conditions, { ...ready, type: "Stalled", status: "True" }] };
}
