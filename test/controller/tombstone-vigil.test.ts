import { beforeEach, describe, expect, it } from "vitest";
import { TombstoneVigil } from "../../src/controller/tombstone-vigil.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const ttlMs = 60_000;
const [a, b] = ["/davit/tombstones/mac/a", "/davit/tombstones/mac/b"] as const;
let clock: FakeClock;
let vigil: TombstoneVigil;

beforeEach(() => {
  clock = new FakeClock();
  vigil = new TombstoneVigil({ clock, ttlMs });
});

describe("tombstones", () => {
  it("end by themselves where a few Groups go, as people take machines out", async () => {
    for (let count = 0; count < 100; count++) {
      vigil.moved(1);
      expect(vigil.due([a], true)).toEqual([]);
      await clock.advance(ttlMs / 8);
    }
  });

  it("stay while Groups go by the dozen, and for their own time after the last of them", async () => {
    vigil.moved(9);
    for (let count = 0; count < 100; count++) {
      await clock.advance(ttlMs / 3);
      vigil.moved(4);
      expect(vigil.due([a, b], true)).toEqual([a, b]);
      vigil.renewed();
      expect(vigil.due([a, b], true)).toEqual([]);
    }
  });

  it("are due again as long as they could not be written", () => {
    vigil.moved(10);
    expect(vigil.due([a], true)).toEqual([a]);
    expect(vigil.due([a], true)).toEqual([a]);
  });

  it("stay for an hour at most while Groups go all the time; those that came later stay longer", async () => {
    const minutes = async (count: number, paths: readonly string[]) => {
      let due: readonly string[] = [];
      for (let minute = 0; minute < count; minute++) {
        vigil.moved(20);
        due = vigil.due(paths, true);
        await clock.advance(60_000);
      }
      return due;
    };
    expect(await minutes(60, [a])).toEqual([a]);
    expect(await minutes(1, [a, b])).toEqual([b]);
    // One that went and came again is a new one.
    expect(await minutes(1, [b])).toEqual([b]);
    expect(await minutes(1, [a, b])).toEqual([a, b]);
  });

  it("stay while nobody knows what else goes, however long that is", async () => {
    for (let hour = 0; hour < 24; hour++) {
      expect(vigil.due([a], false)).toEqual([a]);
      await clock.advance(60 * 60_000);
    }
    expect(vigil.due([a], true)).toEqual([]);
  });
});
