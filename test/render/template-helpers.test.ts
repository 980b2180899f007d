import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { render, renderErrorOf, sha256 } from "./fixtures.ts";

const mac = "52:54:00:a1:9c:ae";

describe("helpers", () => {
  it.each<{ template: string; variables?: JsonObject; result: string }>([
    { template: "{{lookup o 'b'}}", variables: { o: { b: 1 } }, result: "1" },
    { template: "{{lookup l 1}}", variables: { l: ["a", "b"] }, result: "b" },
    { template: "{{lookup o 'constructor'}}", variables: { o: {} }, result: "" },
    { template: "{{eq a 'x'}} {{eq a 'y'}}", variables: { a: "x" }, result: "true false" },
    { template: "{{eq n 4}} {{eq n '4'}}", variables: { n: 4 }, result: "true false" },
    {
      template: "{{eq a b}} {{ne a b}}",
      variables: { a: { x: [1], y: 2 }, b: { y: 2, x: [1] } },
      result: "true false",
    },
    { template: "{{eq a null}} {{eq a undefined}} {{eq a ''}}", result: "true true false" },
    { template: "{{and 1 'a' true}} {{and 1 0 true}} {{and ''}}", result: "true 0 " },
    { template: "{{or '' 0 'a' 'b'}} {{or false 0}}", result: "a 0" },
    { template: "{{not a}} {{not 1}}", result: "true false" },
    { template: "{{default a 'x'}} {{default '' 'x'}} {{default 0 'x'}} {{default false 'x'}}", result: "x x 0 false" },
    { template: "{{json a}}", variables: { a: `"\\\n\u0001é` }, result: String.raw`"\"\\\n\u0001é"` },
    { template: "{{json a}}", variables: { a: { b: [1, null, true], a: {} } }, result: '{"a":{},"b":[1,null,true]}' },
    { template: "{{json a}}", result: "null" },
    {
      template: "{{quote n}} {{quote a}} {{quote nothing}}",
      variables: { n: 5, a: `x"y` },
      result: String.raw`"5" "x\"y" ""`,
    },
    { template: "{{indent t 2}}", variables: { t: "a\n\nb\n" }, result: "  a\n\n  b\n" },
    { template: "{{urlEncode t}}{{urlEncode ''}}", variables: { t: "é %#'\n" }, result: "%C3%A9%20%25%23%27%0A" },
    { template: "{{base64 t}} {{base64 ''}}", variables: { t: "é\n" }, result: "w6kK " },
    { template: "{{lower 'AbÉ'}} {{upper 'abé'}}", result: "abé ABÉ" },
    { template: "{{replace 'a.b.c' '.' '$&'}} {{replace 'ab' '' 'x'}}", result: "a$&b$&c ab" },
    { template: "{{join l '-'}}{{join nothing '-'}}", variables: { l: ["a", 1, null] }, result: "a-1-" },
    { template: "{{#each (split 'a,b' ',')}}[{{this}}]{{/each}}{{json (split '' ',')}}", result: "[a][b][]" },
    { template: "{{sha256 'abc'}}", result: sha256("abc") },
    {
      template: "{{macHyphen m}} {{macBare m}} {{macBare '5254.00a1.9cae'}}",
      variables: { m: mac },
      result: "52-54-00-a1-9c-ae 525400a19cae 525400a19cae",
    },
    { template: "[{{macHyphen request.query.mac}}]", result: "[]" },
    { template: "{{upper (replace (lower a) 'x' (default b 'y'))}}", variables: { a: "X" }, result: "Y" },
  ])("`$template` is `$result`", ({ template, variables = {}, result }) => {
    expect(render(template, variables)).toBe(result);
  });

  it.each<{ template: string; variables?: JsonObject }>([
    { template: "{{macHyphen 'no mac'}}" },
    { template: "{{indent 'x' 101}}" },
    { template: "{{indent 'x' '2'}}" },
    { template: "{{indent 'x' 1.5}}" },
    { template: "{{join 'x' ','}}" },
  ])("`$template` is refused with its place", ({ template, variables = {} }) => {
    const error = renderErrorOf(() => render(`\n${template}`, variables));
    expect(error).toMatchObject({ reason: "badArgument", position: { line: 2, column: 1 } });
  });

  it("`json` prints any value so that it parses back", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const text: string = JSON.stringify(value);
        const variables: JsonObject = JSON.parse(`{"value":${text}}`);
        expect(JSON.parse(render("{{json value}}", variables))).toEqual(JSON.parse(text));
      }),
    );
  });

  it("`split` and `join` are inverse for texts that are not empty", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.string({ minLength: 1, maxLength: 2 }), (text, separator) => {
        expect(render("{{join (split text separator) separator}}", { text, separator })).toBe(text);
      }),
    );
  });
});
