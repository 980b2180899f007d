/**
 * Files of bearer tokens: one token a line; empty lines and lines that begin with `#` say nothing. Both ends of the
 * store's door read them, the listener and those who follow it.
 */

import { FileProblem } from "./watched-files.ts";

// Shorter ones can be guessed over the network; longer ones, beyond a cluster's with many claims, do not fit a request.
const minTokenLength = 16;
const maxTokenLength = 8 * 1024;

/**
 * The tokens of a file, in its order; there may be none.
 * @throws {FileProblem} for a line that is no token: its number, never its text.
 */
export function readTokens(text: string): readonly string[] {
  const lines = text.split("\n").map((line, at) => ({ token: line.trim(), number: at + 1 }));
  const given = lines.filter(({ token }) => token !== "" && !token.startsWith("#"));
  for (const { token, number } of given) {
    if (!/^[\x21-\x7e]+$/.test(token)) throw new FileProblem(`line ${number} is not one word of ASCII`);
    if (token.length < minTokenLength || token.length > maxTokenLength) {
      throw new FileProblem(
        `the token of line ${number} is not ${minTokenLength} to ${maxTokenLength} characters long`,
      );
    }
  }
  return given.map(({ token }) => token);
}
