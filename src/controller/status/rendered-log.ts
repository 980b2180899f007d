/**
 * Logs what trials found: one line when a finding first appears, and one when no Group has it any more. A mistake in a
 * Profile is the same finding for each of its Groups, and thousands of lines would add nothing.
 */

import type { Log } from "../../lib/log.ts";
import { compareBytes } from "../../lib/order.ts";
import { type Condition, type ObjectName, objectKey } from "../../model/objects/source.ts";

interface Found {
  readonly condition: Condition;
  readonly groups: Map<string, ObjectName>;
}

/** A finding, and one of its Groups. */
export interface FoundForGroups {
  readonly name: ObjectName;
  readonly condition: Condition;
  /** How many other Groups have the finding, too. */
  readonly otherCount: number;
}

export class RenderedLog {
  readonly #log: Log;
  /** By namespace, reason and message. */
  readonly #found = new Map<string, Found>();
  /** From each Group to the key of its finding. */
  readonly #byGroup = new Map<string, string>();

  constructor({ log }: { readonly log: Log }) {
    this.#log = log;
  }

  /** Records a Group's newest condition `Rendered`. */
  write(name: ObjectName, condition: Condition): void {
    const group = objectKey(name);
    const key = isFinding(condition) ? `${name.namespace} ${condition.reason} ${condition.message}` : undefined;
    const before = this.#byGroup.get(group);
    if (before === key) return;
    if (key !== undefined) this.#add(key, { group, name, condition });
    if (before !== undefined) this.#leave(before, group);
    if (key === undefined) this.#byGroup.delete(group);
    else this.#byGroup.set(group, key);
  }

  forget(name: ObjectName): void {
    const group = objectKey(name);
    const before = this.#byGroup.get(group);
    if (before !== undefined) this.#leave(before, group);
    this.#byGroup.delete(group);
  }

  /** All current findings, sorted by namespace, reason and message. */
  found(): readonly FoundForGroups[] {
    const sorted = [...this.#found].toSorted(([a], [b]) => compareBytes(a, b));
    return sorted.flatMap(([, { condition, groups }]) => {
      const [first] = [...groups].toSorted(([a], [b]) => compareBytes(a, b));
      return first === undefined ? [] : [{ name: first[1], condition, otherCount: groups.size - 1 }];
    });
  }

  #add(
    key: string,
    { group, name, condition }: { readonly group: string; readonly name: ObjectName; readonly condition: Condition },
  ): void {
    const known = this.#found.get(key);
    if (known !== undefined) {
      known.groups.set(group, name);
      return;
    }
    this.#found.set(key, { condition, groups: new Map([[group, name]]) });
    const data = dataOf(name, condition);
    if (condition.status === "True") this.#log.info(data, "a trial rendering has advice");
    else this.#log.warn(data, "a trial rendering failed");
  }

  #leave(key: string, group: string): void {
    const found = this.#found.get(key);
    const name = found?.groups.get(group);
    if (found === undefined || name === undefined) return;
    found.groups.delete(group);
    if (found.groups.size > 0) return;
    this.#found.delete(key);
    this.#log.info(dataOf(name, found.condition), "a trial rendering no longer finds this");
  }
}

function isFinding({ status, reason }: Condition): boolean {
  return status === "False" || (status === "True" && reason !== "Rendered");
}

function dataOf({ kind, namespace, name }: ObjectName, { reason, message }: Condition): Record<string, string> {
  return { kind, namespace, name, reason, message };
}
