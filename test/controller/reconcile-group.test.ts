import { describe, expect, it } from "vitest";
import { draftGroup, groupStandIn } from "../../src/controller/reconcile/draft-group.ts";
import { type GroupWorld, groupChanges, reconcileGroup } from "../../src/controller/reconcile/reconcile-group.ts";
import { assert } from "../../src/lib/errors.ts";
import { decodeGroup } from "../../src/model/objects/documents.ts";
import { toGroup } from "../../src/model/objects/group.ts";
import type { GroupObject } from "../../src/model/objects/source.ts";
import { parseTemplate } from "../../src/render/template/template.ts";
import { groupObject, groupSpec } from "./objects.ts";

const alone: GroupWorld = {
  profile: () => "there",
  standingOf: () => ({ kind: "free" }),
  checkTemplate: parseTemplate,
};

interface Around {
  readonly storedText?: string | undefined;
  readonly world?: Partial<GroupWorld>;
  readonly adminNamespace?: string;
}

function reconcile(object: GroupObject, { storedText, world, adminNamespace }: Around = {}) {
  const stored = storedText === undefined ? undefined : decodeGroup(storedText);
  const draft = draftGroup({ id: object, object, refusal: undefined, stored, adminNamespace });
  assert(draft !== undefined, "What is there is drafted");
  return reconcileGroup(draft, storedText, { ...alone, ...world });
}

function stored(object: GroupObject): string | undefined {
  return reconcile(object).changes[0]?.text;
}

function condition(outcome: ReturnType<typeof reconcileGroup>, type: string) {
  return outcome.status?.conditions.find((candidate) => candidate.type === type);
}

describe("a Group", () => {
  it("is written once, and shows its selector", () => {
    const object = groupObject({ selector: { role: "web", mac: "52:54:00:a1:9c:ae" } });
    const outcome = reconcile(object);
    expect(outcome.changes.map(({ path }) => path)).toEqual(["/davit/groups/default/node1"]);
    expect(outcome.status?.selector).toBe("mac=52:54:00:a1:9c:ae,role=web");
    expect(condition(outcome, "Ready")).toMatchObject({ status: "True" });
    expect(reconcile(object, { storedText: stored(object) }).changes).toEqual([]);
  });

  it("that is held is not ready, unless something else is wrong with it", () => {
    const held = groupObject({ hold: true });
    expect(condition(reconcile(held), "Ready")).toMatchObject({ status: "False", reason: "Held" });
    const refused = { ...held, refusal: "web.yaml line 3: unknown field" };
    expect(condition(reconcile(refused), "Ready")).toMatchObject({ status: "False", reason: "Refused" });
    expect(condition(reconcile(refused, { storedText: stored(held) }), "Ready")).toMatchObject({ reason: "Refused" });
  });

  it("shows a catch-all as <all>", () => {
    const outcome = reconcile(groupObject({ selector: {}, matchAll: true }));
    expect(outcome.status?.selector).toBe("<all>");
  });

  it("shows its expressions, and is written once", () => {
    const object = groupObject({ selector: {}, expressions: [{ key: "os", operator: "Prefix", values: ["deb"] }] });
    const outcome = reconcile(object);
    expect(outcome.status?.selector).toBe("os Prefix (deb)");
    expect(reconcile(object, { storedText: stored(object) }).changes).toEqual([]);
  });

  it.each([
    ["that is there", [{ key: "serial", operator: "Exists", values: [] }] as const, 0],
    ["of some beginning", [{ key: "serial", operator: "Prefix", values: ["VMw"] }] as const, 1],
    ["of a short beginning", [{ key: "serial", operator: "Prefix", values: ["VM"] }] as const, 0],
  ])("outside the admin namespace that asks for a label %s", (_name, expressions, documents) => {
    const outcome = reconcile(groupObject({ selector: {}, expressions }), { adminNamespace: "infra" });
    expect(outcome.changes).toHaveLength(documents);
    expect(condition(outcome, "Accepted")).toMatchObject(
      documents === 1
        ? { status: "True" }
        : {
            reason: "NotPermitted",
            message:
              'a selector that nearly every machine may meet counts in namespace "infra" only: no machine gets this Group; ' +
              "ask for a value, or write patterns of 6 digits (mac), 8 (uuid), or 3 letters and digits (other labels)",
          },
    );
  });

  it("takes effect without its Profile, and says that it is missing", () => {
    const outcome = reconcile(groupObject(), { world: { profile: () => "missing" } });
    expect(outcome.changes).toHaveLength(1);
    expect(condition(outcome, "Ready")).toMatchObject({ status: "False", reason: "ProfileNotFound" });
  });

  it("with a mistake in an argument takes effect at once, and says that its machines get no boot script", () => {
    const outcome = reconcile(groupObject({ args: ["quiet", "a={{b"] }));
    expect(JSON.parse(outcome.changes[0]?.text ?? "")).toMatchObject({ spec: { args: ["quiet", "a={{b"] } });
    expect(condition(outcome, "Accepted")).toMatchObject({ status: "False", reason: "InvalidTemplate" });
    expect(condition(outcome, "Accepted")?.message).toMatch(
      /^spec\.args\[1\]: line 1, column \d+: Parse template: .*: \/ipxe and \/grub are answered 500$/,
    );
    expect(condition(outcome, "Ready")).toMatchObject({ status: "False", reason: "InvalidTemplate" });
  });

  it("on which davit failed keeps nothing of a version with other arguments", () => {
    const before = JSON.parse(stored(groupObject({ args: ["wipe=no"] })) ?? "");
    const kept = (args: readonly string[]) => {
      const object = groupObject({ args, metadata: { new: 1 } });
      return groupStandIn({ id: object, object, refusal: undefined, stored: before, adminNamespace: undefined });
    };
    expect(kept(["wipe=no"])).toEqual({ ...before, outdated: true });
    expect(kept(["wipe=yes"])).toMatchObject({ refused: true });
  });

  it("that is refused and was never accepted takes part in selection, marked as refused", () => {
    const object = { ...groupObject(), refusal: "web.yaml line 3: unknown field" };
    const outcome = reconcile(object);
    expect(JSON.parse(outcome.changes[0]?.text ?? "")).toMatchObject({ refused: true, spec: groupSpec() });
    expect(condition(outcome, "Accepted")).toMatchObject({
      status: "False",
      reason: "Refused",
      message: object.refusal,
    });
  });

  it("that is refused keeps what was accepted before", () => {
    const object = { ...groupObject({ metadata: { role: "other" } }), refusal: "unknown field" };
    const before = stored(groupObject()) ?? "";
    const outcome = reconcile(object, { storedText: before });
    expect(outcome.changes.map(({ text = "" }) => JSON.parse(text))).toEqual([
      { ...JSON.parse(before), outdated: true },
    ]);
    expect(condition(outcome, "Synced")).toMatchObject({ reason: "ServingLastGood" });
    expect(outcome.status?.selector).toBe("mac=52:54:00:a1:9c:ae");
  });

  it("that is refused again is replaced by its newer refused form", () => {
    const storedText = stored({ ...groupObject(), refusal: "unknown field" });
    const object = { ...groupObject({ selector: { role: "other" } }), refusal: "unknown field" };
    expect(reconcile(object, { storedText }).changes).toHaveLength(1);
  });

  it("that is gone is removed, also where what is stored of it cannot be read", () => {
    const path = "/davit/groups/default/node1";
    expect(groupChanges(path, undefined, "no document")).toEqual([{ path, text: undefined }]);
    expect(groupChanges(path, undefined, undefined)).toEqual([]);
  });

  it("says which Group shadows it, and is not ready", () => {
    const by = toGroup("default", "first", groupSpec());
    const outcome = reconcile(groupObject(), { world: { standingOf: () => ({ kind: "shadowed", by }) } });
    const message =
      'Group "default/first" has the same selector and priority, and gives the same: no machine gets this Group';
    expect(condition(outcome, "Conflicted")).toMatchObject({ status: "True", reason: "SelectorOverlap", message });
    expect(condition(outcome, "Ready")).toMatchObject({ status: "False", reason: "SelectorOverlap", message });
  });
});

describe("a Group outside the admin namespace", () => {
  it("has no priority, and says so", () => {
    const outcome = reconcile(groupObject({ priority: 5 }), { adminNamespace: "infra" });
    expect(JSON.parse(outcome.changes[0]?.text ?? "")).toMatchObject({ spec: { priority: 0 } });
    expect(condition(outcome, "Accepted")).toMatchObject({ status: "False", reason: "NotPermitted" });
    expect(condition(outcome, "Synced")).toMatchObject({ status: "True" });
  });

  it("takes no machine by matchAll, and what is stored of it goes", () => {
    const object = groupObject({ selector: {}, matchAll: true });
    const outcome = reconcile(object, { adminNamespace: "infra", storedText: stored(object) });
    expect(outcome.changes).toEqual([{ path: "/davit/groups/default/node1", text: undefined }]);
    expect(condition(outcome, "Ready")).toMatchObject({ status: "False", reason: "NotPermitted" });
    expect(condition(outcome, "Synced")).toMatchObject({ status: "False", reason: "NotServed" });
    expect(condition(outcome, "Conflicted")).toBeUndefined();
    expect(outcome.status?.selector).toBe("<all>");
  });

  it("loses the priority of an accepted version, too, while its newest is refused", () => {
    const object = { ...groupObject(), refusal: "unknown field" };
    const outcome = reconcile(object, { adminNamespace: "infra", storedText: stored(groupObject({ priority: 5 })) });
    expect(JSON.parse(outcome.changes[0]?.text ?? "")).toMatchObject({ spec: { priority: 0 } });
  });

  it("is as any other without priority and matchAll, and in the admin namespace", () => {
    for (const [adminNamespace, priority] of [
      ["infra", 0],
      ["default", 5],
    ] as const) {
      expect(condition(reconcile(groupObject({ priority }), { adminNamespace }), "Ready")).toMatchObject({
        status: "True",
      });
    }
  });
});
