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
import { RenderedLog } from "./rendered-log.ts";

/** An object that a person should look at, and why. */
export interface Attention {
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
