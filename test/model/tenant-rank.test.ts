import { describe, expect, it } from "vitest";
import { type Expression, isBroadExpression } from "../../src/model/labels/expression.ts";
import { toGroup } from "../../src/model/objects/group.ts";
import { groupSpec } from "../boot/feed-documents.ts";

const of = (key: string, operator: Expression["operator"], ...values: string[]): Expression => ({
  key,
  operator,
  values,
});

describe("a tenant's Group counts", () => {
  it.each<[name: string, selector: Record<string, string>, expressions: readonly Expression[], count: number]>([
    ["each label", { mac: "m", role: "x" }, [], 2],
    ["a list once", {}, [of("mac", "In", "a", "b")], 1],
    ["a label and lists of it once", { mac: "a" }, [of("mac", "In", "a"), of("mac", "In", "a", "b")], 1],
    ["patterns once, all together", {}, [of("serial", "Prefix", "abc"), of("hostname", "Glob", "web*")], 1],
    ["no pattern of a label whose value it has", { serial: "abcd" }, [of("serial", "Prefix", "abc")], 1],
    ["nothing that any machine meets", { mac: "m" }, [of("nothing", "DoesNotExist"), of("os", "NotIn", "x")], 1],
    ["not that a label is there", { mac: "m" }, [of("serial", "Exists"), of("uuid", "Glob", "*")], 1],
    ["no pattern of too few characters", { mac: "m" }, [of("serial", "Prefix", "ab")], 1],
  ])("%s", (_name, selector, expressions, count) => {
    const spec = groupSpec({ selector, expressions });
    expect(toGroup("team-a", "x", spec, { tenant: true }).rankCount).toBe(count);
    expect(toGroup("infra", "x", spec).rankCount).toBe(Object.keys(selector).length + expressions.length);
  });
});

it.each<[broad: boolean, expression: Expression]>([
  [true, of("serial", "Exists")],
  [true, of("mac", "Prefix", ..."0123456789abcdef")],
  [true, of("mac", "Prefix", "52:54:0")],
  [false, of("mac", "Prefix", "52:54:00")],
  [true, of("mac", "Prefix", "52:54:00", "5")],
  [true, of("mac", "Glob", "*:00")],
  [false, of("mac", "Glob", "52:54:00:*")],
  [true, of("uuid", "Prefix", "4c4c454")],
  [false, of("uuid", "Prefix", "4c4c4544-")],
  [true, of("hostname", "Glob", "?e*-")],
  [false, of("hostname", "Glob", "web*")],
  [false, of("hostname", "In", "a")],
  [false, of("hostname", "NotIn", "a")],
])("is broad: %s, %o", (broad, expression) => {
  expect(isBroadExpression(expression)).toBe(broad);
});
