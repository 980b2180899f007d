import { describe, expect, it } from "vitest";
import { decodeSightings, encodeSightings, type MachineSighting, maxSightings } from "../../src/model/sighting.ts";

const nowMs = Date.UTC(2026, 0, 2);
const sighting: MachineSighting = {
  identities: ["uuid/4c4c4544-0034-3510-8054-b4c04f4d4e32", "mac/52:54:00:00:00:01"],
  atMs: nowMs - 5_000,
  address: "192.0.2.1",
  group: "racks/web",
  profile: "racks/flatcar-4.1",
  stage: "generic-part",
  result: "served",
  script: { sha256: "0".repeat(64), atMs: nowMs - 9_000 },
};

/** What the writer reads of one sighting as JSON has it. */
const read = (value: unknown, atMs = nowMs) => decodeSightings(JSON.stringify({ sightings: [value] }), atMs);

describe("a sighting", () => {
  it("is the same at the writer, whose clock is another one", () => {
    const body = JSON.stringify(encodeSightings([sighting], nowMs));
    expect(decodeSightings(body, nowMs)).toEqual([sighting]);
    expect(decodeSightings(body, nowMs + 60_000)).toEqual([
      { ...sighting, atMs: nowMs + 55_000, script: { ...sighting.script, atMs: nowMs + 51_000 } },
    ]);
  });

  it("is never of the future, and at most a day old", () => {
    const { atMs: _, ...sent } = sighting;
    expect(read({ ...sent, agoMs: -5 })?.[0]?.atMs).toBe(nowMs);
    expect(read({ ...sent, agoMs: 1e15 })?.[0]?.atMs).toBe(nowMs - 86_400_000);
    expect(encodeSightings([{ ...sighting, atMs: nowMs + 9 }], nowMs)).toMatchObject({ sightings: [{ agoMs: 0 }] });
  });

  const least = { identities: ["mac/52:54:00:00:00:01"], agoMs: 0, stage: "ipxe", result: "served" };
  it.each([
    { ...least, identities: [] },
    { ...least, identities: ["serial/1"] },
    { ...least, identities: ["mac/x y"] },
    { ...least, identities: ["mac/1", "mac/2", "mac/3"] },
    { ...least, identities: "mac/1" },
    { ...least, agoMs: "0" },
    { ...least, stage: "x".repeat(65) },
    { ...least, stage: "a b" },
    { ...least, result: "" },
    { ...least, result: 7 },
    "text",
    null,
  ])("is left out if a status could not show it: %j", (value) => {
    expect(read(value)).toEqual([]);
  });

  it.each([
    { group: "no-namespace" },
    { profile: "A/B" },
    { address: "node.example" },
    { rendered: "abc", renderedAgoMs: 0 },
    { rendered: "0".repeat(64) },
    { rendered: "0".repeat(64), renderedAgoMs: "0" },
    { approved: true },
    { state: "Installed" },
  ])("has no more members than these, in their form: %j", (more) => {
    const { agoMs: _, ...known } = least;
    expect(read({ ...least, ...more })).toEqual([{ ...known, atMs: nowMs }]);
  });
});

describe("a body", () => {
  it.each(["", "[]", "{}", '{"sightings":{}}', JSON.stringify({ sightings: Array(maxSightings + 1).fill({}) })])(
    "is refused as a whole: %.40s",
    (text) => {
      expect(decodeSightings(text, nowMs)).toBeUndefined();
    },
  );
});
