/** Deletions that wait: of a half view nobody knows what is gone, and a person can see what stays in effect. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

let under: ControllerUnderTest;
beforeEach(async () => {
  under = await ControllerUnderTest.start();
  under.source.put(profileObject(), groupObject(), groupObject({ selector: { role: "b" } }, "node2"));
  under.source.tellListed();
  await under.synced;
});
afterEach(() => under.stop());

const node1 = { kind: "Group", namespace: "default", name: "node1" } as const;
const node2 = { kind: "Group", namespace: "default", name: "node2" } as const;
const counted = async () => (await under.metrics.withheldDeletions.get()).values[0]?.value;
const logged = () => under.logLines.filter((line) => /deletions? waits?/.test(line)).length;

it("A deletion that waits is counted, named and logged once, and is done when more can be read", async () => {
  under.source.complete = false;
  under.source.drop(node1, node2).tellChanged(node1, node2);
  await expect.poll(counted).toBe(2);
  expect(under.attention).toEqual([
    "source: 2 objects are not found, but may be where it cannot be read (Group default/node1, Group default/node2): " +
      "machines boot by them as before until the whole source can be read",
  ]);
  expect(under.answer({ role: "b" })).toBe("default/node2 web");
  expect(logged()).toBe(1);
  under.source.complete = true;
  under.source.tellListed();
  await expect.poll(counted).toBe(0);
  expect(under.attention).toEqual([]);
  expect(under.answer({ role: "b" })).toBe("noMatch");
  expect(logged()).toBe(2);
});

it("An object that is refused keeps itself alone: no deletion of it waits, and of another one neither", async () => {
  under.source.drop(node1, node2).refuse(node1, "spec.priority: must be 1000 or less").tellChanged(node1, node2);
  await expect.poll(() => under.answer({ role: "b" })).toBe("noMatch");
  expect(under.answer({ mac: "52:54:00:a1:9c:ae" })).toBe("refused");
  expect(await counted()).toBe(0);
});

it("What stays in view while a file cannot be read counts, too", async () => {
  under.source.withheld = [node1];
  under.source.tellListed();
  expect(await counted()).toBe(1);
  expect(under.attention).toEqual([expect.stringContaining("1 object is not found, but may be where")]);
});
