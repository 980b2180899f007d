/**
 * Lists of what davit promises, each fact with the tests that assert it. A list is a YAML file: its entries have a
 * `section`, the `fact` as a sentence, and one of
 *
 *   tests, stories   `file: literal parts of the test's name`, parts joined by " > " (a title, then a row of its table);
 *                    a story of test/conformance/keys by its name, with literal parts of its text behind a colon
 *   later            the part of davit that will meet it
 *   outOfScope       why it is none of davit's
 *
 * `deviation` beside tests says why davit does something else on purpose, which the tests then hold.
 */

import { existsSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { isJsonObject, type JsonValue } from "../../src/model/json.ts";

const root = new URL("../../", import.meta.url);

export interface Fact {
  readonly section: string;
  readonly fact: string;
  /** `file: parts`. */
  readonly tests: readonly string[];
  readonly later: string | undefined;
  readonly outOfScope: string | undefined;
  readonly deviation: string | undefined;
}

const knownKeys = ["section", "fact", "tests", "stories", "later", "outOfScope", "deviation"];

function toFact(entry: JsonValue): Fact {
  if (!isJsonObject(entry)) throw new Error("Every entry of a list of facts is an object");
  const unknown = Object.keys(entry).filter((key) => !knownKeys.includes(key));
  if (unknown.length > 0) throw new Error(`An entry of a list of facts has the unknown key ${unknown[0]}`);
  const { section, fact, tests = [], stories = [], later, outOfScope, deviation } = entry;
  if (!Array.isArray(tests) || !Array.isArray(stories)) throw new Error("The tests of an entry are a list");
  const text = (value: JsonValue | undefined) => (value === undefined ? undefined : String(value));
  return {
    section: String(section),
    fact: String(fact),
    tests: [...tests.map(String), ...stories.map(String).map(storyReference)],
    later: text(later),
    outOfScope: text(outOfScope),
    deviation: text(deviation),
  };
}

/** `name` or `name: parts`. */
function storyReference(story: string): string {
  return story.replace(/^[^:]+/, (name) => `test/conformance/keys/${name}.txt`);
}

const sources = new Map<string, string | undefined>();

/** The text of a test, with that of the files beside it which it imports: its tables may be there. */
function sourceOf(file: string): string | undefined {
  if (!sources.has(file)) sources.set(file, readSource(new URL(file, root)));
  return sources.get(file);
}

function readSource(url: URL): string | undefined {
  if (!existsSync(url)) return undefined;
  const source = readFileSync(url, "utf8");
  const besides = [...source.matchAll(/from "(\.\/[^"]+)"/g)].map(([, path = ""]) => new URL(path, url));
  return [source, ...besides.map((beside) => readFileSync(beside, "utf8"))].join("\n");
}

/** What a reference to a test lacks: its file, or the parts of the name that are not in it. */
export function lacking(reference: string): readonly string[] {
  const [, file = "", name = ""] = /^(test\/[^:]+\.(?:test\.ts|txt))(?:: (.+))?$/s.exec(reference) ?? [];
  const source = file === "" ? undefined : sourceOf(file);
  if (source === undefined || (name === "" && file.endsWith(".ts"))) return ["the file"];
  return name.split(" > ").filter((part) => !source.includes(part));
}

/** Reads a list. @param file beside this one. @throws {Error} for an entry that is none. */
export function readFacts(file: string): readonly Fact[] {
  const entries: readonly JsonValue[] = parse(readFileSync(new URL(file, import.meta.url), "utf8"));
  return entries.map(toFact);
}

/** A row of counts for each section, and one for all. */
export function tableOf(facts: readonly Fact[]): string {
  const sections = [...new Set(facts.map(({ section }) => section))];
  const listOf = (section: string) => facts.filter((fact) => fact.section === section);
  const rows = sections.map((section) => rowOf(section, listOf(section)));
  return [heading, ...rows, rowOf("all", facts)].map(lineOf).join("\n");
}

const heading = ["section", "facts", "covered", "later", "out of scope", "deviations", "tests"];

function rowOf(section: string, list: readonly Fact[]): readonly string[] {
  const covered = list.filter(({ tests }) => tests.length > 0 && tests.every((test) => lacking(test).length === 0));
  const counts = [
    list.length,
    covered.length,
    list.filter(({ later }) => later !== undefined).length,
    list.filter(({ outOfScope }) => outOfScope !== undefined).length,
    list.filter(({ deviation }) => deviation !== undefined).length,
    new Set(list.flatMap(({ tests }) => tests)).size,
  ];
  return [section, ...counts.map(String)];
}

function lineOf([section = "", ...counts]: readonly string[]): string {
  return section.padEnd(30) + counts.map((count) => count.padStart(13)).join("");
}
