/** Tombstones of Groups that select by expressions: lists of `uuid` and `mac`, and what else their selectors say. */

import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type GroupChange, tombstoneWrites } from "../../src/controller/tombstones/tombstones.ts";
import type { Expression } from "../../src/model/labels/expression.ts";
import { decodeTombstone } from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import { groupSpec } from "./objects.ts";

const sha256 = (text: string) => hash("sha256", text, "hex");
const listed = (...values: readonly string[]): Expression => ({ key: "mac", operator: "In", values });
const installed: Expression = { key: "os", operator: "Exists", values: [] };

function spec(expressions: readonly Expression[], selector: Record<string, string> = {}): GroupSpec {
  return groupSpec({ selector, expressions });
}

function writes(passings: readonly GroupChange[], stored: readonly (readonly [string, string])[] = []) {
  const texts = new Map(stored);
  return tombstoneWrites(passings, { textAt: (path) => texts.get(path), ttlSeconds: 60, sha256, isTaken: () => false });
}

const passing = (before?: GroupSpec, after?: GroupSpec, id = "lab/rack"): GroupChange => ({ id, before, after });
const rank = { namespace: "lab", priority: 0, outcome: expect.stringMatching(/^[0-9a-f]{64}$/) };
const at = (mac: string) => `/davit/tombstones/mac/${mac}`;

describe("a Group that selects by a list of addresses", () => {
  it("leaves a tombstone for each when it goes, which tells that one and what else its selector says", () => {
    const [first, second, ...more] = writes([passing(spec([listed("a", "b"), installed], { role: "web" }))]);
    expect(more).toEqual([]);
    expect([first?.path, second?.path]).toEqual([at("a"), at("b")]);
    expect(decodeTombstone(second?.text ?? "")).toEqual({
      group: "lab/rack",
      selector: "mac In (b),os Exists,role=web",
      labels: [{ role: "web" }],
      expressions: [[listed("b"), installed]],
      ranks: [rank],
    });
  });

  it.each<[name: string, after: GroupSpec, paths: string[]]>([
    ["loses one of them", spec([listed("a", "c")]), [at("b")]],
    ["gets one more", spec([listed("a", "b", "c", "d")]), []],
    ["keeps one as a label", spec([], { mac: "a" }), [at("b"), at("c")]],
    ["says more of them", spec([listed("a", "b", "c"), installed]), [at("a"), at("b"), at("c")]],
    [
      "names none any more",
      spec([{ ...listed("a"), operator: "NotIn" }], { role: "web" }),
      [at("a"), at("b"), at("c")],
    ],
  ])("leaves them for those that it does not select as before when it %s", (_name, after, paths) => {
    expect(writes([passing(spec([listed("a", "b", "c")]), after)]).map(({ path }) => path)).toEqual(paths);
  });

  it("takes its own away for those that come back", () => {
    const stones = writes([passing(spec([listed("a", "b")]), spec([listed("b")]))]);
    const stored = stones.map(({ path, text = "" }) => [path, text] as const);
    expect(writes([passing(spec([listed("b")]), spec([listed("a", "b")]))], stored)).toEqual([
      { path: at("a"), text: undefined, namespace: "lab" },
    ]);
  });

  it("leaves small ones, however long its lists are", () => {
    const values = Array.from({ length: 5000 }, (_, index) => `value-${index}`);
    const others: readonly Expression[] = [
      { key: "uuid", operator: "NotIn", values },
      { key: "zone", operator: "In", values },
    ];
    const stones = writes([passing(spec([listed(...values), ...others]))]);
    expect(stones).toHaveLength(5000);
    expect(decodeTombstone(stones[4999]?.text ?? "")?.expressions).toEqual([
      [
        listed("value-4999"),
        { key: "uuid", operator: "NotIn", values: [] },
        { key: "zone", operator: "Exists", values: [] },
      ],
    ]);
  });

  it("shares one with a Group of the same machine, which tells of both selectors", () => {
    const both = writes([
      passing(spec([listed("a"), installed])),
      passing(spec([], { mac: "a" }), undefined, "lab/node"),
    ]);
    expect(decodeTombstone(both[0]?.text ?? "")).toEqual({
      labels: [{}, { mac: "a" }],
      expressions: [[listed("a"), installed], []],
      ranks: [rank, rank],
    });
  });
});
