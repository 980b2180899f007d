/** The conditions of every object: their types, reasons and statuses, and what Ready makes of them. */

import { expect, it } from "vitest";
import {
  asStoreUnavailable,
  conditionsFor,
  type Finding,
  type SyncState,
} from "../../src/controller/status/conditions.ts";
import type { Trial } from "../../src/controller/trials/trial.ts";
import { renderedCondition } from "../../src/controller/trials/trials.ts";

const template: Finding = { type: "Accepted", reason: "InvalidTemplate", message: "line 1, column 3: not closed" };
const profile: Finding = { type: "ResolvedRefs", reason: "ProfileNotFound", message: "Profile lab/p does not exist" };

function told(findings: readonly Finding[], sync: SyncState): readonly string[] {
  return conditionsFor({ findings, sync, advice: [] }).map(({ type, status, reason }) => `${type}=${status} ${reason}`);
}

it.each<[name: string, findings: readonly Finding[], sync: SyncState, expected: readonly string[]]>([
  [
    "all is well",
    [],
    "synced",
    ["Accepted=True Valid", "ResolvedRefs=True Resolved", "Synced=True Synced", "Ready=True Ready"],
  ],
  [
    "the spec has a mistake",
    [template],
    "servingLastGood",
    [
      "Accepted=False InvalidTemplate",
      "ResolvedRefs=True Resolved",
      "Synced=False ServingLastGood",
      "Ready=False InvalidTemplate",
    ],
  ],
  [
    "a reference is missing",
    [profile],
    "synced",
    ["Accepted=True Valid", "ResolvedRefs=False ProfileNotFound", "Synced=True Synced", "Ready=False ProfileNotFound"],
  ],
  [
    "the store takes no writes",
    [],
    "storeUnavailable",
    [
      "Accepted=True Valid",
      "ResolvedRefs=True Resolved",
      "Synced=False StoreUnavailable",
      "Ready=False StoreUnavailable",
    ],
  ],
])("all four are written at once, and Ready copies the first that fails: %s", (_name, findings, sync, expected) => {
  expect(told(findings, sync)).toEqual(expected);
});

it("Ready has the message of what fails", () => {
  const ready = conditionsFor({ findings: [profile, template], sync: "synced", advice: [] }).find(
    ({ type }) => type === "Ready",
  );
  expect(ready).toMatchObject({ reason: "InvalidTemplate", message: template.message });
});

it("a write that failed turns Synced, and Ready only where nothing else was wrong", () => {
  const statusOf = (findings: readonly Finding[]) =>
    asStoreUnavailable({ observedGeneration: 1, conditions: conditionsFor({ findings, sync: "synced", advice: [] }) })
      .conditions;
  const reasons = (findings: readonly Finding[]) => statusOf(findings).map(({ reason }) => reason);
  expect(reasons([])).toEqual(["Valid", "Resolved", "StoreUnavailable", "StoreUnavailable"]);
  expect(reasons([profile])).toEqual(["Valid", "ProfileNotFound", "StoreUnavailable", "ProfileNotFound"]);
});

it.each<[trial: Trial, expected: string]>([
  ["untried", "Unknown NotRendered"],
  [[], "True Rendered"],
  [[{ severity: "advice", text: "a" }], "True RenderedWithAdvice"],
  [[{ severity: "refused", text: "a" }], "False InvalidConfig"],
  [
    [
      { severity: "advice", text: "a" },
      { severity: "broken", text: "b" },
    ],
    "False RenderFailed",
  ],
])("Rendered tells what a trial found, and Ready does not change by it: %#", (trial, expected) => {
  const conditions = conditionsFor({ findings: [], sync: "synced", advice: [] });
  const { status, reason } = renderedCondition("web", trial);
  expect(`${status} ${reason}`).toBe(expected);
  expect(conditions.at(-1)).toMatchObject({ type: "Ready", status: "True" });
});
