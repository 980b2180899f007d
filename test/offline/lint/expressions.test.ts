import { describe, expect, it } from "vitest";
import { parseJsonObject } from "../../../src/model/json.ts";
import { toGroupSpec } from "../../../src/sources/admission/objects.ts";
import { runCommand } from "../../helpers/command-under-test.ts";
import { groupText, profileText, stream } from "../../sources/directory/manifests.ts";

function lint(expression: string) {
  const selector = `  selector: {matchLabels: {role: web}, matchExpressions: [{key: os, ${expression}}]}`;
  return runCommand(["lint"], { input: [stream(profileText("web"), groupText("g", selector))] });
}

function expressionsOf(expression: object) {
  const selector = { matchExpressions: [{ key: "os", ...expression }] };
  return toGroupSpec(parseJsonObject(JSON.stringify({ profileRef: { name: "web" }, selector })) ?? {}).expressions;
}

describe.each(["Exists", "DoesNotExist"])("`%s` asks for no values, so that", (operator) => {
  it.each([{ values: [] }, { values: null }])("with $values it is the same as without", async ({ values }) => {
    expect(expressionsOf({ operator, values })).toEqual(expressionsOf({ operator }));
    const ran = await lint(`operator: ${operator}, values: ${JSON.stringify(values)}`);
    expect(ran).toMatchObject({ code: 0, output: "" });
  });

  it("with a value it is refused", async () => {
    expect((await lint(`operator: ${operator}, values: [a]`)).output).toContain("Exists and DoesNotExist have none");
  });
});

it.each(["In", "NotIn", "Prefix", "Glob"])("`%s` is refused without a value", async (operator) => {
  for (const values of ["[]", "null"]) {
    expect((await lint(`operator: ${operator}, values: ${values}`)).output).toContain("Prefix and Glob need values");
  }
});
