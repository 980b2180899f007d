import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { boots, key, keysOfPage, recordBoot } from "./firmware-table.ts";
import { keysOfOutcomes, recordOutcome, situations } from "./outcome-table.ts";

const suites = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".test.ts"));
const text = suites.map((name) => readFileSync(join(import.meta.dirname, name), "utf8")).join("");

describe("docs/reference/firmware.md's table of boot loaders", () => {
  it("has exactly the boots that the suites have", () => {
    expect(keysOfPage()).toEqual(Object.values(boots).map(key));
  });

  it("lists no boot that no suite has", () => {
    const idle = Object.keys(boots).filter((name) => !new RegExp(`\\bboots\\.${name}\\b`).test(text));
    expect(idle).toEqual([]);
  });

  it("takes no boot that it does not list", () => {
    const unlisted = { ...boots.biosIpxeRom, how: "by hand" };
    expect(() => recordBoot(unlisted)).toThrow("Not in the table of boots: BIOS | iPXE | by hand");
  });
});

describe("docs/reference/firmware.md's table of outcomes", () => {
  it("has exactly the outcomes that the suites have", () => {
    const { shown, booted } = keysOfOutcomes();
    expect(shown.toSorted()).toEqual(booted.toSorted());
  });

  it("lists no situation that no suite has", () => {
    const idle = Object.keys(situations).filter((name) => !new RegExp(`\\bsituations\\.${name}\\b`).test(text));
    expect(idle).toEqual([]);
  });

  it("takes no outcome that it does not list", () => {
    const outcome = { result: "its disk", seconds: 1 };
    expect(() => recordOutcome(situations.odd, "uefiGrub", outcome)).toThrow("Not in the table of outcomes: blanks");
  });
});
