import { afterEach, beforeEach, expect, it } from "vitest";
import { StatusComposer, type TrialReport } from "../../src/controller/status/status-composer.ts";
import type { Condition, ObjectName, ObjectStatus } from "../../src/model/objects/source.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const web: ObjectName = { kind: "Profile", namespace: "default", name: "web" };
const node: ObjectName = { kind: "Group", namespace: "default", name: "node" };

let clock: FakeClock;
let found: TrialReport | undefined;
let shown: string[];
let composer: StatusComposer;

beforeEach(() => {
  clock = new FakeClock();
  found = undefined;
  shown = [];
  composer = new StatusComposer({
    clock,
    foundOn: () => found,
    show: ({ name }, { conditions }) =>
      shown.push([name, ...conditions.map(({ type, reason }) => `${type} ${reason}`)].join(", ")),
  });
});

afterEach(() => composer.stop());

function condition(type: Condition["type"], status: Condition["status"], reason: string): Condition {
  return { type, status, reason, message: "" };
}

function status(ready: "True" | "False", reason: string): ObjectStatus {
  const conditions = [condition("Synced", "True", "Synced"), condition("Ready", ready, reason)];
  return { observedGeneration: 1, conditions };
}

it("a Profile that is ready waits for trials, and one that is not is shown at once", () => {
  composer.report(web, status("True", "Ready"));
  expect(shown).toEqual([]);
  composer.report(web, status("False", "InvalidTemplate"));
  expect(shown).toEqual(["web, Synced Synced, Ready InvalidTemplate"]);
  found = {};
  composer.report(web, status("True", "Ready"));
  expect(shown.at(-1)).toBe("web, Synced Synced, Ready Ready");
});

it("a Group waits until trials report, and has their condition before the last one", () => {
  found = { rendered: condition("Rendered", "False", "RenderFailed"), ready: condition("Ready", "False", "Lacks") };
  composer.report(node, status("True", "Ready"));
  expect(shown).toEqual([]);
  composer.found(node);
  expect(shown).toEqual(["node, Synced Synced, Rendered RenderFailed, Ready Lacks"]);
  composer.report(node, status("False", "Held"));
  composer.found(node);
  expect(shown.at(-1)).toBe("node, Synced Synced, Rendered RenderFailed, Ready Held");
});

it("a newer status waits no longer for trials than the one that it replaces", async () => {
  composer.report(node, status("True", "Ready"));
  await clock.advance(29_000);
  composer.report(node, status("True", "Ready"));
  expect(shown).toEqual([]);
  await clock.advance(1_000);
  expect(shown).toEqual(["node, Synced Synced, Ready NotRendered"]);
});

it("a status that follows one shown in doubt is shown soon: it hides no readiness", async () => {
  composer.report(node, status("True", "Ready"));
  await clock.advance(30_000);
  composer.report(node, status("True", "Again"));
  await clock.advance(1_000);
  expect(shown).toEqual(["node, Synced Synced, Ready NotRendered", "node, Synced Synced, Ready NotRendered"]);
});

it("a Group that becomes ready waits for its trials, however long it was unready without any", async () => {
  composer.report(node, status("False", "Held"));
  await clock.advance(3_600_000);
  expect(shown).toEqual(["node, Synced Synced, Ready Held"]);
  composer.report(node, status("True", "Ready"));
  await clock.advance(29_000);
  expect(shown).toHaveLength(1);
  await clock.advance(1_000);
  expect(shown.at(-1)).toBe("node, Synced Synced, Ready NotRendered");
});

it("nothing is shown of what is forgotten, or after the end", async () => {
  composer.report(web, status("True", "Ready"));
  composer.forget(web);
  composer.found(web);
  composer.report(node, status("True", "Ready"));
  composer.stop();
  await clock.advance(60_000);
  expect(shown).toEqual([]);
});
