/**
 * Decides whether one selector implies another: no machine meets the first one without meeting the second. Pure.
 *
 * A yes is certain. A no may be wrong for patterns: only equal patterns are known to be alike.
 */

import { unreachable } from "../lib/errors.ts";
import { isPositive, type Requirement, toRequirement } from "./expression.ts";
import type { Selection, SelectorSpec } from "./group.ts";

/** True when every machine that the first selector matches is matched by the second one, too. */
export function implies(selector: Selection, other: Selection): boolean {
  for (const [label, value] of Object.entries(other.selector)) {
    if (!has(selector, label, value) && !namesOnly(selector, label, value)) return false;
  }
  return other.expressions.every((wanted) => said(selector, wanted));
}

function has({ selector }: Selection, label: string, value: string): boolean {
  return Object.hasOwn(selector, label) && selector[label] === value;
}

function namesOnly({ expressions }: Selection, label: string, value: string): boolean {
  return expressions.some(
    ({ key, operator, values }) => key === label && operator === "In" && values.every((each) => each === value),
  );
}

function said({ selector, expressions }: Selection, wanted: Requirement): boolean {
  if (Object.hasOwn(selector, wanted.key) && wanted.accepts(selector[wanted.key])) return true;
  return expressions.some((each) => each.key === wanted.key && isEnough(each, wanted));
}

/** True when a label that meets one expression meets the wanted one. */
function isEnough(given: Requirement, wanted: Requirement): boolean {
  if (given.operator === "In") return given.values.every((value) => wanted.accepts(value));
  switch (wanted.operator) {
    case "In":
      return false;
    case "Exists":
      return isPositive(given);
    case "DoesNotExist":
      return given.operator === "DoesNotExist";
    case "NotIn":
      return given.operator === "DoesNotExist" || (given.operator === "NotIn" && rulesOut(given, wanted.values));
    case "Prefix":
      return given.operator === "Prefix" && given.values.every((prefix) => wanted.accepts(prefix));
    case "Glob":
      return given.operator === "Glob" && given.values.every((pattern) => wanted.values.includes(pattern));
    default:
      return unreachable(wanted.operator);
  }
}

/** Checks each value instead of comparing lists: one may have 5,000 values, and many are compared with it. */
function rulesOut({ accepts }: Requirement, values: readonly string[]): boolean {
  return values.every((value) => !accepts(value));
}

/** The selecting part of a Group's spec. */
export function selectionOf({ selector, expressions = [] }: SelectorSpec): Selection {
  return { selector, expressions: expressions.map(toRequirement) };
}
