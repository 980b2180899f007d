/** Compares the wanted status with the shown one, and returns the one to write, if any. Pure. */

import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../model/json.ts";
import type { Condition, MachineStatus, ObjectStatus } from "../../../model/objects/source.ts";

/** A metav1.Condition, with the time and generation that the model leaves to the writer. */
type ShownCondition = Condition & { readonly observedGeneration: number; readonly lastTransitionTime: string };

/** The fields of a Machine's status are next to the conditions. */
export interface NextStatus extends Omit<ObjectStatus, "uid" | "machine">, Partial<MachineStatus> {
  readonly conditions: readonly ShownCondition[];
}

/**
 * Returns the status to write; undefined when the shown status is equal. A condition keeps its time while its status
 * does not change (Kubernetes API conventions, "Typical status properties").
 * @param now RFC 3339, in whole seconds.
 */
export function nextStatus(
  { machine, ...wanted }: Omit<ObjectStatus, "uid">,
  shown: JsonObject,
  now: string,
): NextStatus | undefined {
  const before = shownConditions(shown);
  const conditions = wanted.conditions.map((condition): ShownCondition => {
    const known = before.get(condition.type);
    const since = known?.status === condition.status ? known.lastTransitionTime : undefined;
    const lastTransitionTime = typeof since === "string" ? since : now;
    return { ...condition, observedGeneration: wanted.observedGeneration, lastTransitionTime };
  });
  const next = { ...wanted, ...machine, conditions };
  return isShown(next, shown, before) ? undefined : next;
}

/** A condition before and after a change of the status. */
interface ConditionChange {
  /** Undefined for an object without a status. */
  readonly before: JsonObject | undefined;
  readonly after: ShownCondition;
}

/** Returns the conditions whose change may be an event: `Ready`, and claims and ends of a Machine's install. */
export function eventfulChanges(shown: JsonObject, { conditions }: NextStatus): readonly ConditionChange[] {
  const known = shownConditions(shown);
  return conditions.flatMap((after) => {
    const before = known.get(after.type);
    const isEventful = after.type === "Ready" || (after.type === "Installed" && isInstallNews(before, after));
    return isEventful ? [{ before, after }] : [];
  });
}

function isInstallNews(before: JsonObject | undefined, { reason }: Condition): boolean {
  if (reason === "NeverInstalled" || before?.reason === reason) return false;
  // After the claim, the beginning of the install is no news.
  return reason !== "Installing" || before?.reason !== "Claimed";
}

function shownConditions({ conditions }: JsonObject): ReadonlyMap<JsonValue | undefined, JsonObject> {
  const list: readonly JsonValue[] = Array.isArray(conditions) ? conditions : [];
  return new Map(list.filter(isJsonObject).map((condition) => [condition.type, condition]));
}

/** True when all wanted conditions and all other fields are shown. Conditions of other writers do not count. */
function isShown(
  { conditions, ...fields }: NextStatus,
  { conditions: _, ...shownFields }: JsonObject,
  before: ReadonlyMap<JsonValue | undefined, JsonObject>,
): boolean {
  const areSame = conditions.every((condition) =>
    isDeepStrictEqual({ ...condition }, { ...before.get(condition.type) }),
  );
  return areSame && isDeepStrictEqual({ ...fields }, { ...shownFields });
}
