/** Expressions of a selector in files, and what no rule of the CRDs can look at. */

import { describe, expect, it } from "vitest";
import { Admission } from "../../../src/sources/admission/admission.ts";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import { readFileBytes } from "../../../src/sources/directory/read-file.ts";
import { groupText } from "./manifests.ts";

const admission = new Admission(await readCrds(packagedCrdsDirectory));

function read(text: string) {
  return readFileBytes("a.yaml", Buffer.from(text), admission);
}

function messages(text: string): readonly string[] {
  return read(text).problems.map(({ message }) => message);
}

describe("a list of addresses", () => {
  const listOf = (...values: readonly string[]) =>
    groupText("a", `  selector:\n    matchExpressions: [{key: mac, operator: In, values: [${values.join(", ")}]}]`);

  it("is read in whatever form they are written, each once", () => {
    const { definitions } = read(listOf("'52-54-00-A1-9C-AE'", "'5254.00a1.9caf'", "525400a19cae"));
    const expressions = [{ key: "mac", operator: "In", values: ["52:54:00:a1:9c:ae", "52:54:00:a1:9c:af"] }];
    expect(definitions).toMatchObject([{ kind: "accepted", object: { spec: { expressions } } }]);
  });

  it("is refused by the place of one that is none, and the others wait", () => {
    const { definitions } = read(listOf("'52:54:00:a1:9c:ae'", "'52:54'"));
    const [text] = messages(listOf("'52:54:00:a1:9c:ae'", "'52:54'"));
    expect(text).toContain(
      'spec.selector.matchExpressions.0.values.1 (line 7): is no MAC address: write one such as "52:54:00:a1:9c:ae"',
    );
    expect(definitions).toMatchObject([
      { kind: "refused", standIn: { spec: { expressions: [{ values: ["52:54:00:a1:9c:ae"] }] } } },
    ]);
  });

  it("has no stand-in where none of them is one", () => {
    const [definition] = read(listOf("'52:54'")).definitions;
    expect(definition).toMatchObject({ kind: "refused" });
    expect(definition).not.toHaveProperty("standIn");
  });

  it("is quoted where YAML 1.1 reads a number", () => {
    expect(messages(listOf("52:54:00:12:34:56")).join()).toContain("reads differently in YAML 1.1 and 1.2: quote it");
  });
});

it("expressions of null beside labels are refused, not passed over", () => {
  const text = groupText("a", "  selector: {matchLabels: {role: a}, matchExpressions: null}");
  expect(messages(text).join()).toContain("is empty: write an expression, or remove matchExpressions");
  expect(read(text).definitions[0]).not.toHaveProperty("standIn");
});

const mac = "52:54:00:a1:9c:ae";
const macIs = { key: "mac", operator: "Exists", values: [] };

it.each([
  {
    name: "a bad value in an expression",
    selector: { matchLabels: { serial: "S1" }, matchExpressions: [{ key: "mac", operator: "In", values: ["52:54"] }] },
    widest: { selector: { serial: "S1" }, expressions: [macIs] },
  },
  {
    name: "a bad value beside good ones",
    selector: { matchLabels: { serial: "S1" }, matchExpressions: [{ key: "mac", operator: "In", values: [mac, "x"] }] },
    widest: { selector: { serial: "S1" }, expressions: [macIs] },
  },
  {
    name: "a bad value that its machines must not have",
    selector: { matchLabels: { serial: "S1" }, matchExpressions: [{ key: "mac", operator: "NotIn", values: ["x"] }] },
    widest: { selector: { serial: "S1" } },
  },
  {
    name: "an unknown operator",
    selector: { matchLabels: { serial: "S1" }, matchExpressions: [{ key: "mac", operator: "Like", values: [mac] }] },
    widest: { selector: { serial: "S1" } },
  },
  {
    name: "a bad label",
    selector: { matchLabels: { serial: "S1", mac: "52:54" } },
    widest: { selector: { serial: "S1" } },
  },
])("a refused Group with $name has all machines wait that it may select", ({ selector, widest }) => {
  const [definition] = read(groupText("a", `  selector: ${JSON.stringify(selector)}`)).definitions;
  expect(definition).toMatchObject({ kind: "refused", standIn: { spec: { matchAll: false, ...widest } } });
  expect(
    definition?.kind === "refused" && definition.standIn?.kind === "Group" && definition.standIn.spec.expressions,
  ).toEqual(widest.expressions);
  expect(definition).not.toHaveProperty("hidesMachines");
});

it.each([
  { name: "no name of a machine", selector: { matchLabels: { role: "a", mac: "52:54" } } },
  { name: "nothing", selector: { matchLabels: { mac: "52:54" } } },
])("a refused Group of whose selector $name can be read may select any machine", ({ selector }) => {
  const [definition] = read(groupText("a", `  selector: ${JSON.stringify(selector)}`)).definitions;
  expect(definition).toMatchObject({ kind: "refused", hidesMachines: true });
});
