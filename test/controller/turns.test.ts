/** What else the process does while the controller has steps to take. */

import { expect, it } from "vitest";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

it("others have their turn between two steps, however many follow each other", async () => {
  const under = await ControllerUnderTest.start();
  const { source } = under;
  source.put(profileObject(), groupObject()).tellListed();
  await under.synced;
  const most = 10_000;
  let looks = 0;
  const get = source.get.bind(source);
  source.get = (kind, namespace, name) => {
    // An object that changes as soon as it was looked at.
    if (looks++ < most)
      queueMicrotask(() => source.tellChanged({ kind: "Group", namespace: "default", name: "node1" }));
    return get(kind, namespace, name);
  };
  source.tellChanged({ kind: "Group", namespace: "default", name: "node1" });
  await new Promise((resolve) => setImmediate(resolve));
  expect(looks).toBeLessThan(most);
  looks = most;
  await under.stop();
});
