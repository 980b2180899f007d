/** Holds boot-facts.yaml, the list of what the boot service promises, against the tests that it names. */

import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { isJsonObject, type JsonValue } from "../../src/model/json.ts";

const root = new URL("../../", import.meta.url);

interface Fact {
  readonly section: string;
  readonly fact: string;
  /** `file: literal parts of the test's name`, the parts joined by ` > `. */
  readonly tests: readonly string[];
  readonly later: string | undefined;
  readonly deviation: string | undefined;
}

function toFact(entry: JsonValue): Fact {
  if (!isJsonObject(entry)) throw new Error("Every entry of boot-facts.yaml is an object");
  const unknown = Object.keys(entry).filter((key) => !["section", "fact", "tests", "later", "deviation"].includes(key));
  if (unknown.length > 0) throw new Error(`An entry of boot-facts.yaml has the unknown key ${unknown[0]}`);
  const { section, fact, tests = [], later, deviation } = entry;
  if (!Array.isArray(tests)) throw new Error("The tests of an entry are a list");
  return {
    section: String(section),
    fact: String(fact),
    tests: tests.map(String),
    later: later === undefined ? undefined : String(later),
    deviation: deviation === undefined ? undefined : String(deviation),
  };
}

const entries: readonly JsonValue[] = parse(readFileSync(new URL("boot-facts.yaml", import.meta.url), "utf8"));
const facts = entries.map(toFact);
const due = facts.filter(({ later }) => later === undefined);
const named = [...new Set(facts.flatMap(({ tests }) => tests))];

const sources = new Map<string, string | undefined>();

function sourceOf(file: string): string | undefined {
  if (!sources.has(file)) {
    const url = new URL(file, root);
    sources.set(file, existsSync(url) ? readFileSync(url, "utf8") : undefined);
  }
  return sources.get(file);
}

/** What a reference to a test lacks: its file, or the parts of the name that are not in it. */
function lacking(reference: string): readonly string[] {
  const [, file = "", name = ""] = /^(test\/[^:]+\.test\.ts): (.+)$/s.exec(reference) ?? [];
  const source = file === "" ? undefined : sourceOf(file);
  if (source === undefined) return ["the file"];
  return name.split(" > ").filter((part) => !source.includes(part));
}

describe("the facts of the boot contract", () => {
  it("are each listed once, with a section and a sentence", () => {
    const keys = facts.map(({ section, fact }) => `${section}: ${fact}`);
    expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([]);
    for (const { section, fact } of facts) expect([section, fact]).not.toContain("");
  });

  it("name a test, or the part of davit that will meet them", () => {
    expect(due.filter(({ tests }) => tests.length === 0)).toEqual([]);
    expect(facts.filter(({ later, tests }) => later !== undefined && (later === "" || tests.length > 0))).toEqual([]);
  });

  it("name tests that are there", () => {
    const absent = named.flatMap((test) => lacking(test).map((part) => `${test} lacks ${part}`));
    expect(absent).toEqual([]);
  });

  it("are counted by section", () => {
    const sections = [...new Set(facts.map(({ section }) => section))];
    const rows = sections.map((section) =>
      rowOf(
        section,
        facts.filter((fact) => fact.section === section),
      ),
    );
    const table = [heading, ...rows, rowOf("all", facts)].map(lineOf).join("\n");
    process.stdout.write(`\nFacts of the boot contract\n${table}\n`);
    expect(rows.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(facts.length);
  });
});

const heading = ["section", "facts", "covered", "later", "deviations", "tests"];

function rowOf(section: string, list: readonly Fact[]): readonly string[] {
  const covered = list.filter(({ tests }) => tests.length > 0 && tests.every((test) => lacking(test).length === 0));
  const later = list.filter((fact) => fact.later !== undefined);
  const deviations = list.filter(({ deviation }) => deviation !== undefined);
  const tests = new Set(list.flatMap((fact) => fact.tests));
  return [section, ...[list.length, covered.length, later.length, deviations.length, tests.size].map(String)];
}

function lineOf([section = "", ...counts]: readonly string[]): string {
  return section.padEnd(30) + counts.map((count) => count.padStart(11)).join("");
}
