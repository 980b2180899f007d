/**
 * Finds where Go and davit treat a variable's value differently. It looks at the values of each group that uses a
 * template, so that it reports only real differences.
 */

import { isJsonObject, type JsonValue } from "../model/json.ts";
import { isList, memberOf } from "../render/core/values.ts";
import { type ImportFindings, shown } from "./findings.ts";
import type { VariableUse } from "./go-to-handlebars.ts";
import type { ReadGroup } from "./group.ts";

/** Reports where a template yields something else for a group's machines. @param file the template's file. */
export function compareValues(use: VariableUse, file: string, group: ReadGroup, findings: ImportFindings): void {
  const [first, label, ...more] = use.path;
  if (first === undefined) return;
  if (first === "request") {
    if (label === "query" && more.length === 1 && use.by === "tested" && !use.mayBeAbsent) {
      const text = `davit takes an absent ${shown(use.path.join("."))} for false, matchbox answers 404`;
      findings.warn(file, text, use.at);
    }
    return;
  }
  const value = use.path.reduce<JsonValue | undefined>(memberOf, variablesOf(group));
  const problem = use.by === "printed" ? printedOtherwise(value, use) : testedOtherwise(value, use);
  if (problem !== undefined)
    findings.warn(file, `${shown(use.path.join("."))} of ${group.file.path} ${problem}`, use.at);
}

/** The variables as matchbox makes them, without those of the request. */
function variablesOf({ metadata, selector }: ReadGroup): JsonValue {
  const labels = Object.entries(selector).map(([label, value]) => [label.toLowerCase(), value] as const);
  return { ...metadata, ...Object.fromEntries(labels) };
}

function printedOtherwise(value: JsonValue | undefined, { mayBeAbsent }: VariableUse): string | undefined {
  // Both refuse to print an absent variable, unless it was looked up by index.
  if (value === undefined) return mayBeAbsent ? 'is absent: matchbox prints "<no value>", davit nothing' : undefined;
  if (value === null) return 'is null: matchbox prints "<no value>", davit nothing';
  if (isList(value)) return "is a list: matchbox prints it in brackets, davit with commas";
  if (isJsonObject(value)) return "is an object: print its members instead";
  if (typeof value === "number" && hasGoExponent(value)) {
    return "is a number that matchbox prints with an exponent, davit as plain decimal";
  }
  return undefined;
}

function testedOtherwise(value: JsonValue | undefined, { mayBeAbsent }: VariableUse): string | undefined {
  if (value === undefined && !mayBeAbsent) return "is absent: davit takes it for false, matchbox answers 404";
  const isEmpty = isJsonObject(value) && Object.keys(value).length === 0;
  return isEmpty ? "is an empty object: davit takes it for true, matchbox for false" : undefined;
}

/** Go's fmt writes such numbers with an exponent. */
function hasGoExponent(value: number): boolean {
  const size = Math.abs(value);
  return size >= 1e6 || (size > 0 && size < 1e-4);
}
