import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isForm, parseFields } from "../../src/http/keys/form.ts";

describe("`parseFields`", () => {
  it.each([
    { text: "", fields: {} },
    { text: "a=b", fields: { a: "b" } },
    { text: "a=1&a=2&&b", fields: { a: "1", b: "" } },
    { text: "a=b=c&=x", fields: { a: "b=c", "": "x" } },
    { text: "a%3D=+%20%2B&A=x", fields: { "a=": "  +", A: "x" } },
    { text: "a=%C3%A9\u00c3\u00a9", fields: { a: "éé" } },
    { text: "a=%FF%00", fields: { a: "\ufffd\u0000" } },
    { text: "a=%EF%BB%BFx", fields: { a: "\ufeffx" } },
    { text: "__proto__=x", fields: { ["__proto__"]: "x" } },
  ])("reads $text", ({ text, fields }) => {
    expect([...parseFields(text)]).toEqual(Object.entries(fields));
  });

  it.each([
    { text: "a=%zz", cause: 'invalid URL escape "%zz"' },
    { text: "a=%4", cause: 'invalid URL escape "%4"' },
    { text: "a=%", cause: 'invalid URL escape "%"' },
    { text: "%g1=x&b=%h1", cause: 'invalid URL escape "%g1"' },
    { text: "a=%zz&b;c", cause: "invalid semicolon separator in query" },
  ])("refuses $text: $cause", ({ text, cause }) => {
    expect(() => parseFields(text)).toThrowError(
      expect.objectContaining({ refusal: "invalidForm", causeText: cause, index: 0 }),
    );
  });

  it("undoes the escapes of any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const wellFormed = text.toWellFormed();
        expect(parseFields(`a=${encodeURIComponent(wellFormed)}`).get("a")).toBe(wellFormed);
        expect(parseFields(new URLSearchParams({ a: wellFormed }).toString()).get("a")).toBe(wellFormed);
      }),
    );
  });
});

describe("`isForm`", () => {
  it.each([
    { type: undefined, form: false },
    { type: "", form: false },
    { type: "application/x-www-form-urlencoded", form: true },
    { type: " Application/X-WWW-Form-Urlencoded ;charset=utf-8", form: true },
    { type: 'application/x-www-form-urlencoded; a="b\\"c;" ; ', form: true },
    { type: "text", form: false },
    { type: "application/json; charset=utf-8", form: false },
  ])("of $type is $form", ({ type, form }) => {
    expect(isForm(type)).toBe(form);
  });
});
