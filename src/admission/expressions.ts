/**
 * Checks the expressions of a Group's selector: the API server's budget is too small for such CRD rules. The CRD
 * refuses the same values by bare schemas, with unclear messages; a test compares both.
 */

import {
  type BadValue,
  isPositive,
  normalizeExpressions,
  type Operator,
  operators,
  type WrittenExpression,
} from "../model/expression.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../model/json.ts";
import type { SchemaFinding } from "./check.ts";

/** The expressions of a selector that its schema admits. */
export function writtenExpressions({ matchExpressions }: JsonObject): readonly WrittenExpression[] {
  if (!Array.isArray(matchExpressions)) return [];
  return matchExpressions.filter(isJsonObject).flatMap(({ key, operator, values }) => {
    const known = operators.find((each) => each === operator);
    if (typeof key !== "string" || known === undefined) return [];
    return [
      {
        key,
        operator: known,
        values: Array.isArray(values) ? values.filter((value) => typeof value === "string") : [],
      },
    ];
  });
}

const emptyText = "is empty: write an expression, or remove matchExpressions";

/** False where an expression has a value that no machine can have. */
export function hasOnlyGoodValues(selector: JsonObject): boolean {
  return normalizeExpressions(writtenExpressions(selector)).badValues.length === 0;
}

/**
 * A selector from the readable part of this one; it matches at least all machines that this one may match. If an
 * expression cannot be read whole and needs its label, the result requires only that the label exists.
 * @param isGood whether the schema admits a selector.
 */
export function readablePart(
  { matchLabels, matchExpressions }: JsonObject,
  isGood: (selector: JsonObject) => boolean,
): JsonObject {
  const labels = Object.entries(isJsonObject(matchLabels) ? matchLabels : {});
  const readable = labels.filter(([name, value]) => isGood({ matchLabels: { [name]: value } }));
  const expressions = (Array.isArray(matchExpressions) ? matchExpressions : []).flatMap((each): JsonValue[] => {
    const alone = { matchExpressions: [each] };
    if (isGood(alone) && hasOnlyGoodValues(alone)) return [each];
    return writtenExpressions(alone)
      .filter((written) => isPositive(written))
      .map(({ key }) => ({ key, operator: "Exists" }))
      .filter((exists) => isGood({ matchExpressions: [exists] }));
  });
  return {
    ...(readable.length > 0 && { matchLabels: Object.fromEntries(readable) }),
    ...(expressions.length > 0 && { matchExpressions: expressions }),
  };
}

// A mistake in a script that writes such a list repeats in all of its values.
const maxFindings = 8;

/** Expressions that are not a list, and values that no machine can have. */
export function expressionFindings(selector: JsonObject): readonly SchemaFinding[] {
  // Rules do not see it: if it were dropped, the selector would take more machines than its author meant.
  if (selector.matchExpressions === null) {
    return [
      { path: ["spec", "selector", "matchExpressions"], isBeyondCrd: true, code: "broken-rule", text: emptyText },
    ];
  }
  return normalizeExpressions(writtenExpressions(selector)).badValues.slice(0, maxFindings).map(toFinding);
}

function toFinding({ expression, value, key, operator }: BadValue): SchemaFinding {
  const path = ["spec", "selector", "matchExpressions", String(expression), "values", String(value)];
  return { path, isBeyondCrd: true, code: "broken-rule", text: textOf(key === "mac" ? macTexts : uuidTexts, operator) };
}

interface Texts {
  readonly whole: string;
  readonly prefix: string;
  readonly glob: string;
}

const macTexts: Texts = {
  whole: 'is no MAC address: write one such as "52:54:00:a1:9c:ae"',
  prefix: 'does not begin a MAC address: write it with colons, such as "52:54:00"',
  glob: 'is no pattern of a MAC address: write it with colons, such as "52:54:00:*"',
};
const uuidTexts: Texts = {
  whole: 'is no UUID: write one such as "4c4c4544-0042-3510-8052-b4c04f4e4a32"',
  prefix: 'does not begin a UUID: write it with hyphens, such as "4c4c4544-00"',
  glob: 'is no pattern of a UUID: write it with hyphens, such as "4c4c4544-*"',
};

function textOf(texts: Texts, operator: Operator): string {
  if (operator === "Prefix") return texts.prefix;
  return operator === "Glob" ? texts.glob : texts.whole;
}
