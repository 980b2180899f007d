import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ObjectName } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

const count = 400;
const names = Array.from({ length: count }, (_, at) => `node${at}`);
const catchAll: ObjectName = { kind: "Group", namespace: "default", name: "installer" };

const macOf = (at: number) => `52:54:00:00:${hex(at >> 8)}:${hex(at & 255)}`;
const hex = (byte: number) => byte.toString(16).padStart(2, "0");
const groupName = (name: string): ObjectName => ({ kind: "Group", namespace: "default", name });

describe("when every Group is removed, one after another", () => {
  let under: ControllerUnderTest;

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
    under.source.put(profileObject(), groupObject({ selector: {}, matchAll: true }, "installer"));
    under.source.put(...names.map((name, at) => groupObject({ selector: { mac: macOf(at) } }, name)));
    under.source.tellListed();
    await under.synced;
  });

  afterEach(() => under.stop());

  const answer = (at: number) => under.answer({ mac: macOf(at) }).split(" ")[0] ?? "";

  /** Removes all, and has the machine of each just after, and one of another, ask at every turn of the event loop. */
  async function removeAll(): Promise<ReadonlySet<string>> {
    const kinds = new Set<string>();
    for (let at = 0; at < count; at++) {
      under.source.drop(groupName(`node${at}`)).tellChanged(groupName(`node${at}`));
      await new Promise((resolve) => setImmediate(resolve));
      for (const asked of [at, (at * 7) % count]) kinds.add(answer(asked).replace(/\d+$/, ""));
    }
    await under.settled();
    expect(under.groupCount).toBeLessThan(2);
    for (let at = 0; at < count; at++) kinds.add(answer(at).replace(/\d+$/, ""));
    return kinds;
  }

  it("nobody gets the catch-all before the tombstones end", async () => {
    expect(await removeAll()).toEqual(new Set(["default/node", "bereft"]));
    expect(answer(count)).toBe("default/installer");
    // Of so many, they begin anew at the next look.
    for (let elapsedMs = 0; elapsedMs < 75_000; elapsedMs += 5_000) {
      await under.clock.advance(5_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (let at = 0; at < count; at++) expect(answer(at)).toBe("bereft");
    await under.clock.advance(10_000);
    await under.settled();
    expect(answer(0)).toBe("default/installer");
    expect(answer(count - 1)).toBe("default/installer");
  });

  it("nobody gets it however slowly they go, and however late it goes itself", async () => {
    for (let at = 0; at < count; at++) {
      under.source.drop(groupName(`node${at}`)).tellChanged(groupName(`node${at}`));
      // 200 a minute: kubectl's prune takes 300.
      await under.clock.advance(300);
      await new Promise((resolve) => setImmediate(resolve));
      expect([answer(0), answer(at)]).toEqual(["bereft", "bereft"]);
    }
    under.source.drop(catchAll).tellChanged(catchAll);
    await under.settled();
    expect(answer(count)).toBe("noMatch");
  });

  it("nobody gets it while they come back, however slowly", async () => {
    await removeAll();
    for (let at = 0; at < count; at++) {
      under.source.put(groupObject({ selector: { mac: macOf(at) } }, `node${at}`)).tellChanged(groupName(`node${at}`));
      // As slowly as they went above: the last of them is back after two minutes.
      await under.clock.advance(300);
      await new Promise((resolve) => setImmediate(resolve));
      expect(["default/node399", "bereft"]).toContain(answer(count - 1));
    }
    await under.settled();
    for (let at = 0; at < count; at++) expect(answer(at)).toBe(`default/node${at}`);
  });

  it("nobody gets it while nobody can tell whether it is gone, too", async () => {
    under.source.drop(groupName("node0")).tellChanged(groupName("node0"));
    await under.settled();
    expect(answer(0)).toBe("bereft");
    under.source.isFollowed = false;
    for (let elapsedMs = 0; elapsedMs < 600_000; elapsedMs += 5_000) {
      await under.clock.advance(5_000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(answer(0)).toBe("bereft");
    }
    under.source.isFollowed = true;
    await under.clock.advance(80_000);
    await under.settled();
    expect(answer(0)).toBe("default/installer");
  });

  it("nobody is sent on when the catch-all goes first", async () => {
    under.source.drop(catchAll).tellChanged(catchAll);
    expect(await removeAll()).toEqual(new Set(["default/node", "bereft"]));
    expect(answer(count)).toBe("noMatch");
  });
});

it("a catch-all that is told with hundreds of others, and before them, takes none of their machines", async () => {
  const under = await ControllerUnderTest.start();
  under.source.put(profileObject());
  under.source.tellListed();
  await under.synced;
  under.source.put(groupObject({ selector: {}, matchAll: true }, "installer"));
  under.source.put(...names.map((name, at) => groupObject({ selector: { mac: macOf(at) } }, name)));
  const seen = new Set<string>();
  const answer = () => under.answer({ mac: macOf(count - 1) }).split(" ")[0] ?? "";
  const unfollow = under.store.follow("/davit", { replaced: () => {}, changed: () => seen.add(answer()) });
  under.source.tellChanged(catchAll, ...names.map(groupName));
  await under.settled();
  expect(answer()).toBe(`default/node${count - 1}`);
  expect(seen).toEqual(new Set([`default/node${count - 1}`]));
  unfollow();
  await under.stop();
});
