/** A Profile that is removed has its machines wait as long as a tombstone stays: it may be on its way back. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ObjectName } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

const profile: ObjectName = { kind: "Profile", namespace: "default", name: "web" };
const stones = "/davit/tombstones/";
const labels = { mac: "52:54:00:a1:9c:ae" };

describe("a Profile that is removed", () => {
  let under: ControllerUnderTest;

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
    under.source.put(profileObject(), groupObject());
    under.source.tellListed();
    await under.synced;
  });
  afterEach(() => under.stop());

  async function remove(): Promise<void> {
    under.source.drop(profile).tellChanged(profile);
    await under.settled();
    expect(under.answer(labels)).toBe("vanished");
  }

  it("leaves a tombstone that ends by itself", async () => {
    await remove();
    expect(under.stored(stones)).toEqual(['{"goneProfile":"default/web"}']);
    await under.clock.advance(59_999);
    expect(under.answer(labels)).toBe("vanished");
    await under.clock.advance(1);
    await under.settled();
    expect(under.answer(labels)).toBe("noProfile");
    expect(under.stored(stones)).toEqual([]);
  });

  it("has the same machines as soon as it is back, and no tombstone", async () => {
    await remove();
    under.source.put(profileObject({ displayName: "again" })).tellChanged(profile);
    await under.settled();
    expect(under.answer(labels)).toBe("default/node1 again");
    expect(under.stored(stones)).toEqual([]);
  });

  it("never sends its machines on, however often it is replaced", async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 20; round++) {
      under.source.drop(profile).tellChanged(profile);
      for (let turn = 0; turn < round; turn++) await new Promise((resolve) => setImmediate(resolve));
      seen.add(under.answer(labels));
      under.source.put(profileObject({ displayName: `round ${round}` })).tellChanged(profile);
      await under.settled();
      expect(under.answer(labels)).toBe(`default/node1 round ${round}`);
    }
    expect(seen).not.toContain("noProfile");
  });

  it("keeps it for as long as the source is not followed: it may be back by now", async () => {
    await remove();
    under.source.isFollowed = false;
    for (let elapsedMs = 0; elapsedMs < 300_000; elapsedMs += 5_000) {
      await under.clock.advance(5_000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(under.answer(labels)).toBe("vanished");
    }
  });
});
