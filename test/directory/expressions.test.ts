/** Expressions of a selector in files, and what no rule of the CRDs can look at. */

import { describe, expect, it } from "vitest";
import { Admission } from "../../src/admission/admission.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/admission/crds.ts";
import { readFileBytes } from "../../src/directory/read-file.ts";
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
