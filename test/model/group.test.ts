import { describe, expect, it } from "vitest";
import { compareGroups, type GroupSpec, matches, normalizeSelector, toGroup } from "../../src/model/group.ts";

function group(name: string, spec: Partial<GroupSpec>, namespace = "default") {
  return toGroup(namespace, name, {
    profile: "p",
    selector: {},
    matchAll: false,
    priority: 0,
    hold: false,
    metadata: {},
    ...spec,
  });
}

describe("toGroup", () => {
  it("names group and Profile with their namespace", () => {
    expect(group("web", {}, "lab")).toMatchObject({ id: "lab/web", profileId: "lab/p" });
  });

  it("tells the selector as sorted text", () => {
    expect(group("g", { selector: { mac: "m", Zone: "z", "a.b": "1" } }).selectorText).toBe("Zone=z,a.b=1,mac=m");
  });
});

describe("matches", () => {
  it.each([
    ["all labels present", { a: "1", b: "2" }, { a: "1", b: "2" }, true],
    ["extra labels", { a: "1" }, { a: "1", b: "2" }, true],
    ["a label missing", { a: "1", b: "2" }, { a: "1" }, false],
    ["another value", { a: "1" }, { a: "2" }, false],
    ["another letter case", { serial: "A" }, { serial: "a" }, false],
    ["an empty selector", {}, { a: "1" }, true],
    ["no labels at all", { a: "1" }, {}, false],
    ["a name of object prototypes", { constructor: "1" }, {}, false],
  ])("with %s", (_name, selector, labels, expected) => {
    expect(matches(group("g", { selector }), new Map(Object.entries(labels)))).toBe(expected);
  });
});

describe("compareGroups puts first", () => {
  it.each([
    ["the higher priority", group("a", { priority: 1 }), group("b", { priority: 0, selector: { x: "1", y: "2" } })],
    ["more selector labels", group("a", { selector: { a: "1", b: "2" } }), group("b", { selector: { uuid: "1" } })],
    ["uuid before serial", group("a", { selector: { uuid: "1" } }), group("b", { selector: { serial: "9" } })],
    ["serial before mac", group("a", { selector: { serial: "1" } }), group("b", { selector: { mac: "9" } })],
    ["mac before hostname", group("a", { selector: { mac: "1" } }), group("b", { selector: { hostname: "9" } })],
    ["hostname before domain", group("a", { selector: { hostname: "1" } }), group("b", { selector: { domain: "9" } })],
    ["the later value", group("a", { selector: { x: "2" } }), group("b", { selector: { x: "1" } })],
    [
      "the later value by bytes, not by UTF-16",
      group("a", { selector: { x: "😀" } }),
      group("b", { selector: { x: "\uFFFD" } }),
    ],
    [
      "the smaller name for equal selectors",
      group("a", { selector: { x: "1" } }),
      group("b", { selector: { x: "1" } }),
    ],
    [
      "the smaller namespace for equal selectors",
      group("z", { selector: { x: "1" } }, "a"),
      group("a", { selector: { x: "1" } }, "b"),
    ],
  ])("%s", (_name, first, second) => {
    expect(compareGroups(first, second)).toBeLessThan(0);
    expect(compareGroups(second, first)).toBeGreaterThan(0);
    expect(compareGroups(first, first)).toBe(0);
  });
});

describe("normalizeSelector", () => {
  it("normalises values as labels are", () => {
    expect(normalizeSelector({ mac: "52-54-00-A1-9C-AE", uuid: "AB", role: "Web" })).toEqual({
      selector: { mac: "52:54:00:a1:9c:ae", uuid: "ab", role: "Web" },
    });
  });

  it("names the label whose value cannot be one", () => {
    expect(normalizeSelector({ role: "web", mac: "52:54" })).toEqual({ badLabel: "mac" });
  });
});
