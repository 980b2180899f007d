/** A finding of lint: a mistake or advice, with its place. */

import { compareBytes } from "../../lib/order.ts";
import { type FindingCode, type FindingSeverity, findingRules } from "../../model/objects/findings.ts";
import type { ObjectName } from "../../model/objects/source.ts";
import type { FilePlace } from "../load/object-places.ts";

export interface LintFinding extends FilePlace {
  readonly code: FindingCode;
  readonly severity: FindingSeverity;
  /** One sentence without its full stop; it quotes no text of a template or Secret. */
  readonly message: string;
}

/** Makes a finding. Its severity depends only on the code. */
export function findingAt(place: FilePlace, code: FindingCode, message: string): LintFinding {
  const { file, line, column } = place;
  return { file, line, column, severity: findingRules[code].severity, code, message };
}

/** Compares findings by place, then code, then message. The order is total, so equal manifests give equal output. */
export function compareFindings(a: LintFinding, b: LintFinding): number {
  return (
    compareBytes(a.file, b.file) ||
    a.line - b.line ||
    a.column - b.column ||
    compareBytes(a.code, b.code) ||
    compareBytes(a.message, b.message)
  );
}

/** Returns an object's name for messages: `Group default/web`. */
export function objectText({ kind, namespace, name }: ObjectName): string {
  return `${kind} ${namespace}/${name}`;
}
