import { expect, it } from "vitest";
import { withStalled } from "../../src/controller/status/status-book.ts";
import type { Condition } from "../../src/model/objects/source.ts";

const accepted: Condition = { type: "Accepted", status: "True", reason: "Valid", message: "The spec is valid" };

function stalledOf(status: Condition["status"], reason: string): Condition | undefined {
  const ready: Condition = { type: "Ready", status, reason, message: "because" };
  const shown = withStalled({ observedGeneration: 2, conditions: [accepted, ready] });
  expect(shown.conditions.slice(0, 2)).toEqual([accepted, ready]);
  return shown.conditions.at(2);
}

it.each(["Refused", "InvalidTemplate", "NotPermitted", "KeyNotFound", "RefNotPermitted", "SelectorOverlap", "New"])(
  "an object that is not ready for %s is stalled, with reason and message",
  (reason) => {
    expect(stalledOf("False", reason)).toEqual({ type: "Stalled", status: "True", reason, message: "because" });
  },
);

it.each(["ProfileNotFound", "TemplateNotFound", "StoreUnavailable", "InternalError", "Held"])(
  "an object that is not ready for %s is not",
  (reason) => {
    expect(stalledOf("False", reason)).toBeUndefined();
  },
);

it("an object that is ready, or of which nobody knows, is not", () => {
  expect([stalledOf("True", "Ready"), stalledOf("Unknown", "New")]).toEqual([undefined, undefined]);
  expect(withStalled({ observedGeneration: 1, conditions: [] }).conditions).toEqual([]);
});
