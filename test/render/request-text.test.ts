/** A request's string that counts as harmless is one scalar of YAML, wherever a template puts it. */

import { expect, it } from "vitest";
import { parse } from "yaml";
import { isHarmless } from "../../src/render/core/request-text.ts";

const letters = ["a", "1", "-", ".", "_", ":", "@", "%", "+", ",", "/", "="];

function* words(length: number): Iterable<string> {
  if (length > 0) for (const word of words(length - 1)) for (const letter of letters) yield `${word}${letter}`;
  else yield "";
}

const isScalar = (value: unknown) => typeof value !== "object" || value === null;

/** True if the word is one scalar as a value, in a list, between brackets and as a key, and changes nothing beside. */
function isOneScalar(word: string): boolean {
  try {
    const { value, after } = parse(`value: ${word}\nafter: 1\n`);
    const { items } = parse(`items:\n  - ${word}\n  - 1\n`);
    const { between } = parse(`between: [${word}, 1]\n`);
    const own = parse(`${word}\n`);
    const lists = [items, between].every((list) => list.length === 2 && isScalar(list[0]));
    return isScalar(value) && after === 1 && lists && isScalar(own);
  } catch {
    return false;
  }
}

it("holds for every word of up to three characters", () => {
  const all = [1, 2, 3].flatMap((length) => [...words(length)]).filter(isHarmless);
  expect(all.filter((word) => !isOneScalar(word))).toEqual([]);
  expect(all.length).toBeGreaterThan(300);
});

it.each(["52:54:00:a1:9c:ae", "node7.lab.example", "4c4c4544-0042", "ttyS0", "/dev/sda", "a@b", "50%", ""])(
  "is said of %j",
  (text) => expect(isHarmless(text)).toBe(true),
);

it.each(["@a", "%YAML", "a:", "-", "---", "...", ",a", "a,b", "`a`", "a b", "a=b"])("is not said of %j", (text) =>
  expect(isHarmless(text)).toBe(false),
);
