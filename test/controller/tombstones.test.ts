import { describe, expect, it } from "vitest";
import { type Passing, tombstoneWrites } from "../../src/controller/tombstones.ts";
import type { GroupSpec } from "../../src/model/group.ts";
import { identityLabels } from "../../src/model/labels.ts";
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

/** As versions before the labels wrote it. */
const old = (group: string, selector: string) => JSON.stringify({ group, selector });
const left = (group: string, selector: string, labels: object) => JSON.stringify({ group, selector, labels: [labels] });
const several = (...labels: readonly object[]) => [{ path: atMac, text: JSON.stringify({ labels }), ttlSeconds: 60 }];

describe("a tombstone", () => {
  it("is left by a Group that goes, for its uuid and its mac", () => {
    expect(writes([passing(spec({ uuid: "u-1", mac, role: "web" }), undefined)])).toEqual(
      ["/davit/tombstones/uuid/u-1", atMac].map((path) => ({
        path,
        text: left("lab/node", `mac=${mac},role=web,uuid=u-1`, { uuid: "u-1", mac, role: "web" }),
        ttlSeconds: 60,
      })),
    );
  });

  it.each(identityLabels)("is left by a Group that selects by %s", (label) => {
    const path = `/davit/tombstones/${label}/x`;
    const text = left("lab/node", `${label}=x`, { [label]: "x" });
    expect(writes([passing(spec({ [label]: "x" }), undefined)])).toEqual([{ path, text, ttlSeconds: 60 }]);
  });

  it.each<[name: string, before: GroupSpec | undefined, after: GroupSpec | undefined]>([
    ["a Group that names no machine", spec({ role: "web" }), undefined],
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
      { path: atMac, text: left("lab/node", `mac=${mac}`, { mac }), ttlSeconds: 60 },
    ]);
  });

  it("is left by a Group whose new labels read like the old ones", () => {
    const [before, after] = [spec({ mac, a: "1,b=2" }), spec({ mac, a: "1", b: "2" })];
    expect(writes([passing(before, after)]).map(({ path }) => path)).toEqual([atMac]);
  });

  it.each<[name: string, text: string]>([
    ["it", left("lab/node", `mac=${mac}`, { mac })],
    ["an older version", old("lab/node", `mac=${mac}`)],
  ])("is taken away by its Group when it comes back as it was, as %s tells of it", (_name, text) => {
    expect(writes([passing(undefined, spec({ mac }))], [[atMac, text]])).toEqual([{ path: atMac, text: undefined }]);
  });

  it.each<[name: string, text: string]>([
    ["another Group", left("lab/other", `mac=${mac}`, { mac })],
    ["the same Group with another selector", left("lab/node", `mac=${mac},role=web`, { mac, role: "web" })],
    ["several", JSON.stringify({ labels: [{ mac }, { mac, role: "web" }] })],
    ["several, by an older version", "{}"],
    ["nobody knows whom", "no JSON"],
  ])("stays for its time where it is of %s", (_name, text) => {
    expect(writes([passing(undefined, spec({ mac }))], [[atMac, text]])).toEqual([]);
  });

  const web = passing(spec({ mac, role: "web" }), undefined, "lab/web");
  const database = passing(spec({ mac, role: "db" }), undefined, "lab/db");

  it("is nobody's where several leave it, in one step or two, and tells of all their selectors", () => {
    const both = several({ mac, role: "db" }, { mac, role: "web" });
    expect(writes([database, web])).toEqual(both);
    expect(writes([web], [[atMac, left("lab/db", `mac=${mac},role=db`, { mac, role: "db" })]])).toEqual(both);
  });

  it("tells of a selector once, however many Groups had it, and of the last that went at the end", () => {
    const other = passing(database.before, undefined, "lab/other");
    expect(writes([database, web, other])).toEqual(several({ mac, role: "web" }, { mac, role: "db" }));
  });

  it.each<[name: string, text: string]>([
    ["one Group", old("lab/db", `mac=${mac},role=db`)],
    ["several", "{}"],
    ["nobody knows whom", "no JSON"],
  ])("stands for the label alone, too, where an older version left it for %s", (_name, text) => {
    expect(writes([web], [[atMac, text]])).toEqual(several({ mac }, { mac, role: "web" }));
  });

  it("tells of 16 selectors at most: those that went first become the label alone", () => {
    const passings = Array.from({ length: 40 }, (_, at) =>
      passing(spec({ mac, role: `${at}` }), undefined, `lab/${at}`),
    );
    const last = Array.from({ length: 15 }, (_, at) => ({ mac, role: `${25 + at}` }));
    expect(writes(passings)).toEqual(several({ mac }, ...last));
    expect(writes(passings.slice(0, 16))).toEqual(
      several(...Array.from({ length: 16 }, (_, at) => ({ mac, role: `${at}` }))),
    );
  });

  it("is left by a Group that goes in the step in which another one comes for the same machine", () => {
    expect(writes([passing(undefined, spec({ mac }), "lab/new"), passing(spec({ mac }), undefined)])).toHaveLength(1);
  });
});
