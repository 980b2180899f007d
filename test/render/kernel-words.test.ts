import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasOpenQuote, isOneWord, wordsOf } from "../../src/render/boot/kernel-words.ts";
import { own, textOf } from "../../src/render/boot/pieces.ts";
import { readByLinux } from "./kernel-line.ts";

const value = (text: string) => ({ text, isValue: true });

describe("words of an argument", () => {
  it.each([
    { argument: "a  b\tc", words: ["a", "b", "c"] },
    { argument: `opt="two words"`, words: ["opt=two words"] },
    { argument: `a"b c"d"e f" g`, words: ["ab cde f", "g"] },
    { argument: `open="never ends here`, words: ["open=never ends here"] },
    { argument: `"" x`, words: ["x"] },
    { argument: "", words: [] },
  ])("`$argument` is $words", ({ argument, words }) => {
    expect(wordsOf(argument).map(({ bare }) => textOf(bare))).toEqual(words);
  });

  it.each([
    {
      name: "blanks and quotes of a value",
      argument: [own("a="), value(`x "y z`), own(" b")],
      words: [`a=x "y z`, "b"],
    },
    { name: "a value between quotes", argument: [own(`a="`), value("x y"), own(` z" b`)], words: ["a=x y z", "b"] },
    { name: "a value alone", argument: [value(" x ")], words: [" x "] },
    { name: "two values", argument: [value("x "), own(" "), value(" y")], words: ["x ", " y"] },
  ])("$name end no word", ({ argument, words }) => {
    expect(wordsOf(argument).map(({ bare }) => textOf(bare))).toEqual(words);
  });

  it("keep their quotes in their source", () => {
    const words = wordsOf([own(`quiet a="`), value("x"), own(`" "b c"`)]);
    expect(words.map(({ source }) => textOf(source))).toEqual(["quiet", `a="x"`, `"b c"`]);
  });

  it("an open quote is one of the author's alone", () => {
    expect([`a="b`, `a="b"`, [own("a="), value('"')]].map(hasOpenQuote)).toEqual([true, false, false]);
  });
});

describe("one word to Linux", () => {
  it.each([
    { text: "a=b", isOne: true },
    { text: "a b", isOne: false },
    { text: `"a b"`, isOne: true },
    { text: `a="b c"`, isOne: true },
    { text: `a="b" c`, isOne: false },
    { text: `a="b`, isOne: false },
    { text: "a=à", isOne: false },
    { text: `"a=à"`, isOne: true },
    { text: "a=ä", isOne: true },
    { text: "a=\u00a0b", isOne: false },
  ])("`$text`: $isOne", ({ text, isOne }) => {
    expect(isOneWord([own(text)])).toBe(isOne);
  });

  it.each([
    { name: "a quote before the word", text: [value('"a"')] },
    { name: "quotes behind =", text: [own("a="), value('"b"')] },
    { name: "a quote behind the first =", text: [own('"a'), value('="b"'), own('"')] },
  ])("takes $name away, so that a value may not have it", ({ text }) => {
    expect(isOneWord(text)).toBe(false);
    expect(isOneWord([own(textOf(text))])).toBe(readByLinux(textOf(text)).length === 1);
  });

  it("is what Linux reads as one, and what it reads unchanged where all of it is a value", () => {
    const letters = fc.constantFrom("a", "=", '"', " ", "\\", "'", "à", "é", "😀", "\u00a0");
    fc.assert(
      fc.property(fc.string({ unit: letters, minLength: 1, maxLength: 12 }), (text) => {
        fc.pre(!/^[\s\u00a0]|^"*$/.test(text));
        const read = readByLinux(text);
        const isClosed = text.split('"').length % 2 === 1;
        const isWhole = isClosed && read.length === 1 && read[0] === text;
        if (isOneWord([value(text)])) expect(isWhole).toBe(true);
        if (isOneWord([own(text)])) expect(read).toHaveLength(1);
      }),
      { numRuns: 2_000 },
    );
  });
});
