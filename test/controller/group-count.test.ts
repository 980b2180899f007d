import { afterEach, beforeEach, expect, it } from "vitest";
import type { OwnName } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

let under: ControllerUnderTest;
beforeEach(async () => {
  under = await ControllerUnderTest.start();
  under.source.put(profileObject(), groupObject({}, "first")).tellListed();
  await under.synced;
});
afterEach(() => under.stop());

const name = (at: number) => ({ kind: "Group", namespace: "default", name: `g${at}` }) as const satisfies OwnName;

it("`status.groupCount` counts the Groups that name a Profile, and follows them a second later", async () => {
  await under.settled();
  expect(under.statuses.groupCount("Profile/web")).toBe(1);
  const counts = new Set<number | undefined>();
  for (let at = 0; at < 100; at++) {
    under.source.put(groupObject({}, `g${at}`)).tellChanged(name(at));
    await under.settled();
    expect(under.statuses.ready(`Group/g${at}`)).toBeDefined();
    counts.add(under.statuses.groupCount("Profile/web"));
  }
  expect([...counts]).toEqual([1]);
  await under.clock.advance(1_000);
  await under.settled();
  expect(under.statuses.groupCount("Profile/web")).toBe(101);
  under.source.put(groupObject({ profile: "other" }, "g0")).tellChanged(name(0));
  under.source.drop(name(1)).tellChanged(name(1));
  await under.settled();
  expect(under.statuses.ready("Group/g1")).toBeUndefined();
  await under.clock.advance(1_000);
  await under.settled();
  expect(under.statuses.groupCount("Profile/web")).toBe(99);
});
