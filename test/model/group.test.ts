import { describe, expect, it } from "vitest";
import type { Expression } from "../../src/model/labels/expression.ts";
import {
  compareGroups,
  type GroupSpec,
  isBroad,
  isSelecting,
  matches,
  normalizeSelector,
  toGroup,
} from "../../src/model/objects/group.ts";

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

describe("matches, with an expression beside a label,", () => {
  const both = group("g", {
    selector: { role: "web" },
    expressions: [
      { key: "os", operator: "DoesNotExist", values: [] },
      { key: "serial", operator: "Prefix", values: ["VM"] },
    ],
  });

  it.each([
    ["all that holds", { role: "web", serial: "VM-1" }, true],
    ["all that holds, and an empty label", { role: "web", serial: "VM-1", os: "" }, true],
    ["another value of the label", { role: "db", serial: "VM-1" }, false],
    ["one that does not hold", { role: "web", serial: "VM-1", os: "x" }, false],
    ["the label of one missing", { role: "web" }, false],
  ])("%s", (_name, labels, expected) => {
    expect(matches(both, new Map(Object.entries(labels)))).toBe(expected);
  });
});

describe("a selector's text", () => {
  it("has labels and expressions, sorted", () => {
    const expressions: readonly Expression[] = [
      { key: "os", operator: "Exists", values: [] },
      { key: "mac", operator: "In", values: ["a", "b"] },
    ];
    expect(group("g", { selector: { role: "web" }, expressions }).selectorText).toBe("mac In (a,b),os Exists,role=web");
  });
});

describe("isSelecting and isBroad", () => {
  const [exists, absent]: readonly Expression[] = [
    { key: "os", operator: "Exists", values: [] },
    { key: "os", operator: "DoesNotExist", values: [] },
  ];
  it.each<[name: string, spec: Partial<GroupSpec>, selecting: boolean, broad: boolean]>([
    ["nothing", {}, false, true],
    ["matchAll", { matchAll: true }, true, false],
    ["a label", { selector: { a: "b" } }, true, false],
    ["what is absent", { expressions: absent ? [absent] : [] }, false, true],
    ["what is there", { expressions: exists ? [exists] : [] }, true, true],
    ["a label and what is absent", { selector: { a: "b" }, expressions: absent ? [absent] : [] }, true, false],
    ["a beginning", { expressions: [{ key: "os", operator: "Prefix", values: ["abc"] }] }, true, false],
    ["a short one", { expressions: [{ key: "os", operator: "Prefix", values: ["ab"] }] }, true, true],
  ])("of %s", (_name, spec, selecting, broad) => {
    const whole = { profile: "p", selector: {}, matchAll: false, priority: 0, hold: false, metadata: {}, ...spec };
    expect([isSelecting(whole), isBroad(whole)]).toEqual([selecting, broad]);
  });
});

const inOne: Expression = { key: "x", operator: "In", values: ["1"] };

describe("compareGroups puts first", () => {
  it.each([
    [
      "an expression before none",
      group("a", { selector: { a: "1" }, expressions: [inOne] }),
      group("b", { selector: { z: "1" } }),
    ],
    ["a label before an expression", group("a", { selector: { a: "1" } }), group("b", { expressions: [inOne] })],
    [
      "more labels among as many requirements",
      group("a", { selector: { a: "1", b: "1" } }),
      group("b", { selector: { z: "1" }, expressions: [inOne] }),
    ],
    [
      "more expressions before fewer labels",
      group("a", { expressions: [inOne, { ...inOne, key: "y" }] }),
      group("b", { selector: { uuid: "1" } }),
    ],
    [
      "the later text of expressions",
      group("a", { expressions: [{ ...inOne, key: "y" }] }),
      group("b", { expressions: [inOne] }),
    ],
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
      "the smaller name for equal selectors, so that lists are sorted alike",
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
