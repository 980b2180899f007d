/**
 * Checks the expressions of a Group's selector. CEL rules for these checks would exceed the API server's cost budget,
 * so the CRD refuses the same values by plain schemas, with unclear messages. A test compares davit's verdicts with the
 * API server's.
 */

import { isJsonObject, type JsonObject, type JsonValue, objectOf } from "../../model/json.ts";
import {
  type BadValue,
  isPositive,
  normalizeExpressions,
  type Operator,
  operators,
  type WrittenExpression,
} from "../../model/labels/expression.ts";
import type { SchemaFinding } from "./check.ts";

/** Returns the expressions of a selector. It leaves out an entry whose key is no text or whose operator is unknown. */
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

/** False if an expression has a value that no machine can have. */
export function hasOnlyGoodValues(selector: JsonObject): boolean {
  return normalizeExpressions(writtenExpressions(selector)).badValues.length === 0;
}

/**
 * Returns a selector from the readable part of the given one. It matches every machine that the given one may match,
 * and perhaps more machines. If an expression cannot be read whole but requires its label, `Exists` for this label
 * replaces it. Any other unreadable expression is left out.
 * @param isGood whether the schema admits a selector.
 */
export function readablePart(
  { matchLabels, matchExpressions }: JsonObject,
  isGood: (selector: JsonObject) => boolean,
): JsonObject {
  const labels = Object.entries(objectOf(matchLabels));
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

// A script that writes a long list may repeat its mistake in every value. A few findings are enough then.
const maxFindings = 8;

/** Finds a `matchExpressions` that is null, and values that no machine can have. */
export function expressionFindings(selector: JsonObject): readonly SchemaFinding[] {
  // The CRD's rules do not see null. If davit dropped it, the selector would match more machines than its author meant.
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
