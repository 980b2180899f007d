/** Since when what is stored is what the source said, and what machines of an `Install` get of it. */

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { decodeSynced, syncedPath } from "../../src/model/objects/documents.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

let under: ControllerUnderTest;
beforeEach(async () => {
  under = await ControllerUnderTest.start();
  under.source.put(profileObject({ effect: "Install" }), groupObject());
});
afterEach(() => under.stop());

const node1 = { kind: "Group", namespace: "default", name: "node1" } as const;
const machine = { mac: "52:54:00:a1:9c:ae" };
const synced = () => decodeSynced(under.stored(syncedPath)[0] ?? "");

it("is not known before the first list is stored, and then is what the source says", async () => {
  under.source.provenAtMs = 5_000;
  expect(under.provenAtMs).toBeUndefined();
  under.source.tellListed();
  await under.synced;
  await under.settled();
  expect(under.provenAtMs).toBe(5_000);
  under.source.provenAtMs = undefined;
  expect(under.provenAtMs).toBeUndefined();
});

it.each([
  { news: "the change is of now", since: 10_000 },
  { news: "the change may have come long ago, in an outage", since: 4_000 },
])("stays where it was while the store does not take what changed: $news", async ({ since }) => {
  under.source.tellListed();
  await under.synced;
  await under.clock.advance(10_000);
  under.source.provenAtMs = since;
  const full = vi.spyOn(under.store, "submit").mockRejectedValue(new StoreError("logFailed", "no space left", 0));
  under.source.put(groupObject({ hold: true })).tellChanged(node1);
  await under.clock.advance(120_000);
  under.source.provenAtMs = 130_000;
  expect(under.answer(machine)).toBe("default/node1 web");
  expect(under.provenAtMs).toBe(since);
  full.mockRestore();
  await under.clock.advance(60_000);
  await under.settled();
  expect(under.answer(machine)).toBe("held");
  under.source.provenAtMs = 190_000;
  expect(under.provenAtMs).toBe(190_000);
});

it("a view that becomes half is stored at once, and ends with the next whole one", async () => {
  under.source.tellListed();
  await under.synced;
  expect(under.answer(machine)).toBe("default/node1 web");
  under.source.complete = false;
  under.source.tellListed();
  await under.settled();
  expect(under.answer(machine)).toBe("doubtful");
  expect(synced()).toMatchObject({ complete: true, half: true });
  under.source.complete = true;
  under.source.tellListed();
  await under.settled();
  expect(under.answer(machine)).toBe("default/node1 web");
  expect(synced()?.half).toBeUndefined();
});

it("a view that is changing is stored before what changed, and until all of it is stored", async () => {
  under.source.tellListed();
  await under.synced;
  const at = synced()?.at;
  under.source.put(groupObject({ hold: true })).tellChanged(node1);
  under.source.tellChanging(true);
  await under.settled();
  expect(synced()).toMatchObject({ changing: true, at });
  under.source.put(groupObject());
  const full = vi.spyOn(under.store, "submit").mockRejectedValueOnce(new StoreError("logFailed", "no space left", 0));
  under.source.tellChanged(node1);
  under.source.tellChanging(false);
  await Promise.resolve();
  await under.settled();
  full.mockRestore();
  expect([synced()?.changing, under.answer(machine)]).toEqual([true, "held"]);
  await under.clock.advance(60_000);
  await under.settled();
  expect([synced(), under.answer(machine)]).toMatchObject([{ complete: true, at }, "default/node1 web"]);
  expect(synced()?.changing).toBeUndefined();
});

it("a view that is changing at the first sync is stored so, and ends without a change", async () => {
  under.source.isChanging = true;
  under.source.tellListed();
  await under.synced;
  await under.settled();
  expect([synced()?.changing, under.answer(machine)]).toEqual([true, "changing"]);
  under.source.tellChanging(false);
  await under.settled();
  expect([synced()?.changing, under.answer(machine)]).toEqual([undefined, "default/node1 web"]);
});

it("a half view that ends before it was stored leaves nothing behind", async () => {
  under.source.tellListed();
  await under.synced;
  under.source.complete = false;
  under.source.tellListed();
  under.source.complete = true;
  under.source.tellListed();
  await under.clock.advance(1);
  await under.settled();
  expect(under.provenAtMs).toBe(0);
  expect(synced()).toMatchObject({ complete: true });
  expect(synced()?.half).toBeUndefined();
});
