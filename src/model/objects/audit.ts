/**
 * The ports of the audit log: who changed what machines get. `audit/` implements them. A call never waits and never
 * fails: an audit log that cannot be written delays no machine.
 */

import type { ObjectWriter } from "./source.ts";

/** A document of an object that the store has just taken. */
export interface DocumentEdit {
  readonly path: string;
  /** The stored text before; undefined for a new document. */
  readonly before: string | undefined;
  /** Undefined for a removed document. */
  readonly after: string | undefined;
  /** Who wrote this version of the object; undefined if the source does not know it. */
  readonly writer: ObjectWriter | undefined;
}

export interface EditAudit {
  /**
   * Takes the edits of one step of the controller.
   * @param textAt returns the text of a stored document now.
   */
  edited(edits: readonly DocumentEdit[], textAt: (path: string) => string | undefined): void;
}

/** What an operator did through davit. */
export interface OperatorAction {
  /** Such as `approve`, `hold`, `adopt` or `forget`. */
  readonly action: string;
  /** `console` or `operations`: the listener's API. */
  readonly via: "console" | "operations";
  /** The operator's name as davit or the API server knows it; undefined for a token of the operations listener. */
  readonly by?: string;
  /** The subject and the result, such as `machine` or `group`. */
  readonly done: object;
}

export interface ActionAudit {
  acted(action: OperatorAction): void;
}
