/** Holds the lists of what davit promises against the tests that they name: see facts.ts. */

import { describe, expect, it } from "vitest";
import { type Fact, lacking, readFacts, tableOf } from "./facts.ts";

const lists = [
  { name: "the boot contract", facts: readFacts("boot-facts.yaml") },
  { name: "the key API", facts: readFacts("kv-facts.yaml") },
];

describe.each(lists)("the facts of $name", ({ name, facts }) => {
  it("are each listed once, with a section and a sentence", () => {
    const keys = facts.map(({ section, fact }) => `${section}: ${fact}`);
    expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([]);
    for (const { section, fact } of facts) expect([section, fact]).not.toContain("");
  });

  it("name a test, the part of davit that will meet them, or why none will", () => {
    const answers = ({ tests, later, outOfScope }: Fact) => [tests[0], later, outOfScope].filter((text) => text);
    expect(facts.filter((fact) => answers(fact).length !== 1)).toEqual([]);
  });

  it("name tests that are there", () => {
    const named = [...new Set(facts.flatMap(({ tests }) => tests))];
    expect(named.flatMap((test) => lacking(test).map((part) => `${test} lacks ${part}`))).toEqual([]);
  });

  it("are counted by section", () => {
    const table = tableOf(facts);
    process.stdout.write(`\nThe facts of ${name}\n${table}\n`);
    expect(Number(/^all +(\d+)/m.exec(table)?.[1])).toBe(facts.length);
  });
});
