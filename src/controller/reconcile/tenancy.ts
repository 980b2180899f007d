/**
 * What a Group may do, by its namespace. Where one davit reads several namespaces, an author in one of them must not
 * take the machines of all others. So `matchAll`, a selector that nearly every machine may meet, and a priority count
 * in the admin namespace alone. Pure.
 */

import { type GroupSpec, isBroad } from "../../model/group.ts";
import type { Finding } from "../status/conditions.ts";

/** The parts of a Group that count. */
export interface Permitted {
  /** Undefined for a Group that answers no machine. */
  readonly spec: GroupSpec | undefined;
  readonly findings: readonly Finding[];
}

/** @param adminNamespace undefined where every namespace may do everything. */
export function permitted(spec: GroupSpec, namespace: string, adminNamespace: string | undefined): Permitted {
  if (adminNamespace === undefined || namespace === adminNamespace) return { spec, findings: [] };
  if (spec.matchAll) {
    const message = `matchAll counts in namespace "${adminNamespace}" only: no machine gets this Group`;
    return { spec: undefined, findings: [notPermitted(message, "spec.matchAll")] };
  }
  if (isBroad(spec)) {
    const effect = `counts in namespace "${adminNamespace}" only: no machine gets this Group`;
    const message = `a selector that nearly every machine may meet ${effect}; ${cure}`;
    return { spec: undefined, findings: [notPermitted(message, "spec.selector")] };
  }
  if (spec.priority === 0) return { spec, findings: [] };
  const message = `priority counts in namespace "${adminNamespace}" only: this Group is taken as one of priority 0`;
  return { spec: { ...spec, priority: 0 }, findings: [notPermitted(message, "spec.priority")] };
}

const cure = "ask for a value, or write patterns of 6 digits (mac), 8 (uuid), or 3 letters and digits (other labels)";

function notPermitted(message: string, field: string): Finding {
  return { type: "Accepted", reason: "NotPermitted", message, code: "not-permitted", place: { field } };
}
