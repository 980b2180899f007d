/**
 * Lists what a Group's selector wants of a machine's labels, and what the machine has instead. This is for people who
 * ask why a Group does not match: `SelectorIndex` selects without it.
 */

import { shown } from "../../lib/text/visible.ts";
import { expressionText } from "../labels/expression.ts";
import { type Labels, valuesOf } from "../labels/labels.ts";
import { labelText, meets, type Selection } from "../objects/group.ts";

/** One thing that a selector wants. */
export interface Want {
  readonly label: string;
  /** As a person reads it: `zone=a`. */
  readonly text: string;
  /** The only accepted value; undefined for an expression. */
  readonly value?: string;
  /** True for a label with a value, and for `In`. False for a want without values, such as presence or a pattern. */
  readonly namesValue: boolean;
  /** True if a label with this value meets the want. The value is undefined for a machine without the label. */
  readonly accepts: (value: string | undefined) => boolean;
  /** True for a machine with these labels that meets the want. */
  readonly isMet: (labels: Labels) => boolean;
}

/** Lists everything that a Group wants. A machine that meets all wants matches. Empty for `matchAll`. */
export function wantsOf({ selector, expressions }: Selection): readonly Want[] {
  const labels = Object.entries(selector).map(
    ([label, value]): Want => ({
      label,
      text: labelText(label, value),
      value,
      namesValue: true,
      accepts: (found) => found === value,
      isMet: (labels) => valuesOf(labels, label).includes(value),
    }),
  );
  const others = expressions.map((expression): Want => {
    const { key, operator, accepts } = expression;
    const isMet = (labels: Labels) => meets(expression, labels);
    return { label: key, text: expressionText(expression), namesValue: operator === "In", accepts, isMet };
  });
  return [...labels, ...others];
}

/** Returns a text such as `wants zone=a, request has zone=b`, safe for a log line or a terminal (`shown`). */
export function missText({ label, text }: Want, labels: Labels): string {
  return `wants ${shown(text)}, ${hasText(label, labels.get(label))}`;
}

function hasText(label: string, value: string | undefined): string {
  if (value === undefined) return `request has no ${shown(label)}`;
  return value === "" ? `request has an empty ${shown(label)}` : `request has ${shown(labelText(label, value))}`;
}
