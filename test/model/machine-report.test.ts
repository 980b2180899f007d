import { describe, expect, it } from "vitest";
import { cleanMessage, ReportError, reportOfFields, reportOfJson } from "../../src/model/permits/machine-report.ts";

const fields = (text: string) => reportOfFields(new URLSearchParams(text));
const json = (value: unknown, query = "") => reportOfJson(JSON.stringify(value), new URLSearchParams(query));

/** The field that a reader refuses; undefined if it accepts the report. */
function refusedField(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (error instanceof ReportError) return error.field;
    throw error;
  }
}

describe("fields", () => {
  it("has the state, and what else was sent", () => {
    expect(fields("state=installed")).toEqual({ state: "installed" });
    expect(fields("state=progress&progress=41.6&message=two+words&label.os=installed&other=x")).toEqual({
      state: "progress",
      progress: 42,
      message: "two words",
      labels: { os: "installed" },
    });
  });

  it("takes an empty value as absent, as a shell sends it for a variable that is not set", () => {
    expect(fields("state=failed&progress=&message=&label.os=x")).toEqual({ state: "failed", labels: { os: "x" } });
  });

  it.each([
    ["", "state"],
    ["state=", "state"],
    ["state=Installed", "state"],
    ["state=installed&state=failed", "state"],
    ["state=progress&progress=101", "progress"],
    ["state=progress&progress=-1", "progress"],
    ["state=progress&progress=half", "progress"],
    ["state=progress&message=a&message=b", "message"],
    [`state=installed&label.os=${"x".repeat(257)}`, "labels"],
    [`state=installed&${Array.from({ length: 17 }, (_, at) => `label.a${at}=x`).join("&")}`, "labels"],
    ["state=installed&label.=x", "labels"],
  ])("refuses %j by naming the field", (text, field) => {
    expect(refusedField(() => fields(text))).toBe(field);
  });
});

describe("JSON", () => {
  it("has the same fields", () => {
    expect(json({ state: "installed", progress: 100, message: "done", labels: { os: "installed" }, x: [] })).toEqual({
      state: "installed",
      progress: 100,
      message: "done",
      labels: { os: "installed" },
    });
    expect(json({ progress: 5 }, "state=progress")).toEqual({ state: "progress", progress: 5 });
  });

  it.each([
    [[], "body"],
    [{ state: 1 }, "state"],
    [{ state: "failed", message: {} }, "message"],
    [{ state: "failed", progress: true }, "progress"],
    [{ state: "failed", labels: { os: 1 } }, "labels"],
    [{ state: "failed", labels: ["os"] }, "labels"],
  ])("refuses %j by naming the field", (value, field) => {
    expect(refusedField(() => json(value))).toBe(field);
  });

  it.each(["start", "finish"])("of a reporting handler counts as progress, whatever its result: %s", (type) => {
    const event = { name: "subiquity/Install", description: "installing", event_type: type, result: "SUCCESS" };
    expect(json(event, "state=installed")).toEqual({
      state: "progress",
      message: `${type} subiquity/Install SUCCESS: installing`,
    });
  });
});

describe("a message", () => {
  it("has no control characters, line ends or invisible characters", () => {
    expect(cleanMessage("\u001b[31mred\u0007\r\n line\u202e two\u00a0\u2028three\u0000 ")).toBe(
      "[31mred line two three",
    );
  });

  it("has at most 256 characters, and no half of a pair", () => {
    expect(cleanMessage("x".repeat(5_000))).toHaveLength(256);
    const cut = cleanMessage(`${"x".repeat(255)}😀`);
    expect(cut.isWellFormed()).toBe(true);
  });
});
