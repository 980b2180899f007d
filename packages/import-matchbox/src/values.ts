/**
 * Finds values that Go and davit treat differently. It checks the values of each group that uses a template, so it
 * reports only differences that occur.
 */

import { isJsonObject, type JsonValue } from "../../../src/model/json.ts";
import { isList, memberOf } from "../../../src/render/core/values.ts";
import { type ImportFindings, shown } from "./findings.ts";
import type { VariableUse } from "./go-to-handlebars.ts";
import type { ReadGroup } from "./group.ts";

/** Warns if a template yields another result in davit than in matchbox. @param file the template's file. */
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

/** Returns the variables that matchbox makes for a group, without those of the request. */
function variablesOf({ metadata, selector }: ReadGroup): JsonValue {
  const labels = Object.entries(selector).map(([label, value]) => [label.toLowerCase(), value] as const);
  return { ...metadata, ...Object.fromEntries(labels) };
}

function printedOtherwise(value: JsonValue | undefined, { mayBeAbsent }: VariableUse): string | undefined {
  // matchbox and davit both refuse to print an absent variable, unless the template looks it up by `index`.
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

/** True for a number that Go's fmt writes with an exponent. */
function hasGoExponent(value: number): boolean {
  const size = Math.abs(value);
  return size >= 1e6 || (size > 0 && size < 1e-4);
}
