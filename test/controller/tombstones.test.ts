import { describe, expect, it } from "vitest";
import { type Passing, tombstoneWrites } from "../../src/controller/tombstones.ts";
import type { GroupSpec } from "../../src/model/group.ts";
import { groupSpec } from "./objects.ts";

const mac = "52:54:00:a1:9c:ae";
const atMac = `/davit/tombstones/mac/${mac}`;
const none: readonly [string, string][] = [];

function spec(selector: Record<string, string>): GroupSpec {
  return groupSpec({ selector });
}

function passing(before: GroupSpec | undefined, after: GroupSpec | undefined, id = "lab/node"): Passing {
  return { id, before, after };
}

function writes(passings: readonly Passing[], stored: readonly (readonly [string, string])[] = none) {
  const texts = new Map(stored);
  return tombstoneWrites(passings, { textAt: (path) => texts.get(path), ttlSeconds: 60 });
}

const left = (group: string, selector: string) => JSON.stringify({ group, selector });

describe("a tombstone", () => {
  it("is left by a Group that goes, for its uuid and its mac", () => {
    expect(writes([passing(spec({ uuid: "u-1", mac, role: "web" }), undefined)])).toEqual(
      ["/davit/tombstones/uuid/u-1", atMac].map((path) => ({
        path,
        text: left("lab/node", `mac=${mac},role=web,uuid=u-1`),
        ttlSeconds: 60,
      })),
    );
  });

  it.each<[name: string, before: GroupSpec | undefined, after: GroupSpec | undefined]>([
    ["a Group that selects by nothing of the hardware", spec({ role: "web", serial: "1" }), undefined],
    ["a catch-all", groupSpec({ selector: {}, matchAll: true }), undefined],
    ["a Group that comes", undefined, spec({ mac })],
    ["a Group whose selector stays", spec({ mac }), { ...spec({ mac }), priority: 5, hold: true, profile: "other" }],
    ["a selector whose labels are written in another order", spec({ mac, role: "a" }), spec({ role: "a", mac })],
  ])("is not left by %s", (_name, before, after) => {
    expect(writes([passing(before, after)])).toEqual([]);
  });

  it.each<[name: string, after: GroupSpec]>([
    ["another mac", spec({ mac: "52:54:00:00:00:02" })],
    ["no mac any more", spec({ role: "web" })],
    ["a narrower selector", spec({ mac, role: "web" })],
    ["a catch-all", groupSpec({ selector: {}, matchAll: true })],
  ])("is left by a Group that changes to %s", (_name, after) => {
    expect(writes([passing(spec({ mac }), after)])).toEqual([
      { path: atMac, text: left("lab/node", `mac=${mac}`), ttlSeconds: 60 },
    ]);
  });

  it("is taken away by its Group when it comes back as it was", () => {
    const stored = [[atMac, left("lab/node", `mac=${mac}`)]] as const;
    expect(writes([passing(undefined, spec({ mac }))], stored)).toEqual([{ path: atMac, text: undefined }]);
  });

  it.each<[name: string, text: string]>([
    ["another Group", left("lab/other", `mac=${mac}`)],
    ["the same Group with another selector", left("lab/node", `mac=${mac},role=web`)],
    ["several", "{}"],
    ["nobody knows whom", "no JSON"],
  ])("stays for its time where it is of %s", (_name, text) => {
    expect(writes([passing(undefined, spec({ mac }))], [[atMac, text]])).toEqual([]);
  });

  it("is nobody's where several leave it, in one step or two", () => {
    const nobodys = [{ path: atMac, text: "{}", ttlSeconds: 60 }];
    const web = passing(spec({ mac, role: "web" }), undefined, "lab/web");
    const database = passing(spec({ mac, role: "db" }), undefined, "lab/db");
    expect(writes([web, database])).toEqual(nobodys);
    expect(writes([web], [[atMac, left("lab/db", `mac=${mac},role=db`)]])).toEqual(nobodys);
  });

  it("is left by a Group that goes in the step in which another one comes for the same machine", () => {
    expect(writes([passing(undefined, spec({ mac }), "lab/new"), passing(spec({ mac }), undefined)])).toHaveLength(1);
  });
});
