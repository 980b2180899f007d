import { describe, expect, it } from "vitest";
import { claimOf } from "../../src/controller/ranking/claims.ts";
import type { GroupDocument } from "../../src/model/objects/documents.ts";
import type { GroupSpec, GroupState } from "../../src/model/objects/group.ts";
import { groupSpec } from "./objects.ts";

const list = (...values: string[]): Partial<GroupSpec> => ({
  selector: {},
  expressions: [{ key: "mac", operator: "In", values }],
});

function document(spec: Partial<GroupSpec>, state: GroupState = { claimedAt: 3 }): GroupDocument {
  return { origin: "test", uid: "u", generation: 1, spec: groupSpec(spec), ...state };
}

describe("the claim of a Group", () => {
  it("is of the moment when the Group is new", () => {
    expect(claimOf(undefined, groupSpec(), 9)).toEqual({ claimedAt: 9 });
  });

  it.each<[name: string, before: Partial<GroupSpec>, after: Partial<GroupSpec>, claim: GroupState]>([
    [
      "stays where something else changes",
      { selector: { mac: "m1" } },
      { selector: { mac: "m1" }, profile: "x" },
      { claimedAt: 3 },
    ],
    [
      "stays where a label is added",
      { selector: { mac: "m1" } },
      { selector: { mac: "m1", os: "x" } },
      { claimedAt: 3, claimedLater: [{ at: 9, label: "os", values: ["x"], isName: true }] },
    ],
    [
      "is new by the name that a selector of many machines gets",
      { selector: {}, expressions: [{ key: "mac", operator: "Prefix", values: ["52:54:00"] }] },
      { selector: { mac: "m1" } },
      { claimedAt: 9 },
    ],
    ["stays where a value is taken away", list("m1", "m2"), list("m1"), { claimedAt: 3 }],
    [
      "is new where a label is taken away",
      { selector: { mac: "m1", os: "x" } },
      { selector: { mac: "m1" } },
      { claimedAt: 9 },
    ],
    [
      "is new for the other machine",
      { selector: { mac: "m1" } },
      { selector: { mac: "m2" } },
      { claimedAt: 3, claimedLater: [{ at: 9, label: "mac", values: ["m2"] }] },
    ],
    [
      "is new where a pattern takes the place of a value",
      { selector: { mac: "m1" } },
      { selector: {}, expressions: [{ key: "mac", operator: "Prefix", values: ["m"] }] },
      { claimedAt: 9 },
    ],
    ["is new for a catch-all", { selector: { mac: "m1" } }, { selector: {}, matchAll: true }, { claimedAt: 9 }],
    [
      "is new for a value that is added, and stays for the others",
      list("m1", "m2"),
      list("m1", "m2", "m3"),
      { claimedAt: 3, claimedLater: [{ at: 9, label: "mac", values: ["m3"] }] },
    ],
    [
      "stays for a machine that gets company",
      { selector: { mac: "m1" } },
      list("m1", "m2"),
      { claimedAt: 3, claimedLater: [{ at: 9, label: "mac", values: ["m2"] }] },
    ],
  ])("%s", (_name, before, after, claim) => {
    expect(claimOf(document(before), groupSpec(after), 9)).toEqual(claim);
  });

  it("stays unknown where it was never recorded", () => {
    expect(claimOf(document(list("m1"), {}), groupSpec(list("m1")), 9)).toEqual({});
    const added = { claimedLater: [{ at: 9, label: "mac", values: ["m2"] }] };
    expect(claimOf(document(list("m1"), {}), groupSpec(list("m1", "m2")), 9)).toEqual(added);
  });

  it("is short however often values are added, and never older than it was", () => {
    let stored = document(list("m0"));
    for (let at = 1; at <= 100; at++) {
      const spec = groupSpec(list(...Array.from({ length: at + 1 }, (_, value) => `m${value}`)));
      stored = { ...stored, spec, ...claimOf(stored, spec, 10 * at) };
    }
    expect(stored.claimedLater).toHaveLength(32);
    const claims = (stored.claimedLater ?? []).flatMap(({ at, values }) => values.map((value) => [value, at] as const));
    expect(claims).toHaveLength(100);
    for (const [value, at] of claims) expect(at).toBeGreaterThanOrEqual(10 * Number(value.slice(1)));
    expect(claims.at(-1)).toEqual(["m100", 1000]);
  });
});
