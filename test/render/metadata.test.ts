import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BugError } from "../../src/lib/errors.ts";
import { isJsonObject } from "../../src/model/json.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { groupLines, renderMetadata } from "../../src/render/metadata/metadata.ts";
import { group, parsed, renderErrorOf } from "./fixtures.ts";

function metadataOf(metadata: string, selector: Readonly<Record<string, string>> = {}, rawQuery = ""): string {
  const value = parsed(metadata);
  if (!isJsonObject(value)) throw new Error("Metadata is an object");
  return renderMetadata(groupLines(group({ metadata: value, selector })), labelsFromQuery(rawQuery), rawQuery).body;
}

/** The lines without the raw query's. */
function linesOf(metadata: string, selector?: Readonly<Record<string, string>>): readonly string[] {
  return metadataOf(metadata, selector).split("\n").slice(0, -2);
}

/** Reads env-file text back, as docs/reference/api-boot.md describes it. */
function parse(body: string): ReadonlyMap<string, string> {
  expect(body.endsWith("\n")).toBe(true);
  const pairs = body
    .slice(0, -1)
    .split("\n")
    .map((line) => /^([A-Z_][A-Z0-9_]*)=(.*)$/su.exec(line) ?? []);
  return new Map(pairs.map(([, name = "", value = ""]) => [name, unquote(value)]));
}

function unquote(text: string): string {
  if (text.startsWith("'")) return text.slice(1, -1).replaceAll(String.raw`'\''`, "'");
  if (!text.startsWith('"')) return text;
  return text.slice(1, -1).replaceAll(/\\(?:x([0-9a-f]{2})|(.))/gsu, (_escape, hex?: string, character?: string) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    return (
      new Map([
        ["n", "\n"],
        ["r", "\r"],
        ["t", "\t"],
      ]).get(character ?? "") ??
      character ??
      ""
    );
  });
}

describe("renderMetadata", () => {
  it("writes the documented lines", async () => {
    const metadata = `{
      "foo": "bar", "etcd": {"name": "node1", "peers": ["a", {"b": 1}], "none": {}, "nothing": null}, "count": 1000000,
      "debug": false, "empty": "", "dash-key": 1, "dot.key": 2, "7days": 3, "request": {"lost": true}, "é": "ü"
    }`;
    const query = "mac=52-54-00-a1-9c-ae&foo=some-param&bar=b&uuid=ABC&note=a%0aB=1&os=x%20y";
    const body = metadataOf(metadata, { mac: "52:54:00:a1:9c:ae", Role: "web" }, query);
    await expect(body).toMatchFileSnapshot("../golden/metadata/documented.env");
  });

  it("has its type", () => {
    expect(renderMetadata(groupLines(group({})), new Map(), "").contentType).toBe("text/plain; charset=utf-8");
  });

  it.each([
    { name: "nothing known", metadata: "{}", query: "", body: "REQUEST_RAW_QUERY=\n" },
    {
      name: "a MAC from the request alone",
      metadata: "{}",
      query: "mac=525400A19CAE",
      body: "MAC=52:54:00:a1:9c:ae\nREQUEST_QUERY_MAC=52:54:00:a1:9c:ae\nREQUEST_RAW_QUERY=mac=525400A19CAE\n",
    },
    {
      name: "a MAC that metadata names",
      metadata: '{"mac":"m"}',
      query: "mac=525400a19cae",
      body: "MAC=m\nREQUEST_QUERY_MAC=52:54:00:a1:9c:ae\nREQUEST_RAW_QUERY=mac=525400a19cae\n",
    },
    { name: "an invalid MAC", metadata: "{}", query: "mac=x", body: "REQUEST_RAW_QUERY=mac=x\n" },
    {
      name: "a raw query with quotes",
      metadata: "{}",
      query: '"&\\',
      body: "REQUEST_QUERY__=\nREQUEST_RAW_QUERY='\"&\\'\n",
    },
    {
      name: "a raw query of values and two flags",
      metadata: "{}",
      query: "b=1&c=2=&d&e",
      body: [
        ...["REQUEST_QUERY_B=1", "REQUEST_QUERY_C='2='", "REQUEST_QUERY_D=", "REQUEST_QUERY_E="],
        "REQUEST_RAW_QUERY='b=1&c=2=&d&e'\n",
      ].join("\n"),
    },
  ])("$name", ({ metadata, query, body }) => {
    expect(metadataOf(metadata, {}, query)).toBe(body);
  });

  it.each([
    { name: "nested keys", metadata: '{"a":{"b":{"c":1}}}', lines: ["A_B_C=1"] },
    { name: "lists", metadata: '{"a":[1,[2],{"b":3}]}', lines: ["A_0=1", "A_1_0=2", "A_2_B=3"] },
    { name: "null and empty things", metadata: '{"a":null,"b":{},"c":[],"d":""}', lines: ["D="] },
    {
      name: "numbers",
      metadata: '{"a":1e21,"b":1.5,"c":-1e-7,"d":-0,"e":9007199254740993}',
      lines: ["A=1000000000000000000000", "B=1.5", "C=-0.0000001", "D=0", "E=9007199254740992"],
    },
    {
      name: "odd names",
      metadata: '{"a b":1,"":2,"1":3,"x\\ny":4,"\u{1f600}":5}',
      lines: ["A_B=1", "X_Y=4", "_=2", "_1=3"],
    },
    {
      name: "names of every object",
      metadata: '{"__proto__":1,"constructor":{"x":2}}',
      lines: ["CONSTRUCTOR_X=2", "__PROTO__=1"],
    },
    { name: "byte order", metadata: '{"b":1,"a":2,"a1":3,"a_":4}', lines: ["A=2", "A1=3", "A_=4", "B=1"] },
  ])("$name", ({ metadata, lines }) => {
    expect(linesOf(metadata)).toEqual(lines);
  });

  it.each([
    { value: "two words", written: "two words" },
    { value: "a$b;c#d&e|f(g)<h>", written: "a$b;c#d&e|f(g)<h>" },
    { value: 'say "hi"', written: 'say "hi"' },
    { value: "it's a `b` $(c) $" + "{d} <<e \\", written: "it's a `b` $(c) $" + "{d} <<e \\" },
    { value: `"x"`, written: `"x"` },
    { value: " #x ", written: " #x " },
    { value: 'a\n"$`\\', written: '"a\\n\\"\\$\\`\\\\"' },
    { value: "a\nb\rc\td\u0000e\u007f", written: String.raw`"a\nb\rc\td\x00e\x7f"` },
  ])("a value is written $written", ({ value, written }) => {
    expect(linesOf(JSON.stringify({ v: value }))).toEqual([`V=${written}`]);
  });

  it.each([
    { sent: "a.b_c:d@e%25f%2Bg,h/i-j", written: "a.b_c:d@e%f+g,h/i-j" },
    { sent: "", written: "" },
    { sent: "x=1;set check_signatures=no;boot", written: "'x=1;set check_signatures=no;boot'" },
    { sent: "check_signatures=no", written: "'check_signatures=no'" },
    { sent: "$(id)", written: "'$(id)'" },
    { sent: "it's", written: String.raw`'it'\''s'` },
    { sent: "'", written: String.raw`''\'''` },
    { sent: "two words", written: "'two words'" },
    { sent: "a%0aB=1%00%7f%c2%85", written: "'a?B=1???'" },
    { sent: "%5c", written: String.raw`'\'` },
    { sent: "%c3%bc", written: "'ü'" },
    { sent: "%ff", written: "'\ufffd'" },
    { sent: "%7e", written: "'~'" },
  ])("a value of the request is written $written", ({ sent, written }) => {
    expect(metadataOf("{}", {}, `x=${sent}`).split("\n")[0]).toBe(`REQUEST_QUERY_X=${written}`);
  });

  it.each(["it's", 'a"b', "`a", "$(a", "$" + "{a", "<<a", "a\\", '"$(a"', `"a'`, "$'a\\'"])(
    "nothing of a request can run beside a value that leaves something open: %s",
    (v) => {
      const lines = metadataOf(JSON.stringify({ v }), {}, "x=a%20'$(b)-c&y=d").split("\n");
      expect(lines.slice(0, 4)).toEqual([
        `V=${v}`,
        "REQUEST_QUERY_X=a????b?-c",
        "REQUEST_QUERY_Y=d",
        "REQUEST_RAW_QUERY=x?a%20???b?-c?y?d",
      ]);
    },
  );

  it.each(['say "hi"', "'a`$('", '"a\\"b`c"'.replace("`", ""), "a\\'b", "$HOME <a>", 'a"b\\$(c"'])(
    "a value that closes what it opens changes nothing of the request: %s",
    (v) => expect(metadataOf(JSON.stringify({ v }), {}, "x=a%20b")).toContain("\nREQUEST_QUERY_X='a b'\n"),
  );

  it.each([
    { rawQuery: "mac=52-54-00-a1-9c-ae&a=%20+,.:@/_b==&=&&c=", isBare: true },
    { rawQuery: "flag", isBare: true },
    { rawQuery: "a=1&reboot", isBare: false },
    { rawQuery: "a=1;reboot", isBare: false },
    { rawQuery: "a=$(id)", isBare: false },
    { rawQuery: "a='b'", isBare: false },
    { rawQuery: "a=~", isBare: false },
  ])("a raw query is exact: $rawQuery", ({ rawQuery, isBare }) => {
    const line = metadataOf("{}", {}, rawQuery).split("\n").at(-2);
    const quoted = `'${rawQuery.replaceAll("'", String.raw`'\''`)}'`;
    expect(line).toBe(`REQUEST_RAW_QUERY=${isBare ? rawQuery : quoted}`);
  });

  it.each([
    {
      name: "a selector wins over metadata",
      metadata: '{"role":"m"}',
      selector: { role: "s" },
      query: "",
      line: "ROLE=s",
    },
    { name: "the lower path wins", metadata: '{"a.b":1,"a_b":2,"a":{"b":3}}', selector: {}, query: "", line: "A_B=3" },
    { name: "the lower label wins", metadata: "{}", selector: {}, query: "foo=1&FOO=2", line: "REQUEST_QUERY_FOO=2" },
    {
      name: "the request wins over all",
      metadata: '{"REQUEST":{"QUERY":{"X":1}}}',
      selector: { request_query_x: "2" },
      query: "x=3",
      line: "REQUEST_QUERY_X=3",
    },
    {
      name: "the raw query is the request's",
      metadata: '{"request_raw_query":1}',
      selector: {},
      query: "a",
      line: "REQUEST_RAW_QUERY=a",
    },
  ])("a name comes once: $name", ({ metadata, selector, query, line }) => {
    const name = line.slice(0, line.indexOf("=") + 1);
    const lines = metadataOf(metadata, selector, query).split("\n");
    expect(lines.filter((other) => other.startsWith(name))).toEqual([line]);
  });

  it("refuses metadata nested deeper than 64 levels", () => {
    const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    expect(linesOf(nested(64))).toEqual([`${"A_".repeat(63)}A=1`]);
    expect(renderErrorOf(() => linesOf(nested(65))).reason).toBe("metadataTooDeep");
  });

  it("refuses metadata of more than 8 MiB", () => {
    const list = (count: number) => `{"${"a".repeat(1_019)}":[${Array.from({ length: count }, () => 1).join()}]}`;
    expect(linesOf(list(8_000))).toHaveLength(8_000);
    expect(renderErrorOf(() => linesOf(list(9_000))).reason).toBe("metadataTooLarge");
  });

  it("treats a line break in the raw query as a bug", () => {
    expect(() => renderMetadata(groupLines(group({})), new Map(), "a\nB=1")).toThrow(BugError);
  });

  it("parses back, each name once, whatever the values are", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(fc.dictionary(text, fc.nat()), fc.dictionary(text, text), (metadata, query) => {
        const rawQuery = new URLSearchParams(query).toString();
        const body = metadataOf(JSON.stringify(metadata), {}, rawQuery);
        const values = parse(body);
        expect(values.size).toBe(body.split("\n").length - 1);
        expect(values.get("REQUEST_RAW_QUERY")).toBe(rawQuery);
        for (const [label, value] of labelsFromQuery(rawQuery)) {
          if (!/^[A-Z]+$/.test(label)) continue;
          expect(values.get(`REQUEST_QUERY_${label}`)).toBe(value.replaceAll(/\p{Cc}/gu, "?"));
        }
      }),
    );
    fc.assert(
      fc.property(text, (v) => {
        const written = parse(metadataOf(JSON.stringify({ v }))).get("V");
        expect(/\p{Cc}/u.test(v) ? written : metadataOf(JSON.stringify({ v })).slice(2, 2 + v.length)).toBe(v);
      }),
    );
  });

  it("sorts the labels of a request, whatever was asked before", () => {
    const wanted = ["REQUEST_QUERY_A=1", "REQUEST_QUERY_A_B=2", "REQUEST_QUERY_Z=4"];
    const orders = ["a=1&a-b=2&a.b=3&z=4", "z=4&a.b=3&a-b=2&a=1", "a-b=2&a=1&z=4&a.b=3"];
    for (let round = 0; round < 2; round++) {
      for (const order of orders) expect(metadataOf("{}", {}, order).split("\n").slice(0, 3)).toEqual(wanted);
      // More labels than the cache holds, and longer ones.
      for (let at = 0; at < 1_100; at++) metadataOf("{}", {}, `stray${at}=1&${"x".repeat(100)}${at}=2`);
    }
  });

  it("does not depend on the order in which keys were written", () => {
    const entries = fc.array(fc.tuple(fc.string({ maxLength: 2 }), fc.nat()), { maxLength: 8 });
    fc.assert(
      fc.property(entries, (pairs) => {
        const unique = [...new Map(pairs)].filter(([key]) => key !== "__proto__");
        const [one, other] = [unique, unique.toReversed()].map((list) => JSON.stringify(Object.fromEntries(list)));
        expect(metadataOf(one ?? "")).toBe(metadataOf(other ?? ""));
      }),
    );
  });
});
