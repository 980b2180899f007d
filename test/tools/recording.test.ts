/** The terminal that recordings are drawn from, and the drawing. */

import { describe, expect, it } from "vitest";
import { drawRecording } from "../../tools/generate/recording-svg.ts";
import { Terminal } from "../../tools/generate/terminal.ts";

function screen(...texts: readonly string[]): readonly string[] {
  const terminal = new Terminal(10, 3);
  for (const text of texts) terminal.write(text);
  return terminal
    .rows()
    .map((runs) => runs.map(({ text, style }) => (style === "" ? text : `<${style}:${text}>`)).join(""));
}

describe("the terminal", () => {
  it.each([
    ["one\r\ntwo", ["one", "two"]],
    ["1\r\n2\r\n3\r\n4", ["2", "3", "4"]],
    ["12345678901", ["1234567890", "1"]],
    ["\u001b[?7l12345678901", ["1234567891"]],
    ["10%\r100%", ["100%"]],
    ["ab\b \b", ["a"]],
    ["old\u001bcnew", ["new"]],
    ["a\u001b[2;3Hb", ["a", "  b"]],
    ["\u001b[0;1mB\u001b[0;36mC\u001b[0m.", ["<bold:B><colour6:C>."]],
    ["\u001b[6n?", ["?"]],
  ])("shows %j as %j", (text, rows) => {
    expect(screen(text)).toEqual(rows);
  });

  it("takes an escape sequence in two pieces", () => {
    expect(screen("a\u001b[", "32mb")).toEqual(["a<colour2:b>"]);
  });
});

it("a drawing shows each row in its time, and has no script", () => {
  const row = (text: string) => [{ text, style: "" }];
  const frames = [
    { atMs: 0, rows: [row("$ <first>")] },
    { atMs: 2_000, rows: [row("$ <first>"), row("then")] },
  ];
  const svg = drawRecording([{ title: "pane", height: 2, frames }], 20);
  expect(svg).toContain("$ &lt;first&gt;</text>");
  expect(svg).toContain("{0%{visibility:hidden}25%{visibility:visible}}");
  expect(svg.match(/<text class="t\d/g)).toHaveLength(2);
  expect(svg).not.toContain("<script");
});
