/**
 * Decides whether one selector implies another: every machine that meets the first one meets the second one, too. Pure.
 *
 * True is certain. False may be wrong: davit compares expressions one by one, and recognises only equal `Glob`
 * patterns.
 */

import { unreachable } from "../../lib/errors.ts";
import { isPositive, type Requirement, toRequirement } from "../labels/expression.ts";
import type { Selection, SelectorSpec } from "../objects/group.ts";

/** True when the second selector certainly matches every machine that the first one matches. */
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

/** True when every value that meets `given` also meets `wanted`. Both are about the same label. */
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

/**
 * True when an expression accepts none of these values. It looks each value up in a set: a list may have 5,000 values,
 * and davit may compare it with many other lists.
 */
function rulesOut({ accepts }: Requirement, values: readonly string[]): boolean {
  return values.every((value) => !accepts(value));
}

/** Prepares the selector of a Group's spec for matching. */
export function selectionOf({ selector, expressions = [] }: SelectorSpec): Selection {
  return { selector, expressions: expressions.map(toRequirement) };
}
