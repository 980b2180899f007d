import { beforeEach, describe, expect, it } from "vitest";
import { Sightings } from "../../src/controller/machines/sightings.ts";
import type { MachineSighting } from "../../src/model/sighting.ts";

const identities = ["mac/52:54:00:00:00:01"];
const at = (atMs: number, stage = "ipxe"): MachineSighting => ({ identities, atMs, stage, result: "served" });
const script = (sha256: string, atMs: number) => ({ sha256, atMs });
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
    sightings.saw(at(2, "follower"), false);
    expect(followed).toEqual([
      ["own", true],
      ["follower", false],
    ]);
    expect(sightings.of(identities)?.stage).toBe("follower");
  });

  it("replaces nothing that is as new", () => {
    sightings.saw(at(2, "own"));
    sightings.saw(at(1, "older"), false);
    sightings.saw(at(2, "same"), false);
    expect(sightings.of(identities)?.stage).toBe("own");
    expect(followed).toHaveLength(1);
  });
});

describe("what davit answered itself", () => {
  it("replaces what is as new, and nothing newer that a follower handed on meanwhile", () => {
    sightings.saw(at(1, "first"));
    sightings.saw(at(1, "second"));
    expect(sightings.of(identities)?.stage).toBe("second");
    sightings.saw(at(3, "follower"), false);
    sightings.saw(at(2, "late"));
    expect(sightings.of(identities)?.stage).toBe("follower");
    // An unknown machine is enrolled by any of them.
    expect(followed.at(-1)).toEqual(["late", true]);
  });
});

describe("the digest of a script", () => {
  it("stays while the machine asks for other things, whoever answers", () => {
    sightings.saw({ ...at(1), script: script("a", 1) });
    sightings.saw(at(2, "ignition"));
    expect(sightings.of(identities)).toMatchObject({ stage: "ignition", script: script("a", 1) });
    sightings.saw({ ...at(3), script: script("b", 3) }, false);
    sightings.saw(at(4, "ignition"), false);
    sightings.saw(at(5, "ignition"));
    expect(sightings.of(identities)).toMatchObject({ atMs: 5, script: script("b", 3) });
  });

  it("is shown when a follower hands it on after a newer request", () => {
    sightings.saw(at(2_000, "ignition"));
    sightings.saw({ ...at(1_000), script: script("late", 1_000) }, false);
    expect(sightings.of(identities)).toMatchObject({ stage: "ignition", script: script("late", 1_000) });
    expect(followed).toEqual([
      ["ignition", true],
      ["ipxe", false],
    ]);
  });

  it("replaces none that was rendered later, or at the same time", () => {
    sightings.saw({ ...at(2_000), script: script("own", 2_000) });
    sightings.saw({ ...at(3_000, "ignition"), script: script("older", 1_000) }, false);
    sightings.saw({ ...at(3_000, "report"), script: script("same", 2_000) }, false);
    expect(sightings.of(identities)).toMatchObject({ stage: "ignition", script: script("own", 2_000) });
    sightings.saw({ ...at(2_500), script: script("newer", 2_500) }, false);
    expect(sightings.of(identities)).toMatchObject({ stage: "ignition", script: script("newer", 2_500) });
  });

  it("is the newest of a machine's interfaces", () => {
    const second = "mac/52:54:00:00:00:02";
    sightings.saw({ ...at(1), script: script("a", 1) });
    sightings.saw({ ...at(2), identities: [second], script: script("b", 2) });
    sightings.saw(at(3, "ignition"));
    expect(sightings.of([...identities, second])).toMatchObject({ stage: "ignition", script: script("b", 2) });
  });

  it.each([true, false])(
    "stays with its identities when one request has those of two Machines, own or not: %s",
    (isOwn) => {
      const uuid = "uuid/4c4c4544-0034-3510-8054-b4c04f4d4e32";
      sightings.saw({ ...at(1), identities: [uuid], script: script("a", 1) });
      sightings.saw({ ...at(2), script: script("b", 2) });
      sightings.saw({ ...at(3, "ignition"), identities: [uuid, ...identities] }, isOwn);
      expect(sightings.of([uuid])).toMatchObject({ stage: "ignition", script: script("a", 1) });
      expect(sightings.of(identities)).toMatchObject({ stage: "ignition", script: script("b", 2) });
      sightings.saw({ ...at(5, "ignition"), identities: [uuid, "mac/52:54:00:00:00:09"] }, isOwn);
      expect(sightings.of(["mac/52:54:00:00:00:09"])?.script).toBeUndefined();
    },
  );
});
