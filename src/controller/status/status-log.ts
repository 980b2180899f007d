/**
 * Logs the status of objects: one line for each transition to or from Ready. It also lists the unready objects for the
 * operations listener. A finding of trials is logged once for all of its Groups.
 */

import type { Log } from "../../lib/log.ts";
import { compareBytes } from "../../lib/order.ts";
import {
  type Condition,
  heldReason,
  type ObjectName,
  type ObjectStatus,
  objectKey,
  type StatusSink,
} from "../../model/objects/source.ts";

/** An object that a person should look at, and why. */
interface Attention {
  readonly name: ObjectName;
  readonly reason: string;
  readonly message: string;
}

interface LoggedStatus {
  readonly name: ObjectName;
  /** The condition `Ready`, or the advice if the object is ready. */
  readonly shown: Condition;
}

export class StatusLog implements StatusSink {
  readonly #log: Log;
  readonly #logged = new Map<string, LoggedStatus>();
  readonly #rendered: RenderedLog;

  constructor({ log }: { readonly log: Log }) {
    this.#log = log;
    this.#rendered = new RenderedLog({ log });
  }

  write(name: ObjectName, { conditions }: ObjectStatus): Promise<void> {
    const rendered = conditions.find(({ type }) => type === "Rendered");
    if (rendered !== undefined) this.#rendered.write(name, rendered);
    const ready = conditions.find(({ type }) => type === "Ready");
    if (ready === undefined) return Promise.resolve();
    const advice = ready.status === "True" ? conditions.find(isAdvice) : undefined;
    const shown = advice ?? ready;
    const key = objectKey(name);
    const before = this.#logged.get(key)?.shown;
    this.#logged.set(key, { name, shown });
    if (before === undefined || !isSame(before, shown)) this.#logChange(name, shown, before);
    return Promise.resolve();
  }

  forget(name: ObjectName): void {
    this.#logged.delete(objectKey(name));
    this.#rendered.forget(name);
  }

  /**
   * Lists unready objects that are not held, and objects with advice, sorted by kind, namespace and name. The findings
   * of trials follow.
   */
  attention(): readonly Attention[] {
    const found = this.#rendered.found().map(({ name, condition: { reason, message }, otherCount }) => {
      const others = otherCount === 0 ? "" : ` (so it is with ${otherCount} other Groups)`;
      return { name, reason, message: message + others };
    });
    const logged = [...this.#logged]
      .filter(([, { shown }]) => (shown.status !== "True" && shown.reason !== heldReason) || isAdvice(shown))
      .toSorted(([a], [b]) => compareBytes(a, b))
      .map(([, { name, shown }]) => ({ name, reason: shown.reason, message: shown.message }));
    return [...logged, ...found];
  }

  /** Logs a transition. A first status that is ready is only a debug line: 10,000 of them would hide the rest. */
  #logChange({ kind, namespace, name }: ObjectName, { status, reason, message }: Condition, before?: Condition): void {
    const data = { kind, namespace, name, reason, message };
    if (reason === heldReason) this.#log.info(data, "object is held");
    else if (status !== "True") this.#log.warn(data, "object is not ready");
    else if (reason === adviceReason) this.#log.info(data, "object is ready, with advice");
    else if (before === undefined) this.#log.debug(data, "object is ready");
    else if (before.status !== "True") this.#log.info(data, "object is ready");
  }
}

const adviceReason = "ValidWithAdvice";

function isAdvice({ reason }: Condition): boolean {
  return reason === adviceReason;
}

function isSame(a: Condition, b: Condition): boolean {
  return a.status === b.status && a.reason === b.reason && a.message === b.message;
}

interface Found {
  readonly condition: Condition;
  readonly groups: Map<string, ObjectName>;
}

/** A finding, and one of its Groups. */
interface FoundForGroups {
  readonly name: ObjectName;
  readonly condition: Condition;
  /** How many other Groups have the finding, too. */
  readonly otherCount: number;
}

/**
 * Logs what trials found: one line when a finding first appears, and one when no Group has it any more. A mistake in a
 * Profile is the same finding for each of its Groups, and thousands of lines would add nothing.
 */
class RenderedLog {
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
