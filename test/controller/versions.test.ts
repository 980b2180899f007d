import { expect, it } from "vitest";
import { versionsPath } from "../../src/model/objects/documents.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

it("the versions of the source are in the store with each change, and known to the next controller", async () => {
  const under = await ControllerUnderTest.start();
  expect(under.source.seen).toEqual({});
  under.source.versions = { groups: "7", profiles: "8" };
  under.source.put(profileObject(), groupObject());
  under.source.tellListed();
  await under.synced;
  expect(under.stored(versionsPath)).toEqual(['{"groups":"7","profiles":"8"}']);
  under.source.versions = { groups: "9", profiles: "8" };
  under.source.put(groupObject({ selector: { serial: "1" } }, "node2"));
  under.source.tellChanged({ kind: "Group", namespace: "default", name: "node2" });
  await under.settled();
  const next = await ControllerUnderTest.start({ store: under.store });
  expect(next.source.seen).toEqual({ groups: "9", profiles: "8" });
  await next.stop();
  await under.stop();
});

it("a source without versions leaves none", async () => {
  const under = await ControllerUnderTest.start();
  under.source.put(profileObject(), groupObject());
  under.source.tellListed();
  await under.synced;
  expect(under.stored(versionsPath)).toEqual([]);
  await under.stop();
});
