import { describe, expect, it } from "vitest";
import { piecesOf } from "../../../src/offline/load/read-input.ts";
import { groupText } from "../../sources/directory/manifests.ts";

const item = (name: string) => `- apiVersion: davit.dev/v1alpha1
  kind: Group
  metadata:
    name: ${name}
  spec:
    matchAll: true
    profileRef:
      name: web
  status:
    conditions:
    - type: Ready
      status: "True"
    observedGeneration: 1
`;

const list = (...items: readonly string[]) => `apiVersion: v1\nitems:\n${items.join("")}kind: List\nmetadata: {}\n`;

describe("`piecesOf()`", () => {
  it("takes a List of kubectl apart into its items, at their lines and columns", () => {
    const pieces = piecesOf(list(item("a"), item("b")));
    expect(pieces.map(({ start }) => start)).toEqual([
      { line: 3, document: 1 },
      { line: 16, document: 1 },
    ]);
    expect(pieces[1]?.text.split("\n").slice(0, 4)).toEqual([
      "  apiVersion: davit.dev/v1alpha1",
      "  kind: Group",
      "  metadata:",
      "    name: b",
    ]);
  });

  it("leaves the status of an item out, and its lines where they were", () => {
    const [piece] = piecesOf(list(`${item("a")}  zone: b\n`));
    expect(piece?.text).not.toContain("conditions");
    expect(piece?.text.split("\n").indexOf("  zone: b")).toBe(13);
  });

  it("takes documents apart, at their lines and numbers", () => {
    const text = `# first\n${groupText("a")}---\n${groupText("b")}--- # third\n${list(item("c"), item("d"))}`;
    const pieces = piecesOf(text);
    expect(pieces.map(({ start }) => start)).toEqual([
      { line: 1, document: 1 },
      { line: 8, document: 2 },
      { line: 18, document: 3 },
      { line: 31, document: 3 },
    ]);
  });

  it.each([
    ["a List that a person wrote", "apiVersion: v1\nkind: List\nitems:\n- a: 1\n"],
    ["a List with a line that is of no item", "apiVersion: v1\nitems:\n- a: |\nb\nkind: List\n"],
    ["a List without an end", "apiVersion: v1\nitems:\n- a: 1\n"],
    ["a List without items", "apiVersion: v1\nitems:\nkind: List\n"],
    ["documents with directives", "%YAML 1.2\n---\na: 1\n---\nb: 1\n"],
    ["nothing", ""],
  ])("leaves %s whole", (_, text) => {
    expect(piecesOf(text)).toEqual([{ text, start: { line: 1, document: 1 } }]);
  });
});
