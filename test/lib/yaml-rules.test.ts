import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { isAmbiguous } from "../../src/lib/text/yaml-rules.ts";
import { yamlToJson } from "../../src/render/config/yaml.ts";
import { RenderError } from "../../src/render/core/render-error.ts";
import { readDocuments } from "../../src/sources/directory/yaml-documents.ts";

const ambiguous = [
  ...["y", "Y", "yes", "NO", "off", "On", "n", "0123", "-017", "089", "00", "0644", "1_000", "1_0.5", "0x_1", "-0x1F"],
  ...["0b101", "0o14", "0o17", "52:54:00:12:34:56", "52:54:00", "12:30:45", "1:30", "190:20:30.15", "1e3", "12E+4"],
  ...["1.5e3", ".5e10", "+1_0", "._0e0", "="],
];
const clear = [
  ...[
    "true",
    "null",
    "~",
    "0",
    "7",
    "-12",
    "-0",
    "+1",
    "1.5",
    ".5",
    "1.5e+3",
    "0x1F",
    ".inf",
    ".NaN",
    "yes please",
    "yEs",
  ],
  ...["nope", "2001-12-14", "2026-01-02", "<<", "1,000_0", "52:54:00:a1:9c:ae", "99:99", "a_b", "v1_0", "_1", "1.2.3"],
  ...["http://a:80", "e3", "0x", "10.0.0.1", "12:60"],
];

describe.each([
  { of: "the rule", refuses: isAmbiguous },
  { of: "a manifest", refuses: refusesInManifest },
  { of: "a config", refuses: refusesInConfig },
])("in the eyes of $of", ({ refuses }) => {
  it.each(ambiguous)("`%s` is ambiguous", (plain) => {
    expect(refuses(plain)).toBe(true);
  });

  it.each(clear)("`%s` is not ambiguous", (plain) => {
    expect(refuses(plain)).toBe(false);
  });
});

function refusesInManifest(plain: string): boolean {
  const documents = readDocuments(`a: ${plain}\n`, "yaml");
  return (
    !("text" in documents) && documents.some((each) => each.findings().some(({ code }) => code === "unquoted-scalar"))
  );
}

function refusesInConfig(plain: string): boolean {
  try {
    yamlToJson(`a: ${plain}\n`, "noCloudConfigLine");
    return false;
  } catch (error) {
    return error instanceof RenderError && error.reason === "ambiguousYaml";
  }
}

it("what the two versions of YAML read differently is ambiguous", () => {
  const characters = [..."0123456789abcdefxoXyYnNtTsSeEfF_+-.:"];
  const word = fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength: 8 });
  const number = fc.string({ unit: fc.constantFrom(..."0123_+-.:exo"), minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(fc.oneof(word, number), (text) => {
      fc.pre(readsAsScalar(text) && !isAmbiguous(text));
      expect(read(text, "1.1")).toEqual(read(text, "1.2"));
    }),
    { numRuns: 3_000 },
  );
});

function read(text: string, version: "1.1" | "1.2"): unknown {
  const value: unknown = parse(text, { version, logLevel: "silent" });
  // A timestamp ends as text in JSON; and this parser takes `.` and `e0` for numbers of 1.1, which they are not.
  return value instanceof Date || Number.isNaN(value) ? text : value;
}

function readsAsScalar(text: string): boolean {
  try {
    return ["string", "number", "boolean"].includes(typeof parse(text, { version: "1.2", logLevel: "silent" }));
  } catch {
    // Not a scalar in YAML at all, such as `- -`.
    return false;
  }
}
