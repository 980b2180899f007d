/** Every identity of a Machine selects, whichever of them a request has. */

import { describe, expect, it } from "vitest";
import { seenMachine } from "../../src/boot/explaining/boot-snapshot.ts";
import { findContenders } from "../../src/boot/explaining/contenders.ts";
import { requestWarnings } from "../../src/boot/explaining/warnings.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { tombstonePath } from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { machineDocument, uuid } from "./gate-world.ts";
import { type Documents, openIndex, refusal, selected } from "./open-index.ts";

const a = "52:54:00:00:00:0a";
const b = "52:54:00:00:00:0b";
const c = "52:54:00:00:00:0c";
const disk = profileDocument("lab/disk", { boot: { kind: "local", local: "exit" } });
const wipe = profileDocument("lab/wipe", { effect: "Install" });
const everybody = groupDocument("lab/everybody", { profile: "wipe", matchAll: true });
const machine = machineDocument("lab/m", { identities: [`uuid/${uuid}`, `mac/${a}`, `mac/${b}`] });

function group(name: string, spec: Partial<GroupSpec>): Documents[number] {
  return groupDocument(`lab/${name}`, { profile: "disk", ...spec });
}

function indexOf(...documents: Documents) {
  return openIndex([disk, wipe, everybody, machine, syncedDocument(), ...documents]);
}

/** The Group and Profile for the machine by each of its identities, or why it waits. */
function answersOf(...documents: Documents): readonly string[] {
  const index = indexOf(...documents);
  const queries = [`mac=${a}`, `mac=${b}`, `uuid=${uuid}`, `uuid=${uuid}&mac=${b}`];
  return [...new Set(queries.map((query) => refusal(index, query) ?? selected(index, query)))];
}

describe("a Group by one identity of a Machine", () => {
  it.each<[name: string, spec: Partial<GroupSpec>]>([
    ["a MAC address", { selector: { mac: a } }],
    ["the uuid", { selector: { uuid } }],
    ["a list", { expressions: [{ key: "mac", operator: "In", values: [a, "52:54:00:00:00:0d"] }] }],
    ["a prefix", { expressions: [{ key: "mac", operator: "Prefix", values: ["52:54:00:00:00:0a"] }] }],
    ["a pattern", { expressions: [{ key: "mac", operator: "Glob", values: ["*:0a"] }] }],
    ["two of them", { selector: { mac: a, uuid } }],
    ["two values", { selector: { mac: a }, expressions: [{ key: "mac", operator: "In", values: [b] }] }],
  ])("selects it by all of them: %s", (_, spec) => {
    expect(answersOf(group("own", spec))).toEqual(["lab/own lab/disk"]);
    expect(selected(indexOf(group("own", spec)), `mac=${c}`)).not.toBe("lab/own lab/disk");
  });

  it("is the Group that the preview explains, without a warning that no Group names the machine", () => {
    const index = indexOf(group("own", { selector: { mac: a } }));
    const { labels } = seenMachine(index, labelsFromQuery(`mac=${b}`));
    const search = findContenders({ groups: index.groups.values(), labels, limit: 5 });
    let step = search.next();
    while (step.done !== true) step = search.next();
    expect(step.value.matching.map(({ id }) => id)).toEqual(["lab/own", "lab/everybody"]);
    const chosen = index.select(labelsFromQuery(`mac=${b}`)).group;
    expect(requestWarnings({ labels, chosen, selectorLabels: step.value.selectorLabels })).toEqual([]);
  });

  it("keeps it from an Install for a while after the Group was removed", () => {
    expect(answersOf([tombstonePath("mac", a), "{}"])).toEqual(["bereft"]);
  });
});

it("a Group that excludes one identity of a Machine excludes the machine", () => {
  const others = { key: "mac", operator: "NotIn", values: [a] } as const;
  const rack = { key: "mac", operator: "Prefix", values: ["52:54:00"] } as const;
  const installer = group("others", { profile: "wipe", expressions: [rack, others], priority: 5 });
  expect(answersOf(installer, group("own", { selector: { uuid } }))).toEqual(["lab/own lab/disk"]);
});

describe("Groups by different identities of a Machine", () => {
  const byA = group("a", { selector: { mac: a } });

  it("tie, whatever card the machine boots from", () => {
    expect(answersOf(byA, group("b", { profile: "wipe", selector: { mac: b } }))).toEqual(["tied"]);
    // The same outcome is no contradiction.
    expect(answersOf(byA, group("b", { selector: { mac: b } }))).toHaveLength(1);
  });

  it("keep an Install from it, if one of them wins by the form of its selector", () => {
    const list = group("list", { expressions: [{ key: "mac", operator: "In", values: [a, c] }] });
    const installer = group("b", { profile: "wipe", selector: { mac: b } });
    expect(answersOf(list, installer)).toEqual(["doubtful"]);
    // A priority is a decision.
    expect(answersOf(list, group("b", { profile: "wipe", selector: { mac: b }, priority: 1 }))).toEqual([
      "lab/b lab/wipe",
    ]);
    // So are more labels for the same card.
    const both = group("both", { profile: "wipe", selector: { mac: a, uuid } });
    expect(answersOf(list, both)).toEqual(["lab/both lab/wipe"]);
  });
});

it("no identity of a tenant's Machine selects", () => {
  const tenant = machineDocument("lab/m", { identities: [`mac/${a}`, `mac/${b}`] }, { tenant: true });
  const index = openIndex([disk, wipe, everybody, tenant, group("own", { selector: { mac: a } }), syncedDocument()]);
  expect(selected(index, `mac=${b}`)).toBe("lab/everybody lab/wipe");
});
