import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ObjectName } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

/** One Group installs a machine, another one with a label more boots what is installed: the usual pair. */

const mac = "52:54:00:a1:9c:ae";
const fresh = { mac };
const installed = { mac, os: "installed" };
const database = { mac, os: "installed", role: "db" };

const groups = {
  n3: groupObject({ profile: "disk", selector: installed }, "n3"),
  "n3-db": groupObject({ profile: "disk", selector: database }, "n3-db"),
  "n3-install": groupObject({ profile: "wipe", selector: fresh }, "n3-install"),
};

describe("an installed machine", () => {
  let under: ControllerUnderTest;

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
    const wipe = { displayName: "wipe" };
    under.source.put(profileObject({ displayName: "disk" }, "disk"), profileObject(wipe, "wipe"));
    under.source.put(groupObject({ profile: "wipe", selector: {}, matchAll: true }, "all"), ...Object.values(groups));
    under.source.tellListed();
    await under.synced;
  });

  afterEach(() => under.stop());

  const name = (group: string): ObjectName => ({ kind: "Group", namespace: "default", name: group });

  /** What the machine is answered, again and again, until nothing more happens. */
  async function answers(labels: Readonly<Record<string, string>>): Promise<readonly string[]> {
    const seen: string[] = [];
    for (let turn = 0; turn < 100; turn++) {
      const answer = under.answer(labels);
      if (seen.at(-1) !== answer) seen.push(answer);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return seen;
  }

  function drop(group: keyof typeof groups): void {
    under.source.drop(name(group)).tellChanged(name(group));
  }

  function bringBack(group: keyof typeof groups): void {
    under.source.put(groups[group]).tellChanged(name(group));
  }

  it("is not handed to the Group that installs it, when its own goes two seconds before that one", async () => {
    drop("n3");
    expect(await answers(installed)).toEqual(["default/n3 disk", "bereft"]);
    await under.clock.advance(2_000);
    drop("n3-install");
    expect(await answers(installed)).toEqual(["bereft"]);
    await under.clock.advance(59_999);
    expect(await answers(installed)).toEqual(["bereft"]);
    await under.clock.advance(1);
    expect((await answers(installed)).at(-1)).toBe("default/all wipe");
  });

  it("is handed to it once the tombstone has ended: that is how a machine is installed anew", async () => {
    drop("n3");
    expect((await answers(installed)).at(-1)).toBe("bereft");
    await under.clock.advance(60_000);
    expect((await answers(installed)).at(-1)).toBe("default/n3-install wipe");
  });

  it("is waited for alone: one with this mac that is not installed gets what it got before", async () => {
    drop("n3");
    expect(await answers(fresh)).toEqual(["default/n3-install wipe"]);
  });

  it.each<readonly ("n3" | "n3-db" | "n3-install")[]>([
    ["n3-db", "n3", "n3-install"],
    ["n3", "n3-db", "n3-install"],
    ["n3-install", "n3", "n3-db"],
  ])("gets no less specific Group while %s, %s and %s go and come back in this order", async (...order) => {
    const seen = new Set<string>();
    for (const change of [drop, bringBack]) {
      for (const group of order) {
        change(group);
        for (const answer of await answers(database)) seen.add(answer);
        await under.clock.advance(2_000);
      }
    }
    expect(seen).toEqual(new Set(["default/n3-db disk", "bereft"]));
    expect(await answers(installed)).toEqual(["default/n3 disk"]);
    expect(await answers(fresh)).toEqual(["default/n3-install wipe"]);
  });

  it("has its Group back at once when that comes back", async () => {
    drop("n3");
    await answers(installed);
    bringBack("n3");
    expect(await answers(installed)).toEqual(["bereft", "default/n3 disk"]);
    expect(under.stored("/davit/tombstones/")).toEqual([]);
  });

  it("waits when its Group loses a label, which may be another Group by its name", async () => {
    drop("n3-install");
    await answers(fresh);
    under.source.put(groupObject({ profile: "wipe", selector: fresh }, "n3")).tellChanged(name("n3"));
    expect(await answers(installed)).toEqual(["default/n3 disk", "bereft"]);
    expect(await answers(fresh)).toEqual(["default/n3 wipe"]);
    await under.clock.advance(60_000);
    expect((await answers(installed)).at(-1)).toBe("default/n3 wipe");
  });
});
