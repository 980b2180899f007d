/**
 * What a Group wants of a machine's labels, one by one, and what a machine has instead: for people who ask why a Group
 * does not match. Selection itself has no use for it.
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
  /** The one value that will do; undefined where others do, too. */
  readonly value?: string;
  /** False for one that says no value of its label, but that it is there, say, or what it looks like. */
  readonly namesValue: boolean;
  /** True for a label of this value; undefined where a machine has no such label. */
  readonly accepts: (value: string | undefined) => boolean;
}

/** Everything that a Group wants; nothing of a catch-all. A machine that has all of it is matched. */
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
