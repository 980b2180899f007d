/** What machines get of Groups that select by expressions, and once such a Group has gone. */

import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BootError } from "../../src/boot/core/boot-error.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { tombstoneWrites } from "../../src/controller/tombstones/tombstones.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import type { Expression } from "../../src/model/labels/expression.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { groupPath } from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import { groupDocument, groupSpec, profileDocument, syncedDocument } from "./feed-documents.ts";

const log = createLog({ level: "silent", format: "json" });
const [one, two] = ["52:54:00:00:00:01", "52:54:00:00:00:02"];
const rack: Expression = { key: "mac", operator: "In", values: [one, two] };
const installed: Expression = { key: "os", operator: "Exists", values: [] };
const catchAll = groupDocument("lab/install", { matchAll: true });

function indexOf(groups: readonly (readonly [string, string])[], complete = true): BootIndex {
  const index = new BootIndex({ log });
  index.replaced([profileDocument("lab/web"), ...groups, syncedDocument({ complete })]);
  index.open();
  return index;
}

/** The Group that a machine gets, or why it gets none. */
function answer(index: BootIndex, query: string): string {
  try {
    return index.select(labelsFromQuery(query)).group.id;
  } catch (error) {
    if (error instanceof BootError) return error.reason;
    throw error;
  }
}

describe("a Group of a list of addresses", () => {
  const index = indexOf([catchAll, groupDocument("lab/rack", { expressions: [rack] })]);

  it.each([
    ["mac=52-54-00-00-00-01", "lab/rack"],
    ["mac=525400000002&os=x", "lab/rack"],
    ["mac=52-54-00-00-00-03", "lab/install"],
    ["mac=", "lab/install"],
    ["mac=52-54", "unreadable"],
  ])("answers %s with %s", (query, expected) => {
    expect(answer(index, query)).toBe(expected);
  });

  it("names its machines where part of the source was never readable, unlike one of patterns", () => {
    const pattern: Expression = { key: "mac", operator: "Prefix", values: ["52:54"] };
    const half = indexOf(
      [
        groupDocument("lab/rack", { expressions: [rack], priority: 1 }),
        groupDocument("lab/p", { expressions: [pattern] }),
      ],
      false,
    );
    expect(answer(half, "mac=52-54-00-00-00-01")).toBe("lab/rack");
    expect(answer(half, "mac=52-54-00-00-00-03")).toBe("withheld");
  });
});

it.each([
  ["no os", "mac=52-54-00-00-00-01", "lab/blank"],
  ["an empty os", "mac=52-54-00-00-00-01&os=", "lab/blank"],
  ["an os", "mac=52-54-00-00-00-01&os=x", "noMatch"],
])("a machine with %s is asked by DoesNotExist", (_name, query, expected) => {
  const expressions: readonly Expression[] = [rack, { key: "os", operator: "DoesNotExist", values: [] }];
  expect(answer(indexOf([groupDocument("lab/blank", { expressions })]), query)).toBe(expected);
});

it("a Group whose operator is not known has all machines wait that it may select", () => {
  const [path, text] = groupDocument("lab/new", { expressions: [rack], selector: { role: "web" } });
  const node = groupDocument("lab/node", { selector: { mac: one, role: "web" } });
  const index = indexOf([catchAll, node, [path, text.replace('"In"', '"Near"')]]);
  expect(answer(index, `mac=${one}&role=web`)).toBe("refused");
  expect(answer(index, `mac=${one}&role=db`)).toBe("lab/install");
});

describe("a Group without a positive requirement", () => {
  it("is not taken up, whoever wrote it", () => {
    const absent: Expression = { key: "os", operator: "DoesNotExist", values: [] };
    expect(answer(indexOf([groupDocument("lab/g", { expressions: [absent] })]), `mac=${one}`)).toBe("noMatch");
  });
});

describe("when a Group of a list and an os has gone", () => {
  const gone = groupSpec({ expressions: [rack, installed] });
  const install = groupDocument("lab/node", { selector: { mac: one } });

  /** What is served after a step in which the Group becomes another, or nothing. */
  function servedAfter(now: Partial<GroupSpec> | undefined, others: readonly (readonly [string, string])[]): BootIndex {
    const index = indexOf([catchAll, groupDocument("lab/rack", gone), ...others]);
    const sha256 = (text: string) => hash("sha256", text, "hex");
    const passing = { id: "lab/rack", before: gone, after: now && groupSpec(now) };
    const text = now && groupDocument("lab/rack", now)[1];
    const tombstones = tombstoneWrites([passing], {
      textAt: () => undefined,
      ttlSeconds: 60,
      sha256,
      isTaken: () => false,
    });
    index.changed([...tombstones, { path: groupPath("lab", "rack"), text }]);
    return index;
  }

  it.each<[name: string, query: string, others: readonly (readonly [string, string])[], expected: string]>([
    ["its machine waits for no catch-all", `mac=${one}&os=x`, [], "bereft"],
    ["its machine waits for no Group that does not ask for an os", `mac=${one}&os=x`, [install], "bereft"],
    ["a machine that sent no os was none of its own", `mac=${one}`, [install], "lab/node"],
    ["another machine was none of its own", "mac=52-54-00-00-00-03&os=x", [], "lab/install"],
    [
      "a Group that lists it and asks for an os gets it",
      `mac=${two}&os=x`,
      [groupDocument("lab/other", { expressions: [{ ...rack, values: [two] }, installed] })],
      "lab/other",
    ],
    [
      "a Group that names it and its os gets it",
      `mac=${two}&os=x`,
      [groupDocument("lab/other", { selector: { mac: two, os: "x" } })],
      "lab/other",
    ],
    [
      "a Group that says only what its mac begins with does not",
      `mac=${two}&os=x`,
      [groupDocument("lab/p", { expressions: [{ key: "mac", operator: "Glob", values: ["52*"] }, installed] })],
      "bereft",
    ],
  ])("%s", (_name, query, others, expected) => {
    expect(answer(servedAfter(undefined, others), query)).toBe(expected);
  });

  it("only those wait that were taken out of the list", () => {
    const index = servedAfter({ expressions: [{ ...rack, values: [two] }, installed] }, []);
    expect([one, two].map((mac) => answer(index, `mac=${mac}&os=x`))).toEqual(["bereft", "lab/rack"]);
  });
});
