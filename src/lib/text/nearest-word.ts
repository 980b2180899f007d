/** Finds the word that a person probably meant. */

import { closest, distance } from "fastest-levenshtein";

/** Shorter words are too much alike. */
const leastLength = 3;

/** Returns the word of a list that is most like a mistyped one; undefined if none is like it. */
export function nearestWord(word: string, words: readonly string[]): string | undefined {
  if (word.length < leastLength || words.length === 0) return undefined;
  const isLonger = (each: string) => each.startsWith(word) || (each.length >= leastLength && word.startsWith(each));
  const known = words.find((each) => isLonger(each) || lettersOf(each) === lettersOf(word));
  if (known !== undefined) return known;
  const near = closest(word, [...words]);
  // One mistake in three letters.
  return distance(word, near) <= Math.floor(word.length / leastLength) ? near : undefined;
}

function lettersOf(word: string): string {
  return [...word].toSorted().join("");
}
