/** Manifests that are legal and odd: names that every object has, numbers at their limits, values that Helm emptied. */

import { describe, expect, it } from "vitest";
import type { SourceObject } from "../../../src/model/objects/source.ts";
import { Admission } from "../../../src/sources/admission/admission.ts";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import { readFileBytes } from "../../../src/sources/directory/read-file.ts";
import { emptiedSpecs, exactNumbers, groupText, oddNames } from "./manifests.ts";

const admission = new Admission(await readCrds(packagedCrdsDirectory));

function read(text: string, path = "a.yaml") {
  return readFileBytes(path, new TextEncoder().encode(text), admission);
}

function accepted(text: string, path?: string): SourceObject | undefined {
  const { definitions, problems } = read(text, path);
  expect(problems).toEqual([]);
  const [definition] = definitions;
  return definition?.kind === "accepted" ? definition.object : undefined;
}

const valid = "  selector: {matchLabels: {role: a}}";

describe("names that every object has", () => {
  it.each(oddNames)("`%s` is a label that a Group can select by", (name) => {
    const object = accepted(groupText("a", `  selector: {matchLabels: {${name}: x}}`));
    expect(object).toMatchObject({ spec: { selector: { [name]: "x" } } });
  });

  it("are keys of metadata, at the top and below", () => {
    const metadata = '{"__proto__":{"x":1},"constructor":"c","toString":[{"__proto__":2,"constructor":{}}]}';
    const object = accepted(groupText("a", `${valid}\n  metadata: ${metadata}`));
    expect(JSON.stringify(object)).toContain(`"metadata":${metadata}`);
  });

  it("are keys of a ConfigMap, and names of objects", () => {
    const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: constructor, labels: {constructor: x}}\n";
    expect(accepted(`${head}data: {constructor: a, toString: b}`)).toMatchObject({
      name: "constructor",
      data: { constructor: "a", toString: "b" },
    });
  });

  it.each(["__proto__", "constructor"])("`%s` is no field of a spec", (name) => {
    const { problems } = read(groupText("a", `${valid}\n  ${name}: {matchAll: true}`));
    expect(problems[0]?.message).toContain("has a field that does not exist");
  });

  it("cannot stand in for the fields of a spec", () => {
    const text = groupText("a", "").replace(/spec:.*/s, "spec: {__proto__: {profileRef: {name: p}, matchAll: true}}\n");
    expect(read(text).definitions).toMatchObject([{ kind: "refused" }]);
  });
});

describe("a number of metadata", () => {
  it.each(exactNumbers)("$text is taken as it is", ({ text, value }) => {
    const object = accepted(groupText("a", `${valid}\n  metadata: {n1: ${text}}`));
    expect(object).toMatchObject({ spec: { metadata: { n1: value } } });
  });

  it.each(["9007199254740992", "-9007199254740993", "12345678901234567890", "0x20000000000001"])(
    "%s would lose digits and is refused",
    (text) => {
      const [problem] = read(groupText("a", `${valid}\n  metadata: {n1: ${text}}`)).problems;
      expect(problem?.message).toMatch(/whole number beyond 2\^53, which would lose digits: quote it$/);
    },
  );

  it.each([".inf", "-.Inf", ".nan", "1.0e+400"])("%s is none that JSON has and is refused", (text) => {
    const [problem] = read(groupText("a", `${valid}\n  metadata: {n1: ${text}}`)).problems;
    expect(problem?.message).toMatch(/is no number that JSON has: quote it$/);
  });

  it("beyond 2^53 is refused in a JSON file, too", () => {
    const spec = '{"profileRef":{"name":"web"},"matchAll":true,"metadata":{"n":12345678901234567890}}';
    const text = `{"apiVersion":"davit.dev/v1alpha1","kind":"Group","metadata":{"name":"a"},"spec":${spec}}`;
    expect(read(text, "a.json").problems[0]?.message).toContain("whole number beyond 2^53");
  });
});

it.each(["davit.dev/v1alpha1/Profile", "davit.dev/v1alpha1/Group", "v1/ConfigMap", "v1/Secret"])(
  "a %s without a name is refused",
  (type) => {
    const [apiVersion, kind] = [type.slice(0, type.lastIndexOf("/")), type.slice(type.lastIndexOf("/") + 1)];
    const found = read(`apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {namespace: lab}\n`);
    expect(found.definitions).toEqual([]);
    const told = found.problems.map(({ message }) => message);
    expect(told).toContain("Document, metadata.name (line 3): is missing: add it");
  },
);

it("metadata has every kind of name, and keeps each as it is written", () => {
  const names = [
    "",
    " ",
    "a b",
    "a.b",
    "a-b",
    "7",
    "é",
    "😀",
    "null",
    "true",
    "line\nbreak",
    "\u0001",
    "#",
    "a: b",
    "{{x}}",
  ];
  const metadata = Object.fromEntries(names.map((name, at) => [name, at]));
  const object = accepted(groupText("a", `${valid}\n  metadata: ${JSON.stringify(metadata)}`));
  expect(object).toMatchObject({ spec: { metadata } });
});

it.each(emptiedSpecs)("a Group whose template emptied $name is refused and selects no machine", ({ spec }) => {
  const [definition] = read(groupText("a", spec)).definitions;
  expect(definition).toMatchObject({ kind: "refused" });
  expect(definition).not.toHaveProperty("standIn");
});
