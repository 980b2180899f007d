import { expect, it } from "vitest";
import { WriteLanes } from "../../../src/sources/kubernetes/status/status-writer.ts";

function succeed(lanes: WriteLanes, times: number): number {
  for (let count = 0; count < times; count++) lanes.succeeded();
  return lanes.count;
}

it("lanes are halved by each refusal, down to one", () => {
  const lanes = new WriteLanes(8);
  const counts = [8, 4, 2, 1, 1].map((_, at) => {
    if (at > 0) lanes.throttled();
    return lanes.count;
  });
  expect(counts).toEqual([8, 4, 2, 1, 1]);
});

it("lanes come back one by one, each after twenty good writes in a row, and never more than at first", () => {
  const lanes = new WriteLanes(3);
  lanes.throttled();
  expect(succeed(lanes, 19)).toBe(1);
  expect(succeed(lanes, 1)).toBe(2);
  expect(succeed(lanes, 20)).toBe(3);
  expect(succeed(lanes, 100)).toBe(3);
});

it("lanes do not come back for writes from before a refusal", () => {
  const lanes = new WriteLanes(4);
  lanes.throttled();
  succeed(lanes, 19);
  lanes.throttled();
  expect(succeed(lanes, 19)).toBe(1);
});
