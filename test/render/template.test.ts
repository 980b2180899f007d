import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { parseTemplate } from "../../src/render/template/template.ts";
import { compile, parsed, render, renderErrorOf, sha256 } from "./fixtures.ts";

describe("printing", () => {
  it.each<{ name: string; template: string; variables: JsonObject; result: string }>([
    {
      name: "nothing is escaped",
      template: "{{a}} {{{a}}} {{&a}}",
      variables: { a: `<&"'>` },
      result: `<&"'> <&"'> <&"'>`,
    },
    { name: "a member", template: "{{a.b.c}}", variables: { a: { b: { c: "x" } } }, result: "x" },
    {
      name: "a key that is no identifier",
      template: "{{a.[two words]}}",
      variables: { a: { "two words": "x" } },
      result: "x",
    },
    {
      name: "an element and a length",
      template: "{{l.[0]}}{{l.[1]}}{{l.length}}",
      variables: { l: ["a", "b"] },
      result: "ab2",
    },
    { name: "null as nothing", template: "[{{a}}]", variables: { a: null }, result: "[]" },
    { name: "booleans as words", template: "{{a}} {{b}}", variables: { a: false, b: true }, result: "false true" },
    {
      name: "numbers in plain decimal",
      template: "{{a}} {{b}} {{c}}",
      variables: { a: 1e6, b: 1e21, c: -1.5e-7 },
      result: "1000000 1000000000000000000000 -0.00000015",
    },
    { name: "a list between commas", template: "{{a}}", variables: { a: [1, [2, null], "x"] }, result: "1,2,,x" },
    { name: "an object as a reminder", template: "{{a}}", variables: { a: {} }, result: "[object Object]" },
    { name: "a value is data, never a template", template: "{{a}}", variables: { a: "{{b}}" }, result: "{{b}}" },
    {
      name: "escaped braces and comments",
      template: "\\{{a}}{{! x }}{{!-- {{y}} --}}",
      variables: {},
      result: "{{a}}",
    },
    {
      name: "a variable named like a helper",
      template: "{{json}} {{upper default}}",
      variables: { json: "j", default: "d" },
      result: "j D",
    },
  ])("$name", ({ template, variables, result }) => {
    expect(render(template, variables)).toBe(result);
  });
});

it("tokens of the boot client pass through", () => {
  expect(render(`\${uuid} \${mac:hexhyp}`)).toBe(`\${uuid} \${mac:hexhyp}`);
});

describe("names that objects inherit", () => {
  it.each(["constructor", "toString", "__proto__", "hasOwnProperty", "valueOf"])("`%s` prints nothing", (name) => {
    expect(render(`[{{${name}}}{{a.${name}}}]`, { a: {} })).toBe("[]");
  });

  it("lead nowhere", () => {
    expect(renderErrorOf(() => render("{{constructor.constructor}}")).reason).toBe("undefinedVariable");
  });

  it("are variables like any other when they are an object's own", () => {
    const a = parsed('{"constructor": "c", "__proto__": {"x": "p"}, "toString": 1}');
    expect(render("{{a.constructor}} {{a.__proto__.x}} {{a.toString}} {{json a}}", { a })).toBe(
      'c p 1 {"__proto__":{"x":"p"},"constructor":"c","toString":1}',
    );
  });
});

describe("absent variables", () => {
  it.each<{ template: string; variables: JsonObject; line: number; column: number }>([
    { template: "{{a}}", variables: {}, line: 1, column: 3 },
    { template: "x\n  {{a.b.c}}", variables: { a: {} }, line: 2, column: 5 },
    { template: "{{a.b}}", variables: { a: null }, line: 1, column: 3 },
    { template: "{{a.length}}", variables: { a: "text" }, line: 1, column: 3 },
    { template: "{{request.query.uuid}}", variables: { request: { query: {} } }, line: 1, column: 3 },
    { template: "{{#each l}}{{name}}{{/each}}", variables: { l: [1], name: "outer" }, line: 1, column: 14 },
    { template: "{{@index}}", variables: {}, line: 1, column: 3 },
    { template: "{{../a}}", variables: { a: 1 }, line: 1, column: 3 },
    { template: "{{l.[1]}}", variables: { l: [1] }, line: 1, column: 3 },
  ])("`$template` is an error with its place", ({ template, variables, line, column }) => {
    const error = renderErrorOf(() => render(template, variables));
    expect(error.reason).toBe("undefinedVariable");
    expect(error.position).toEqual({ line, column });
  });

  it.each([
    "{{lookup request.query 'uuid'}}",
    "{{lookup request.nothing 'uuid'}}",
    "{{#if a.b.c}}x{{/if}}",
    "{{#unless a}}{{else}}x{{/unless}}",
    "{{#each a.b}}x{{/each}}",
    "{{#with a.b}}x{{/with}}",
    "{{lower a.b}}",
    "{{default a.b c}}",
  ])("`%s` gives nothing", (template) => {
    expect(render(template, { request: { query: {} } })).toBe("");
  });
});

describe("blocks", () => {
  it.each<{ name: string; template: string; variables: JsonObject; result: string }>([
    { name: "if and else if", template: "{{#if a}}1{{else if b}}2{{else}}3{{/if}}", variables: { b: 1 }, result: "2" },
    { name: "unless", template: "{{#unless a}}1{{else}}2{{/unless}}", variables: {}, result: "1" },
    { name: "an inverted block", template: "{{^if a}}1{{/if}}", variables: {}, result: "1" },
    {
      name: "zero is false unless it is included",
      template: "{{#if z}}1{{/if}}{{#if z includeZero=true}}2{{/if}}",
      variables: { z: 0 },
      result: "2",
    },
    {
      name: "an empty list is false, an empty object is true",
      template: "{{#if l}}1{{/if}}{{#if o}}2{{/if}}",
      variables: { l: [], o: {} },
      result: "2",
    },
    {
      name: "each over a list",
      template: "{{#each l}}{{@index}}{{@key}}{{@first}}{{@last}}{{this}};{{/each}}",
      variables: { l: ["a", "b"] },
      result: "00truefalsea;11falsetrueb;",
    },
    {
      name: "each over an object, in byte order of its keys",
      template: "{{#each o}}{{@key}}={{.}};{{/each}}",
      variables: { o: { b: 1, a: 2, B: 3 } },
      result: "B=3;a=2;b=1;",
    },
    {
      name: "each over nothing",
      template: "{{#each l}}x{{else}}none{{/each}}{{#each 5}}x{{else}}none{{/each}}",
      variables: { l: [] },
      result: "nonenone",
    },
    {
      name: "outer scopes",
      template: "{{#each l}}{{#each m}}{{../n}}{{../../n}}{{@../index}}{{@root.n}}{{/each}}{{/each}}",
      variables: { n: "o", l: [{ n: "i", m: [1] }] },
      result: "io0o",
    },
    {
      name: "named values",
      template: "{{#each o as |v k|}}{{#with v as |w|}}{{k}}{{w}}{{this.k}}{{/with}}{{/each}}",
      variables: { o: { a: { k: "z" } } },
      result: "a[object Object]z",
    },
    {
      name: "with",
      template: "{{#with a}}{{b}}{{../c}}{{else}}x{{/with}}",
      variables: { a: { b: 1 }, c: 2 },
      result: "12",
    },
    { name: "with zero", template: "{{#with z}}{{this}}{{/with}}", variables: { z: 0 }, result: "0" },
    {
      name: "block lines leave no blank line",
      template: "a\n{{#if x}}\n  b\n{{else}}\n  c\n{{/if}}\nd\n",
      variables: { x: 1 },
      result: "a\n  b\nd\n",
    },
    { name: "tildes trim", template: "a  {{~x~}}  b", variables: { x: "-" }, result: "a-b" },
  ])("$name", ({ template, variables, result }) => {
    expect(render(template, variables)).toBe(result);
  });
});

describe("mistakes in a template's text", () => {
  it.each([
    { text: '{"a":{{json x}}}', reason: "tripleClose", line: 1, column: 14 },
    { text: '{"a":{"b":{{json x}}}}', reason: "tripleClose", line: 1, column: 19 },
    { text: "{{{json x}} }", reason: "tripleOpen", line: 1, column: 10 },
    { text: "a\n\n{{ foo % }}", reason: "syntax", line: 3, column: 8 },
    { text: "{{}}", reason: "syntax", line: 1, column: 3 },
    { text: "{{else}}", reason: "syntax", line: 1, column: 1 },
    { text: "{{a/../b}}", reason: "syntax", line: 1, column: 3 },
    { text: "ab\n{{#if a}}\nxx", reason: "notClosed", line: 3, column: 3 },
    { text: "\n{{!-- x", reason: "notClosed", line: 2, column: 1 },
    { text: "{{#if a}}\n{{/each}}", reason: "blockMismatch", line: 1, column: 4 },
    { text: "{{> part}}", reason: "unsupported", line: 1, column: 1 },
    { text: "x {{* decorator}}", reason: "unsupported", line: 1, column: 3 },
    { text: "{{#> part}}{{/part}}", reason: "unsupported", line: 1, column: 1 },
    { text: '{{"name"}}', reason: "unsupported", line: 1, column: 1 },
    { text: "{{lower (5 x)}}", reason: "unsupported", line: 1, column: 9 },
    { text: '{{log "x"}}', reason: "unknownHelper", line: 1, column: 1 },
    { text: "{{constructor x}}", reason: "unknownHelper", line: 1, column: 1 },
    { text: "{{this.lower x}}", reason: "unknownHelper", line: 1, column: 1 },
    { text: "{{#section}}{{/section}}", reason: "unknownBlock", line: 1, column: 1 },
    { text: "{{{{raw}}}} {{{{/raw}}}}", reason: "unknownBlock", line: 1, column: 1 },
    { text: "{{@nothing}}", reason: "unknownData", line: 1, column: 3 },
    { text: "{{eq a}}", reason: "wrongArguments", line: 1, column: 1 },
    { text: "{{lower a b}}", reason: "wrongArguments", line: 1, column: 1 },
    { text: "{{lower a b=1}}", reason: "wrongArguments", line: 1, column: 1 },
    { text: "{{#if}}{{/if}}", reason: "wrongArguments", line: 1, column: 1 },
    { text: "{{#each a includeZero=true}}{{/each}}", reason: "wrongArguments", line: 1, column: 1 },
    { text: "{{#if a as |b|}}{{/if}}", reason: "wrongArguments", line: 1, column: 1 },
  ])("`$text` is $reason", ({ text, reason, line, column }) => {
    expect(parseTemplate(text)).toMatchObject({ reason, line, column });
    expect(renderErrorOf(() => compile(text)).reason).toBe(reason);
  });

  it("`}}}` comes with the cure", () => {
    expect(parseTemplate('{"a":{{json x}}}')?.message).toContain("put a space before }");
  });

  it("a good template has none", () => {
    expect(parseTemplate('{"a": {{json x}} }')).toBeUndefined();
  });
});

describe("limits", () => {
  it.each([
    { name: "101 nested blocks", text: "{{#if a}}".repeat(101) + "{{/if}}".repeat(101), reason: "templateTooDeep" },
    { name: "10,000 nested blocks", text: "{{#if a}}".repeat(9999), reason: "templateTooDeep" },
    { name: "a chain of 101 else", text: `{{#if a}}${"{{else if a}}".repeat(101)}{{/if}}`, reason: "templateTooDeep" },
    {
      name: "5,000 nested calls",
      text: `{{lower ${"(lower ".repeat(5000)}x${")".repeat(5000)}}}`,
      reason: "templateTooDeep",
    },
    { name: "10,001 expressions", text: "{{a}}".repeat(10_001), reason: "templateTooLarge" },
    { name: "a byte more than 1 MiB", text: `${"é".repeat(1024 * 512)}x`, reason: "templateTooLarge" },
  ])("$name are refused at once", ({ text, reason }) => {
    expect(parseTemplate(text)?.reason).toBe(reason);
  });

  it.each([
    { name: "100 nested blocks", text: "{{#if a}}".repeat(100) + "{{/if}}".repeat(100) },
    { name: "1,000 blocks with else in a row", text: "{{#if a}}x{{^}}y{{/if}}{{#if a}}{{else}}{{/if}}".repeat(500) },
    { name: "10,000 expressions", text: "{{a}}".repeat(10_000) },
    { name: "just 1 MiB", text: "é".repeat(1024 * 512) },
  ])("$name are fine", ({ text }) => {
    expect(parseTemplate(text)).toBeUndefined();
  });

  const wide = Array.from({ length: 256 }, () => 1);
  const megabyte = "x".repeat(1024 * 1024);
  const lists = Array.from({ length: 90_000 }, () => []);
  it.each<{ name: string; template: string; variables: JsonObject; reason: string }>([
    {
      name: "three nested loops over 256 entries",
      template: "{{#each l}}{{#each ../l}}{{#each ../../l}}.{{/each}}{{/each}}{{/each}}",
      variables: { l: wide },
      reason: "budget",
    },
    {
      name: "silent work in loops",
      template: `{{#each l}}{{#each ../l}}${"{{../../n}}".repeat(200)}{{/each}}{{/each}}`,
      variables: { l: wide, n: "" },
      reason: "budget",
    },
    {
      name: "a loop over a million pieces",
      template: '{{#each (split t "x")}}{{/each}}',
      variables: { t: megabyte },
      reason: "budget",
    },
    {
      name: "a list of lists as a key, again and again",
      template: "{{#each l}}{{#if (lookup ../m ../lists)}}{{/if}}{{/each}}",
      variables: { l: wide, m: {}, lists: [lists] },
      reason: "budget",
    },
    ...["join ../lists ''", "json ../lists", "eq ../lists ../lists", "upper ../lists", "sha256 ../lists"].map(
      (call) => ({
        name: `a list of lists in a loop, ${call.split(" ", 1)}`,
        template: `{{#each l}}{{#if (${call})}}{{/if}}{{/each}}`,
        variables: { l: wide, lists: [lists] },
        reason: "budget",
      }),
    ),
    {
      name: "an object that is sorted in a loop",
      template: "{{#each l}}{{#each ../m}}{{/each}}{{/each}}",
      variables: { l: wide.slice(0, 9), m: Object.fromEntries(lists.map((_, at) => [`k${at}`, at])) },
      reason: "budget",
    },
    {
      name: "hashing a large text again and again",
      template: "{{#each l}}{{sha256 ../t}}{{/each}}",
      variables: { l: wide, t: megabyte },
      reason: "budget",
    },
    {
      name: "a result of 9 MiB",
      template: "{{#each l}}{{../t}}{{/each}}",
      variables: { l: [1, 2, 3, 4, 5, 6, 7, 8, 9], t: megabyte },
      reason: "resultTooLarge",
    },
    {
      name: "a result of 5 Mi letters of two bytes",
      template: "{{#each l}}{{../t}}{{/each}}",
      variables: { l: [1, 2, 3, 4, 5], t: "é".repeat(1024 * 1024) },
      reason: "resultTooLarge",
    },
    {
      name: "a replacement that multiplies",
      template: '{{replace t "x" t}}',
      variables: { t: megabyte },
      reason: "resultTooLarge",
    },
    {
      name: "a separator that multiplies",
      template: '{{join (split t "x") t}}',
      variables: { t: megabyte },
      reason: "resultTooLarge",
    },
    {
      name: "an indentation that multiplies",
      template: "{{indent t 100}}",
      variables: { t: "\n".repeat(1024 * 1024) },
      reason: "resultTooLarge",
    },
  ])("$name: refused", ({ template, variables, reason }) => {
    expect(renderErrorOf(() => render(template, variables)).reason).toBe(reason);
  });

  it("100,000 steps and 8 MiB are allowed", () => {
    const variables = {
      l: Array.from({ length: 99_999 }, () => 1),
      m: Array.from({ length: 8 }, () => 1),
      t: megabyte,
    };
    expect(render("{{#each l}}.{{/each}}", variables)).toHaveLength(99_999);
    expect(render("{{#each m}}{{../t}}{{/each}}", variables)).toHaveLength(8 * 1024 * 1024);
  });

  it("values nested beyond the stack are refused", () => {
    const deep = parsed(`${"[".repeat(100_000)}1${"]".repeat(100_000)}`);
    expect(renderErrorOf(() => render("{{json deep}}", { deep })).reason).toBe("budget");
  });
});

it("a template renders alike again and again, whatever was rendered between", () => {
  const template = compile("{{#each l}}{{json this}}{{sha256 this}}{{/each}}");
  const first = template.render({ l: [{ b: 1, a: 2 }] });
  renderErrorOf(() => template.render({ l: [1], m: compile("{{x}}").render({}) }));
  expect(template.render({ l: [{ a: 2, b: 1 }] })).toBe(first);
  expect(first).toBe(`{"a":2,"b":1}${sha256("[object Object]")}`);
});
