/** Edits of one object in a manifest. */

import { expect, it } from "vitest";
import type { ObjectName } from "../../../src/model/objects/source.ts";
import { editObject, objectIn } from "../../../src/sources/directory/edit-object.ts";

const name: ObjectName = { kind: "Group", namespace: "default", name: "web" };
const head = "apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: web}\n";
const install = { generation: 7, ledger: "12345678", until: "2026-11-25T18:00:00Z", scope: "NeverInstalled" };
const block =
  '  install:\n    generation: 7\n    ledger: "12345678"\n    until: "2026-11-25T18:00:00Z"\n    scope: "NeverInstalled"\n';
const flow = '{generation: 7, ledger: "12345678", until: "2026-11-25T18:00:00Z", scope: "NeverInstalled"}';

function edited(text: string, format: "yaml" | "json" = "yaml"): string {
  const outcome = editObject(text, format, { name, spec: { install } });
  return outcome.kind === "edited" ? outcome.text : outcome.kind;
}

it.each([
  ["a spec without a grant", `${head}spec:\n  profileRef: {name: web}   # the one\n`, (text: string) => text + block],
  [
    "comments and blank lines, which stay",
    `# ours\n${head}spec:\n\n  # who\n  selector:\n    matchLabels:\n      role: web # all\n\n# the end\n---\n# another\nkind: ConfigMap\n`,
    (text: string) => text.replace("web # all\n", `web # all\n${block}`),
  ],
  ["a list at the end", `${head}spec:\n  args:\n  - a\n  - b # last\n`, (text: string) => text + block],
  [
    "a block text at the end",
    `${head}spec:\n  metadata:\n    a: |\n      x\n      y\n`,
    (text: string) => text + block,
  ],
  [
    "a file without its final newline",
    `${head}spec:\n  profileRef: {name: web}`,
    (text: string) => `${text}\n${block}`,
  ],
  [
    "Windows lines",
    `${head}spec:\n  profileRef: {name: web}\n`.replaceAll("\n", "\r\n"),
    (text: string) => text + block.replaceAll("\n", "\r\n"),
  ],
  [
    "a spec in braces",
    `${head}spec: {profileRef: {name: web}} # short\n`,
    (text: string) => text.replace("{name: web}} #", `{name: web}, install: ${flow}} #`),
  ],
  [
    "a grant before, with its comments",
    `${head}spec:\n  install:\n    generation: 6 # was 5\n    ledger: "9f3c0a52"\n    # when\n    until: 2026-11-20T18:00:00Z\n  hold: false\n`,
    (text: string) =>
      text
        .replace("6 #", "7 #")
        .replace("9f3c0a52", "12345678")
        .replace("2026-11-20T18:00:00Z\n", '"2026-11-25T18:00:00Z"\n    scope: "NeverInstalled"\n'),
  ],
  [
    "a grant in braces",
    `${head}spec:\n  install: {generation: 6, ledger: abc}\n`,
    (text: string) => text.replace("{generation: 6, ledger: abc}", flow),
  ],
  [
    "an empty grant",
    `${head}spec:\n  install:\n  hold: false\n`,
    (text: string) => text.replace("install:", `install: ${flow}`),
  ],
  [
    "an object of a List",
    `apiVersion: v1\nkind: List\nitems:\n- apiVersion: davit.dev/v1alpha1\n  kind: Group\n  metadata:\n    name: web\n  spec:\n    hold: true\n- kind: Other\n`,
    (text: string) => text.replace("hold: true\n", `hold: true\n${block.replaceAll(/^/gm, "  ").trimEnd()}\n`),
  ],
])("%s", (_, text, wanted) => {
  expect(edited(text)).toBe(wanted(text));
});

it("JSON stays JSON", () => {
  const text = `{\n  "apiVersion": "davit.dev/v1alpha1",\n  "kind": "Group",\n  "metadata": {"name": "web"},\n  "spec": {\n    "hold": false\n  }\n}\n`;
  const after = edited(text, "json");
  expect(JSON.parse(after).spec).toEqual({ hold: false, install });
  expect(after.startsWith(text.slice(0, text.indexOf('"hold": false') + 13))).toBe(true);
});

it.each([
  ["a grant that is an alias", `${head}spec:\n  metadata: &m {generation: 1}\n  install: *m\n`],
  [
    "a spec with an anchor that another object uses",
    `${head}spec: &s\n  hold: true\n---\n${head.replace("web", "db")}spec:\n  hold: false\n`,
  ],
  ["a grant merged from elsewhere", `${head}spec:\n  metadata: {a: &m {install: {generation: 1}}}\n  <<: *m\n`],
])("%s is edited rightly or not at all", (_, text) => {
  const outcome = editObject(text, "yaml", { name, spec: { install } });
  if (outcome.kind !== "edited") return expect(outcome.kind).toBe("unclear");
  expect(objectIn(outcome.text, "yaml", name)?.spec).toMatchObject({ install });
});

it("what is defined twice is not edited, and what is not there is absent", () => {
  expect(edited(`${head}spec: {hold: true}\n---\n${head}spec: {hold: true}\n`)).toBe("unclear");
  expect(edited(head.replace("web", "db"))).toBe("absent");
  expect(edited(`${head}spec: {`)).toBe("absent");
  expect(edited(`a: &a [*a, *b]\n---\n${head}spec: {hold: true}\n`)).not.toContain("install: *");
});
