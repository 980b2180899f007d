import { expect, it } from "vitest";
import { type MachineSighting, mayBeSightingOf, withLaterScript } from "../../src/model/sighting.ts";

const mac = "mac/52:54:00:00:00:01";
const uuid = "uuid/4c4c4544-0034-3510-8054-b4c04f4d4e32";

it.each([
  { identities: [mac], listed: [mac, uuid], may: true },
  { identities: [mac, uuid], listed: [mac], may: true },
  { identities: [mac, "uuid/other"], listed: [mac, uuid], may: false },
  { identities: ["mac/other", uuid], listed: [mac, uuid], may: false },
])("a request with $identities may be of a Machine with $listed: $may", ({ identities, listed, may }) => {
  expect(mayBeSightingOf({ identities }, listed)).toBe(may);
});

it("a sighting takes over a script that was rendered later, and no other", () => {
  const script = (atMs: number) => ({ sha256: "0".repeat(64), atMs });
  const sighting: MachineSighting = { identities: [mac], atMs: 9, stage: "ipxe", result: "served", script: script(5) };
  expect(withLaterScript(sighting, script(6)).script).toEqual(script(6));
  expect(withLaterScript(sighting, script(5))).toBe(sighting);
  expect(withLaterScript(sighting, undefined)).toBe(sighting);
});
