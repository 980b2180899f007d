/**
 * Lists what a Group wants of a machine's labels, and what the machine has instead, for people who ask why a Group does
 * not match. Selection does not use it.
 */

import { shown } from "../lib/visible.ts";
import { expressionText } from "./expression.ts";
import { labelText, type Selection } from "./group.ts";
import type { Labels } from "./labels.ts";

/** One thing that a selector wants. */
export interface Want {
  readonly label: string;
  /** As a person reads it: `zone=a`. */
  readonly text: string;
  /** The only accepted value; undefined if others are accepted, too. */
  readonly value?: string;
  /** False for a want without a value, such as presence or a pattern. */
  readonly namesValue: boolean;
  /** True for a label of this value; undefined if a machine has no such label. */
  readonly accepts: (value: string | undefined) => boolean;
}

/** Everything that a Group wants; nothing for a catch-all. A machine that has all of it matches. */
export function wantsOf({ selector, expressions }: Selection): readonly Want[] {
  const labels = Object.entries(selector).map(
    ([label, value]): Want => ({
      label,
      text: labelText(label, value),
      value,
      namesValue: true,
      accepts: (found) => found === value,
    }),
  );
  const others = expressions.map((expression): Want => {
    const { key, operator, accepts } = expression;
    return { label: key, text: expressionText(expression), namesValue: operator === "In", accepts };
  });
  return [...labels, ...others];
}

/** `wants zone=a, request has zone=b`; long values are cut, and nothing of it ends a line or moves a cursor. */
export function missText({ label, text }: Want, labels: Labels): string {
  return `wants ${shown(text)}, ${hasText(label, labels.get(label))}`;
}

function hasText(label: string, value: string | undefined): string {
  if (value === undefined) return `request has no ${shown(label)}`;
  return value === "" ? `request has an empty ${shown(label)}` : `request has ${shown(labelText(label, value))}`;
}
