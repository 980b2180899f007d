/** Files and documents that look as if they were meant for nobody, and are not passed over. */

import { expect, it } from "vitest";
import { Admission } from "../../../src/sources/admission/admission.ts";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import { readFileBytes } from "../../../src/sources/directory/read-file.ts";
import { groupText, profileText } from "./manifests.ts";

const admission = new Admission(await readCrds(packagedCrdsDirectory));

function read(text: string, path = "a.yaml") {
  return readFileBytes(path, new TextEncoder().encode(text), admission);
}

function messages(text: string, path?: string): readonly string[] {
  return read(text, path).problems.map(({ message }) => message);
}

it.each([
  { name: "zero bytes", text: "" },
  { name: "a byte order mark", text: "\ufeff" },
  { name: "blank lines", text: "\n \n" },
  { name: "comments", text: "# kind: Group\n# spec: {}\n" },
  { name: "`---`", text: "---\n---\n" },
  { name: "a null", text: "null\n" },
  { name: "a List of nothing", text: "apiVersion: v1\nkind: List\nitems: []\n" },
])("a file of $name alone is a problem", ({ text }) => {
  expect(messages(text)).toEqual(["The file holds no document: remove the file if that is meant"]);
});

it("a JSON file of zero bytes is a problem, too", () => {
  expect(messages("", "a.json")).toEqual(["The file holds no document: remove the file if that is meant"]);
});

it.each(["items:", "items: {a: 1}", "metadata: {}", `items: [{apiVersion: v1, kind: List, items: []}]`])(
  "a List with `%s` is refused, not passed over",
  (rest) => {
    expect(messages(`apiVersion: v1\nkind: List\n${rest}`)[0]).toContain("is no list of objects: begin each entry");
  },
);

it.each([
  "v1alpha1",
  "v1",
  "",
  "/v1alpha1",
  "davit/v1alpha1",
  "davit.io/v1alpha1",
  "Davit.dev/v1alpha1",
  "DAVIT.DEV/v1alpha1",
  "davit.dev.example/v1",
  "' davit.dev/v1alpha1'",
  "davit.dev",
  "davit.dev/v1",
])("a Group or Profile of `%s` is refused, and told what to write", (apiVersion) => {
  for (const [kind, text] of Object.entries({ Group: groupText("a"), Profile: profileText("a") })) {
    const near = text.replace("davit.dev/v1alpha1", apiVersion || '""');
    const [message, ...more] = messages(near);
    expect(message).toMatch(
      new RegExp(`^${kind} default/a, apiVersion \\(line 1\\): is (?:not|no) .*: write davit\\.dev/v1alpha1`),
    );
    expect(more).toEqual([]);
  }
});

it("a Group of almost our group still says which machines are its own", () => {
  const text = groupText("a", '  selector: {matchLabels: {mac: "52:54:00:a1:9c:ae"}}').replace("davit.dev", "davit.io");
  expect(read(text).definitions).toMatchObject([
    { kind: "refused", standIn: { kind: "Group", spec: { selector: { mac: "52:54:00:a1:9c:ae" } } } },
  ]);
});

it.each(["kubeflow.org/v1 Profile", "user.openshift.io/v1 Group", "davitools.example/v1 Deployment", "v1 Service"])(
  "a document of %s is another project's and no problem",
  (type) => {
    const [apiVersion, kind] = type.split(" ");
    const { problems, ignored } = read(`apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: a}\n`);
    expect([problems, ignored.length]).toEqual([[], 1]);
  },
);

it.each(["Groups", "group", "GROUP", "Gruop"])("a kind %s of davit.dev is refused as the Group it means", (kind) => {
  for (const apiVersion of ["davit.dev/v1alpha1", "davit/v1alpha1", "davti.dev/v1alpha1", "davit.dev/v1"]) {
    const text = groupText("a").replace("kind: Group", `kind: ${kind}`).replace("davit.dev/v1alpha1", apiVersion);
    const { definitions, problems } = read(text);
    expect(definitions).toMatchObject([{ kind: "refused", name: { kind: "Group", name: "a" } }]);
    if (apiVersion === "davit.dev/v1alpha1") expect(problems[0]?.message).toContain("probably meant as Group");
  }
});

it.each([
  ["kernal", "boot: {kernal: /k}", "probably meant as kernel"],
  ["a field one level too high", "kernel: /k", "write kernel below boot"],
  ["a word like no field", "zzzzzz: 1", "does not exist: remove it"],
])("an unknown field says which one was probably meant: %s", (_, spec, words) => {
  expect(messages(profileText("a", `  ${spec}`)).join("\n")).toContain(words);
});

it.each(["a.JSON", "a.Json"])("%s is read as JSON", (path) => {
  expect(
    messages('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": no}}', path)[0],
  ).toContain("text without quotes in JSON");
});

const quoteText = 'a value with "{{" lacks its quotes';
it.each([
  ["in a flow list", "args: [a={{b}}, {{disk}}]", 7],
  ["in a flow list of several lines", "args: [\n      a={{b}},\n      {{disk}}\n    ]", 8],
  ["alone in a flow list", "args: [{{disk}}]", 7],
  ["as a value", "displayName: {{disk}}", 7],
  ["before other text", "displayName: {{disk}}/a", 7],
  ["that is not closed", "displayName: {{disk", 7],
])("braces of a template without quotes are named: %s", (_, line, at) => {
  const found = messages(`${profileText("a", "  boot:\n    kernel: /k")}    ${line}\n`);
  expect(found).toEqual([expect.stringContaining(quoteText)]);
  expect(found[0]).toMatch(new RegExp(`line ${at}\\b`));
});

it.each(["apiVersion: davit.dev/v1alpha1\nkind: Group", "kind: Group\nmetadata: {name: g}"])(
  "a missing line of dashes is named",
  (next) => {
    expect(messages(`${profileText("a")}${next}\n`)).toEqual([expect.stringContaining("--- is missing above")]);
  },
);
