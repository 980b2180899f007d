import { beforeEach, describe, expect, it } from "vitest";
import { SightingIntake } from "../../src/controller/machines/sighting-intake.ts";
import { Sightings } from "../../src/controller/machines/sightings.ts";
import type { MachineSighting } from "../../src/model/sighting.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const identities = ["mac/52:54:00:00:00:01"];
const at = (atMs: number, stage = "ipxe"): MachineSighting => ({ identities, atMs, stage, result: "served" });
let sightings: Sightings;
let followed: [string, boolean][];

beforeEach(() => {
  sightings = new Sightings();
  followed = [];
  sightings.follow(({ stage }, isOwn) => followed.push([stage, isOwn]));
});

describe("what a follower hands on", () => {
  it("is shown as not davit's own", () => {
    sightings.saw(at(1, "own"));
    sightings.heard(at(2, "follower"));
    expect(followed).toEqual([
      ["own", true],
      ["follower", false],
    ]);
    expect(sightings.of(identities)?.stage).toBe("follower");
  });

  it("replaces nothing that is as new", () => {
    sightings.saw(at(2, "own"));
    sightings.heard(at(1, "older"));
    sightings.heard(at(2, "same"));
    expect(sightings.of(identities)?.stage).toBe("own");
    expect(followed).toHaveLength(1);
  });

  it("is taken at a limited rate", async () => {
    const clock = new FakeClock();
    const intake = new SightingIntake({ sightings, clock });
    const many = Array.from({ length: 5_000 }, (_, count) => at(count + 1));
    expect(intake.take(many)).toBe(4_096);
    expect(intake.take(many)).toBe(0);
    await clock.advance(1_000);
    expect(intake.take(many)).toBe(1_000);
  });
});

describe("the digest of a script", () => {
  it("stays while the machine asks for other things, whoever answers", () => {
    sightings.saw({ ...at(1), rendered: "a" });
    sightings.saw(at(2, "ignition"));
    expect(sightings.of(identities)).toMatchObject({ stage: "ignition", rendered: "a" });
    sightings.heard({ ...at(3), rendered: "b" });
    sightings.heard(at(4, "ignition"));
    sightings.saw(at(5, "ignition"));
    expect(sightings.of(identities)).toMatchObject({ atMs: 5, rendered: "b" });
  });
});
