import { describe, expect, it } from "vitest";
import { reconcileGroup, removeGroup } from "../../src/controller/reconcile-group.ts";
import { decodeGroup, type GroupDocument } from "../../src/model/documents.ts";
import type { GroupObject } from "../../src/model/source.ts";
import { groupObject, groupSpec } from "./objects.ts";

const profileExists = () => true;

function stored(object: GroupObject): GroupDocument | undefined {
  return decodeGroup(reconcileGroup(object, undefined, profileExists).changes[0]?.text ?? "");
}

function condition(outcome: ReturnType<typeof reconcileGroup>, type: string) {
  return outcome.status?.conditions.find((candidate) => candidate.type === type);
}

describe("a Group", () => {
  it("is written once, and shows its selector", () => {
    const object = groupObject({ selector: { role: "web", mac: "52:54:00:a1:9c:ae" } });
    const outcome = reconcileGroup(object, undefined, profileExists);
    expect(outcome.changes.map(({ path }) => path)).toEqual(["/davit/groups/default/node1"]);
    expect(outcome.status?.selector).toBe("mac=52:54:00:a1:9c:ae,role=web");
    expect(condition(outcome, "Ready")).toMatchObject({ status: "True" });
    expect(reconcileGroup(object, stored(object), profileExists).changes).toEqual([]);
  });

  it("shows a catch-all as <all>", () => {
    const outcome = reconcileGroup(groupObject({ selector: {}, matchAll: true }), undefined, profileExists);
    expect(outcome.status?.selector).toBe("<all>");
  });

  it("takes effect without its Profile, and says that it is missing", () => {
    const outcome = reconcileGroup(groupObject(), undefined, () => false);
    expect(outcome.changes).toHaveLength(1);
    expect(condition(outcome, "Ready")).toMatchObject({ status: "False", reason: "ProfileNotFound" });
  });

  it("that is refused and was never accepted takes part in selection, marked as refused", () => {
    const object = { ...groupObject(), refusal: "web.yaml line 3: unknown field" };
    const outcome = reconcileGroup(object, undefined, profileExists);
    expect(JSON.parse(outcome.changes[0]?.text ?? "")).toMatchObject({ refused: true, spec: groupSpec() });
    expect(condition(outcome, "Accepted")).toMatchObject({
      status: "False",
      reason: "Refused",
      message: object.refusal,
    });
  });

  it("that is refused keeps what was accepted before", () => {
    const object = { ...groupObject({ selector: { role: "other" } }), refusal: "unknown field" };
    const outcome = reconcileGroup(object, stored(groupObject()), profileExists);
    expect(outcome.changes).toEqual([]);
    expect(condition(outcome, "Synced")).toMatchObject({ reason: "ServingLastGood" });
    expect(outcome.status?.selector).toBe("mac=52:54:00:a1:9c:ae");
  });

  it("that is refused again is replaced by its newer refused form", () => {
    const before = stored({ ...groupObject(), refusal: "unknown field" });
    const object = { ...groupObject({ selector: { role: "other" } }), refusal: "unknown field" };
    expect(reconcileGroup(object, before, profileExists).changes).toHaveLength(1);
  });

  it("that is gone is removed", () => {
    expect(removeGroup("default", "node1", stored(groupObject())).changes).toEqual([
      { path: "/davit/groups/default/node1", text: undefined },
    ]);
    expect(removeGroup("default", "node1", undefined).changes).toEqual([]);
  });
});
