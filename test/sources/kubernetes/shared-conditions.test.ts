import { describe, expect, it } from "vitest";
import type { JsonObject, JsonValue } from "../../../src/model/json.ts";
import { SharedConditions } from "../../../src/sources/kubernetes/watch/shared-conditions.ts";

function ready(message: string): JsonObject {
  return { type: "Ready", status: "True", reason: "Ready", message, lastTransitionTime: "2026-01-01T00:00:00Z" };
}

function first({ conditions }: JsonObject): JsonValue | undefined {
  return Array.isArray(conditions) ? conditions[0] : undefined;
}

describe("conditions of statuses", () => {
  it("that are equal are one, and the statuses say what they said", () => {
    const shared = new SharedConditions();
    const statuses = [1, 2].map((generation) => ({ observedGeneration: generation, conditions: [ready("good")] }));
    const kept = statuses.map((status) => shared.of(status));
    expect(kept).toEqual(statuses);
    expect(kept.map(first)[1]).toBe(kept.map(first)[0]);
  });

  it("that differ in anything are two", () => {
    const shared = new SharedConditions();
    const [a, b] = [ready("good"), { ...ready("good"), observedGeneration: 2 }];
    expect([a, b].map((each) => first(shared.of({ conditions: [each] })))).toEqual([a, b]);
  });

  it("are not kept for others when they are long, nor when many others came in between", () => {
    const shared = new SharedConditions();
    const long = ready("x".repeat(1_000));
    const short = ready("short");
    for (const each of [long, short]) expect(first(shared.of({ conditions: [each] }))).toBe(each);
    for (let at = 0; at < 1_024; at++) shared.of({ conditions: [ready(`${at}`)] });
    for (const each of [{ ...long }, { ...short }]) expect(first(shared.of({ conditions: [each] }))).toBe(each);
  });

  it.each<[string, JsonObject]>([
    ["none", { observedGeneration: 1 }],
    ["no list", { conditions: "none" }],
    ["no objects", { conditions: [null, "a", [1]] }],
  ])("that are %s stay as they are", (_, status) => {
    expect(new SharedConditions().of(status)).toEqual(status);
  });
});
