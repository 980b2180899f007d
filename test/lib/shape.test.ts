import { describe, expect, it } from "vitest";
import {
  flag,
  lenient,
  list,
  number,
  object,
  oneOf,
  optional,
  parsed,
  record,
  ShapeError,
  text,
  variant,
  whole,
} from "../../src/lib/shape.ts";

const machine = object({
  id: text,
  ports: list(object({ number: whole, isOpen: optional(flag) })),
  labels: optional(record(text)),
  state: oneOf(["on", "off"]),
  load: lenient(number),
});
const good = {
  id: "a",
  ports: [{ number: 80, isOpen: true }, { number: 0 }],
  labels: { x: "y" },
  state: "on",
  load: 1,
};

describe("a shape", () => {
  it("returns a value without the members that it does not know", () => {
    expect(machine({ ...good, more: 1 })).toEqual(good);
    const { labels: _labels, ...without } = good;
    expect(Object.keys(machine(without))).toEqual(["id", "ports", "state", "load"]);
  });

  it.each([
    { name: "no object", value: "secret", message: "it is no object" },
    { name: "null", value: null, message: "it is no object" },
    { name: "a list", value: [], message: "it is no object" },
    { name: "a missing member", value: { ...good, id: undefined }, message: "id is no text" },
    { name: "a wrong member", value: { ...good, state: "secret" }, message: "state is none of on, off" },
    { name: "no list", value: { ...good, ports: {} }, message: "ports is no list" },
    {
      name: "a fraction",
      value: { ...good, ports: [{ number: 0.5 }] },
      message: "ports[0].number is no whole number from 0",
    },
    {
      name: "a negative number",
      value: { ...good, ports: [{ number: -1 }] },
      message: "ports[0].number is no whole number from 0",
    },
    { name: "a wrong element", value: { ...good, ports: ["secret"] }, message: "ports[0] is no object" },
    { name: "a wrong optional member", value: { ...good, labels: { "a.b": 1 } }, message: "labels.a.b is no text" },
  ])("names the place in $name, and not the value", ({ value, message }) => {
    expect(() => machine(value)).toThrow(new ShapeError(message.replace(/^\S+ /, ""), message.split(" ", 1)[0]));
  });

  it("takes a lenient member of another type for a missing one", () => {
    expect(machine({ ...good, load: "high" })).not.toHaveProperty("load");
  });

  it("takes no inherited member, and any name in a record", () => {
    expect(() => object({ constructor: text })({})).toThrow("constructor is no text");
    expect(Object.keys(record(text)(JSON.parse('{"__proto__":"x"}')))).toEqual(["__proto__"]);
  });

  it("is chosen by a tag", () => {
    const line = variant("kind", { put: object({ path: text }), end: object({}) });
    expect([line({ kind: "put", path: "/a" }), line({ kind: "end" })]).toEqual([
      { kind: "put", path: "/a" },
      { kind: "end" },
    ]);
    for (const kind of ["toString", "other", 1, undefined])
      expect(() => line({ kind })).toThrow("kind is of no known kind");
    expect(() => line({ kind: "put" })).toThrow("path is no text");
  });

  it("reads a text, or returns undefined", () => {
    expect(parsed(machine, JSON.stringify(good))).toEqual(good);
    expect([parsed(machine, "{"), parsed(machine, "{}"), parsed(machine, "")]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});
