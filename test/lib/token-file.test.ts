import { describe, expect, it } from "vitest";
import { readTokens } from "../../src/lib/files/token-file.ts";
import { FileError } from "../../src/lib/files/watched-files.ts";

const one = "first-token-0123456789";
const two = "c2Vjb25kLXRva2Vu+/==";

describe("`readTokens`", () => {
  it.each([
    { name: "one a line", text: `${one}\n${two}\n`, tokens: [one, two] },
    { name: "without a newline at the end", text: one, tokens: [one] },
    {
      name: "with comments, empty lines, spaces and Windows line ends",
      text: `# a\r\n\r\n  ${one} \r\n`,
      tokens: [one],
    },
    { name: "none at all", text: "# nobody yet\n", tokens: [] },
  ])("reads $name", ({ text, tokens }) => {
    expect(readTokens(text)).toEqual(tokens);
  });

  it.each([
    { name: "two words", line: `${one} ${two}`, said: "line 2 is not one word of ASCII" },
    { name: "letters beyond ASCII", line: "tökentökentökentöken", said: "line 2 is not one word of ASCII" },
    { name: "15 characters", line: "x".repeat(15), said: "the token of line 2 is not 16 to 8192 characters long" },
    { name: "8193 characters", line: "x".repeat(8193), said: "the token of line 2 is not 16 to 8192 characters long" },
  ])("refuses $name by the line's number, without quoting it", ({ line, said }) => {
    expect(() => readTokens(`${one}\n${line}\n`)).toThrow(new FileError(said));
  });
});
