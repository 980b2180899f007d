import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { translateGoTemplate } from "../../packages/import-matchbox/src/go-to-handlebars.ts";
import { HandlebarsText, literalTemplate } from "../../packages/import-matchbox/src/handlebars-text.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { renderErrorOf } from "../../src/render/core/render-error.ts";
import { compileTemplate, parseTemplate } from "../../src/render/template/template.ts";

const variables = {
  name: "node1",
  count: 3,
  on: true,
  off: false,
  empty: "",
  nothing: null,
  list: ["a", "b"],
  none: [],
  net: { dns: "192.0.2.53", gateway: { mac: "52:54:00:00:00:01" } },
  disks: [{ path: "/dev/sda" }, { path: "/dev/sdb" }],
  "odd key": "odd",
  else: "reserved",
  request: { query: { mac: "52:54:00:a1:9c:ae", os: "installed" }, raw_query: "mac=52-54-00-a1-9c-ae&os=installed" },
} satisfies JsonObject;

function translated(source: string): string {
  const translation = translateGoTemplate(source);
  if (translation.kind === "untranslated" || translation.problems.length > 0) {
    throw new Error(translation.problems.map(({ text }) => text).join("; "));
  }
  return translation.text;
}

function rendered(source: string): string {
  return compileTemplate(translated(source), { sha256: () => "" }).render(variables);
}

it("does not translate into what davit refuses", () => {
  const deep = `{{index ${".a ".repeat(120)}}}`;
  expect(translateGoTemplate(deep)).toEqual({
    kind: "untranslated",
    problems: [
      { at: expect.anything(), text: expect.stringMatching(/^davit refuses its translation \(.+\): write it/) },
    ],
  });
});

describe("a translated template yields what Go yields", () => {
  it.each([
    { name: "text alone", source: "a\nb\n", output: "a\nb\n" },
    { name: "a variable", source: "x={{.name}};", output: "x=node1;" },
    { name: "a nested one", source: "{{.net.gateway.mac}}", output: "52:54:00:00:00:01" },
    { name: "white space in the tag", source: "{{ .name }}", output: "node1" },
    { name: "braces around", source: '{"a": "{{.name}}"}', output: '{"a": "node1"}' },
    { name: "a brace behind", source: "{ {{.count}}}", output: "{ 3}" },
    { name: "a brace that touches after trimming", source: "{ {{- .count}}}", output: "{3}" },
    {
      name: "the request",
      source: "{{.request.query.mac}} {{.request.raw_query}}",
      output: "52:54:00:a1:9c:ae mac=52-54-00-a1-9c-ae&os=installed",
    },
    { name: "an if", source: "{{if .on}}yes{{else}}no{{end}}", output: "yes" },
    { name: "an else", source: "{{if .off}}yes{{else}}no{{end}}", output: "no" },
    { name: "an else if", source: '{{if .off}}1{{else if eq .name "node1"}}2{{else}}3{{end}}', output: "2" },
    { name: "an else of an else if", source: "{{if .off}}1{{else if .empty}}2{{else}}3{{end}}", output: "3" },
    { name: "the empty lines of blocks", source: "a\n{{if .on}}\nb\n{{end}}\nc\n", output: "a\n\nb\n\nc\n" },
    { name: "the empty lines of an else", source: "{{if .off}}\na\n{{else}}\nb\n{{end}}\n", output: "\nb\n\n" },
    { name: "an indented block", source: "  {{if .on}}\n  b\n  {{end}}\n", output: "  \n  b\n  \n" },
    { name: "trim markers", source: "a\n{{- if .on}}\nb\n{{- end}}\nc\n", output: "a\nb\nc\n" },
    { name: "trim markers behind", source: "{{if .on -}}\n  b\n{{end -}}\n\nc\n", output: "b\nc\n" },
    { name: "a comment", source: "a\n{{/* because -- }} */}}\nb\n", output: "a\n\nb\n" },
    { name: "a trimmed comment", source: "a\n{{- /* because */ -}}\nb\n", output: "ab\n" },
    {
      name: "two hundred thousand blanks before a trim marker",
      source: `${" ".repeat(200_000)}x${" ".repeat(10)}{{- .name}}`,
      output: `${" ".repeat(200_000)}xnode1`,
    },
    {
      name: "a hundred thousand empty lines in a block",
      source: `{{if .on}}${"\n".repeat(100_000)}x{{end}}`,
      output: `${"\n".repeat(100_000)}x`,
    },
    { name: "a range", source: "{{range .list}}[{{.}}]{{end}}", output: "[a][b]" },
    {
      name: "a range over objects",
      source: "{{range .disks}}{{.path}} {{$.name}};{{end}}",
      output: "/dev/sda node1;/dev/sdb node1;",
    },
    {
      name: "a range with its index",
      source: "{{range $i, $d := .disks}}{{$i}}={{$d.path}} {{end}}",
      output: "0=/dev/sda 1=/dev/sdb ",
    },
    { name: "a range with a name", source: "{{range $d := .list}}{{$d}}{{.}}{{end}}", output: "aabb" },
    { name: "a range over nothing", source: "{{range .none}}x{{else}}none{{end}}", output: "none" },
    {
      name: "a range over an object, by its keys",
      source: "{{range $k, $v := .net.gateway}}{{$k}}={{$v}}{{end}}",
      output: "mac=52:54:00:00:00:01",
    },
    { name: "a with", source: "{{with .net}}{{.dns}} {{$.name}}{{end}}", output: "192.0.2.53 node1" },
    { name: "a with and a name", source: "{{with $n := .net}}{{$n.dns}}{{end}}", output: "192.0.2.53" },
    { name: "a with of nothing", source: "{{with .empty}}x{{else}}{{.name}}{{end}}", output: "node1" },
    {
      name: "blocks in blocks",
      source: "{{range .disks}}{{if $.on}}{{with .path}}{{.}}{{end}}{{end}}\n{{end}}",
      output: "/dev/sda\n/dev/sdb\n",
    },
    { name: "index by a key", source: '{{index . "odd key"}}', output: "odd" },
    { name: "index that leads to nothing in a query", source: 'x{{index .request.query "no"}}x', output: "xx" },
    { name: "a test of index", source: '{{if index . "absent"}}a{{else}}b{{end}}', output: "b" },
    {
      name: "a test of index in a query",
      source: '{{if eq (index .request.query "os") "installed"}}a{{end}}',
      output: "a",
    },
    { name: "index by a number", source: "{{index .list 1}}", output: "b" },
    { name: "index by several keys", source: '{{index .net "gateway" "mac"}}', output: "52:54:00:00:00:01" },
    {
      name: "index by a variable",
      source: "{{range $k, $v := .net.gateway}}{{index $.net.gateway $k}}{{end}}",
      output: "52:54:00:00:00:01",
    },
    { name: "eq with several", source: '{{if eq .name "a" "node1"}}yes{{end}}', output: "yes" },
    { name: "a printed eq", source: '{{eq .name "node1"}} {{ne .name "node1"}}', output: "true false" },
    { name: "and, or, not", source: "{{if and .on (or .off .name) (not .empty)}}yes{{end}}", output: "yes" },
    { name: "a printed or", source: '{{or .empty "default"}}', output: "default" },
    { name: "a pipe", source: '{{if .name | eq "node1"}}yes{{end}}', output: "yes" },
    { name: "a keyword of Handlebars", source: "{{.else}}{{with .else}}{{$.else}}{{end}}", output: "reservedreserved" },
    { name: "a text literal", source: '{{"{{"}}.x{{"}}"}}{{`a"b`}}', output: '{{.x}}a"b' },
    { name: "a backslash before a tag", source: "C:\\{{.name}} D:\\\\{{.name}}", output: "C:\\node1 D:\\\\node1" },
    { name: "a dollar and a brace", source: "\u0024{mac:hexhyp} \u0024{{.name}}", output: "\u0024{mac:hexhyp} $node1" },
    { name: "a literal", source: "{{3}} {{true}} {{1.5}}", output: "3 true 1.5" },
  ])("$name", ({ source, output }) => {
    expect(rendered(source)).toBe(output);
  });

  it("an absent variable that is printed stays an error", () => {
    expect(() => rendered("{{.absent}}")).toThrow("variable is not defined");
  });

  it("whatever stands around its tags", () => {
    const text = fc
      .string({ unit: fc.constantFrom("a", " ", "\n", "\\", "{", "}", "}}", "-", "~") })
      .filter((t) => !t.includes("{{") && !t.endsWith("{"));
    const tag = fc.constantFrom(
      { source: "{{.name}}", output: "node1" },
      { source: "{{/* c */}}", output: "" },
      { source: "{{if .on}}", output: "" },
    );
    const piece = fc.tuple(text, tag);
    const property = fc.property(fc.array(piece, { maxLength: 6 }), text, (pieces, last) => {
      const opened = pieces.filter(([, { source }]) => source.includes("if")).length;
      const source = pieces.map(([before, { source: s }]) => before + s).join("") + last + "{{end}}\n".repeat(opened);
      const output = pieces.map(([before, { output: o }]) => before + o).join("") + last + "\n".repeat(opened);
      // Go takes a hyphen and a space behind the braces for a trim marker; none of these tags has one.
      expect(rendered(source)).toBe(output);
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});

describe("a literal text", () => {
  it("is what its template yields", () => {
    const text = fc.string({ unit: fc.constantFrom("a", " ", "\n", "\\", "{", "}", "{{", "!", "~") });
    const property = fc.property(text, (literal) => {
      expect(compileTemplate(literalTemplate(literal), { sha256: () => "" }).render({})).toBe(literal);
    });
    fc.assert(property, { numRuns: 5_000 });
  });

  it("stays itself between tags", () => {
    const text = fc.string({ unit: fc.constantFrom("a", " ", "\n", "\\", "{", "}", "{{", "!") });
    const property = fc.property(text, text, text, (first, second, third) => {
      const output = new HandlebarsText();
      output.text(first);
      output.print("name");
      output.text(second);
      output.block("#if on");
      output.text(third);
      output.block("/if");
      output.text(first);
      const template = compileTemplate(output.toString(), { sha256: () => "" });
      expect(template.render(variables)).toBe(`${first}node1${second}${third}${first}`);
    });
    fc.assert(property, { numRuns: 5_000 });
  });
});

describe("what cannot be translated is told with its place", () => {
  it.each([
    {
      name: "a function",
      source: "a\n  {{urlquery .name}}",
      at: "2:3",
      text: '"urlquery" is not translated: put the value into the metadata as it stands in a URL',
    },
    {
      name: "printf",
      source: '{{printf "%s" .name}}',
      at: "1:1",
      text: '"printf" is not translated: write text and variables side by side',
    },
    {
      name: "len",
      source: "{{len .list}}",
      at: "1:1",
      text: '"len" is not translated: print the "length" of a list, such as disks.length',
    },
    {
      name: "a comparison of sizes",
      source: "{{if lt .count 4.0}}{{end}}",
      at: "1:1",
      text: '"lt" is not translated: put what it yields into the metadata',
    },
    {
      name: "a variable",
      source: "{{$x := .name}}{{$x}}",
      at: "1:1",
      text: "a variable is set: write its value where it is used",
    },
    {
      name: "a definition",
      source: '{{define "a"}}x{{end}}',
      at: "1:1",
      text: '"define" is not translated: write what it stands for in its place',
    },
    {
      name: "a template call",
      source: '{{template "a" .}}',
      at: "1:1",
      text: '"template" is not translated: write what it stands for in its place',
    },
    {
      name: "break",
      source: "{{range .list}}{{break}}{{end}}",
      at: "1:16",
      text: '"break" is not translated: write what it stands for in its place',
    },
    {
      name: "a method",
      source: '{{.name "a"}}',
      at: "1:1",
      text: "this expression is not translated: write it simpler",
    },
    {
      name: "a member of a result",
      source: '{{(index .net "gateway").mac}}',
      at: "1:1",
      text: "a member of a result is not translated: write it simpler",
    },
    {
      name: "an odd number",
      source: "{{if eq .count 0x1f}}{{end}}",
      at: "1:1",
      text: "this literal is not translated: write it as a plain text or number",
    },
    {
      name: "an action without an end",
      source: "a\n{{.name",
      at: "2:1",
      text: "not a Go template, matchbox answers 404: an action is not closed",
    },
    {
      name: "a block without an end",
      source: "{{if .on}}a",
      at: "1:1",
      text: "not a Go template, matchbox answers 404: a block is not closed",
    },
    {
      name: "an end of nothing",
      source: "a{{end}}",
      at: "1:2",
      text: 'not a Go template, matchbox answers 404: "end" belongs to no block',
    },
    {
      name: "nothing to print",
      source: "{{}}",
      at: "1:1",
      text: "this expression is not translated: write it simpler",
    },
    {
      name: "both quotes",
      source: '{{if eq .name "a\\"b\'c"}}{{end}}',
      at: "1:1",
      text: "a text with both kinds of quotes is not translated: put it into the metadata",
    },
    {
      name: "a name that means something",
      source: "{{range $this := .list}}{{end}}",
      at: "1:1",
      text: 'the variable "$this" has a name that davit uses: rename it',
    },
    {
      name: "deep nesting",
      source: "{{if .on}}".repeat(200),
      at: "1:901",
      text: "not a Go template, matchbox answers 404: blocks are nested too deeply",
    },
  ])("$name", ({ source, at, text }) => {
    const translation = translateGoTemplate(source);
    expect(translation.problems.map((problem) => `${problem.at.line}:${problem.at.column} ${problem.text}`)).toContain(
      `${at} ${text}`,
    );
  });

  it("all of a file's problems at once", () => {
    const translation = translateGoTemplate('{{len .a}}\n{{printf "%d" .b}}\n{{$c := 1}}');
    expect(translation.problems.map(({ at }) => at.line)).toEqual([1, 2, 3]);
  });

  it.each([
    { source: "a {{len .list}} {{.name}}", text: "a {{notImported}} {{name}}" },
    {
      source: "{{if lt .count 3}}{{.name}}{{else}}b{{end}}!",
      text: "{{notImported}}{{#with @root}}{{name}}{{/with}}b!",
    },
    { source: "{{range .list}}{{printf .}}{{end}}", text: "{{#each list}}{{@root.notImported}}{{/each}}" },
    {
      source: "{{if .off}}1{{else if len .a}}2{{else if .on}}3{{end}}4",
      text: "{{#if off}}1{{else}}{{notImported}}{{#with @root}}2{{/with}}{{#if on}}3{{/if}}{{/if}}4",
    },
    { source: "{{$x := .a}}{{$x}}", text: "{{notImported}}{{notImported}}" },
    { source: '{{define "t"}}x{{end}}{{template "t"}}y', text: "{{notImported}}{{notImported}}y" },
  ])("and the rest is kept, and answered 500: $source", ({ source, text }) => {
    const translation = translateGoTemplate(source);
    expect(translation).toMatchObject({ kind: "translated", text });
    expect(renderErrorOf(() => compileTemplate(text, { sha256: () => "" }).render(variables))?.reason).toBe(
      "undefinedVariable",
    );
  });

  it("a machine gets its config if a condition leaves the rest out", () => {
    const { text } = { text: "", ...translateGoTemplate("{{if .off}}{{len .a}}{{else}}b{{end}}") };
    expect(compileTemplate(text, { sha256: () => "" }).render(variables)).toBe("b");
  });

  it("nothing that is translated has a mistake for davit", () => {
    const tag = fc.constantFrom(
      "{{.a}}",
      "{{if .a}}",
      "{{else}}",
      "{{end}}",
      "{{range $i, $v := .a}}",
      "{{$v}}",
      "{{.}}",
      "{{- ",
      "x",
      "\n",
      "{",
      "}}",
      '{{index . "a]"}}',
      '{{eq .a "}}"}}',
      "{{if len .a}}",
      "{{else if len .a}}",
      "{{range $this := .a}}",
      "{{len .}}",
    );
    const property = fc.property(fc.array(tag, { maxLength: 12 }), (tags) => {
      const translation = translateGoTemplate(tags.join(""));
      if (translation.kind === "translated") expect(parseTemplate(translation.text)).toBeUndefined();
      else expect(translation.problems).not.toEqual([]);
    });
    fc.assert(property, { numRuns: 3_000 });
  });
});
