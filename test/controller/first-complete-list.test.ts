import { expect, it } from "vitest";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

it("the first complete list of a run is told before anything of it is in effect, and once it is in the store", async () => {
  const told: number[] = [];
  const under = await ControllerUnderTest.start({ onComplete: () => told.push(under.groupCount) });
  under.source.put(profileObject(), groupObject());
  under.source.complete = false;
  under.source.tellListed();
  await under.synced;
  expect(told).toEqual([]);
  under.source.put(groupObject({ selector: { serial: "1" } }, "node2"));
  under.source.complete = true;
  under.source.tellListed();
  await under.settled();
  expect(told).toEqual([1, 2]);
  under.source.tellListed();
  under.source.put(groupObject({ selector: { serial: "2" } }, "node3"));
  under.source.tellChanged({ kind: "Group", namespace: "default", name: "node3" });
  await under.settled();
  expect(under.groupCount).toBe(3);
  expect(told).toEqual([1, 2]);
  await under.stop();
});
