import { beforeEach, describe, expect, it } from "vitest";
import { TombstoneRenewal } from "../../src/controller/tombstones/renewal.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const ttlMs = 60_000;
const [a, b] = ["/davit/tombstones/mac/a", "/davit/tombstones/mac/b"] as const;
let clock: FakeClock;
let renewal: TombstoneRenewal;
/** That many of one namespace. */
const many = (count: number, namespace = "lab") => Array.from({ length: count }, () => namespace);

beforeEach(() => {
  clock = new FakeClock();
  renewal = new TombstoneRenewal({ clock, ttlMs, namespacesAt: () => [] });
});

describe("tombstones", () => {
  it("end by themselves where a few Groups go, as people take machines out", async () => {
    for (let count = 0; count < 100; count++) {
      renewal.moved(many(1));
      expect(renewal.due([a], true)).toEqual([]);
      await clock.advance(ttlMs / 8);
    }
  });

  it("stay while Groups go by the dozen, and for their own time after the last of them", async () => {
    renewal.moved(many(9));
    for (let count = 0; count < 100; count++) {
      await clock.advance(ttlMs / 3);
      renewal.moved(many(4));
      expect(renewal.due([a, b], true)).toEqual([a, b]);
      renewal.renewed();
      expect(renewal.due([a, b], true)).toEqual([]);
    }
  });

  it("are due again as long as they could not be written", () => {
    renewal.moved(many(10));
    expect(renewal.due([a], true)).toEqual([a]);
    expect(renewal.due([a], true)).toEqual([a]);
  });

  it("stay for an hour at most while Groups go all the time; those that came later stay longer", async () => {
    const minutes = async (count: number, paths: readonly string[]) => {
      let due: readonly string[] = [];
      for (let minute = 0; minute < count; minute++) {
        renewal.moved(many(20));
        due = renewal.due(paths, true);
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
      expect(renewal.due([a], false)).toEqual([a]);
      await clock.advance(60 * 60_000);
    }
    expect(renewal.due([a], true)).toEqual([]);
  });

  describe("where several namespaces have an admin's", () => {
    const namespaces: Readonly<Record<string, string>> = { [a]: "team-a", [b]: "team-b" };

    beforeEach(() => {
      const namespacesAt = (path: string) => [namespaces[path] ?? ""];
      renewal = new TombstoneRenewal({ clock, ttlMs, adminNamespace: "infra", namespacesAt });
    });

    it.each<[name: string, moves: readonly string[], due: readonly string[]]>([
      ["one namespace, its own stay alone", many(1_000, "team-b"), [b]],
      ["the admin's, all stay", many(10, "infra"), [a, b]],
      ["many namespaces, all stay", [...many(4, "x"), ...many(4, "y"), ...many(4, "z")], [a, b]],
      ["two others, none stays", [...many(9, "x"), ...many(9, "y")], []],
      ["its own and others, it stays", [...many(6, "team-a"), ...many(9, "y")], [a]],
    ])("and Groups go by the dozen in %s", (_name, moves, due) => {
      renewal.moved(moves);
      expect(renewal.due([a, b], true)).toEqual(due);
    });
  });
});
