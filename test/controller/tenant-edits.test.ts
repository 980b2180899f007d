/** Tombstones are no weapon: whoever may write Groups has no machine wait that another Group serves all the time. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { GroupObject, ObjectName } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

const mac = "52:54:00:a1:9c:ae";
const labels = { mac, role: "db", os: "1" };

const inNamespace = (namespace: string, name: string, spec: Partial<GroupSpec>): GroupObject => ({
  ...groupObject(spec, name),
  namespace,
});
const profileOf = (namespace: string) => ({ ...profileObject({ displayName: namespace }), namespace });
const groupName = (namespace: string, name: string): ObjectName => ({ kind: "Group", namespace, name });
const atTenant = groupName("team-b", "attack");

let under: ControllerUnderTest;
beforeEach(async () => {
  under = await ControllerUnderTest.start({ adminNamespace: "infra" });
  under.source.put(profileOf("infra"), profileOf("team-b"));
});
afterEach(() => under.stop());

async function begin(...groups: readonly GroupObject[]): Promise<void> {
  under.source.put(...groups);
  under.source.tellListed();
  await under.synced;
}

/** Every answer of the machine while the tenant's Group goes through these specs, 20 s apart, and back to none. */
async function answersDuring(specs: readonly Partial<GroupSpec>[]): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  for (const spec of [...specs, undefined]) {
    if (spec === undefined) under.source.drop(atTenant);
    else under.source.put(inNamespace("team-b", "attack", spec));
    under.source.tellChanged(atTenant);
    for (let turn = 0; turn < 20; turn++) {
      seen.add(under.answer(labels));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await under.clock.advance(20_000);
  }
  return seen;
}

/** Selectors of the machine in turn, and others of its address that are new each time. */
const edits: readonly Partial<GroupSpec>[] = Array.from({ length: 40 }, (_, at) => {
  const [first = {}, ...others] = [{ mac, [`try-${at}`]: "x" }, { mac }, { mac, os: "1" }, { mac, role: "db" }];
  return { selector: others[at % (others.length + 1)] ?? first };
});

describe("a tenant's Group that is edited every 20 s", () => {
  it.each<[name: string, admin: Partial<GroupSpec>, specs: readonly Partial<GroupSpec>[]]>([
    ["by its priority", { selector: { role: "db" }, priority: 1000 }, edits],
    ["by its priority, by the same labels", { selector: { mac }, priority: 1000 }, edits],
    [
      "by its labels",
      { selector: { mac, role: "db", os: "1" } },
      [{ selector: { mac } }, { selector: { mac, role: "db" } }],
    ],
    [
      "by its labels, where the other one has expressions",
      { selector: { mac, role: "db" } },
      [0, 1, 2].map((at) => ({
        selector: { mac },
        expressions: [{ key: "role", operator: "Prefix" as const, values: ["d", `x${at}`] }],
      })),
    ],
  ])("never has the admin's machine wait that the admin's Group wins %s", async (_name, admin, specs) => {
    await begin(inNamespace("infra", "database", admin));
    expect(await answersDuring(specs)).toEqual(new Set(["infra/database infra"]));
  });

  it("leaves no tombstone while another Group takes all of its machines before it", async () => {
    await begin(inNamespace("infra", "database", { selector: { mac }, priority: 1000 }));
    await answersDuring(edits.slice(0, 4));
    expect(under.stored("/davit/tombstones/")).toEqual([]);
  });

  it("keeps no tombstone of others from its end", async () => {
    await begin(
      inNamespace("infra", "installer", { selector: {}, matchAll: true }),
      inNamespace("infra", "node", { selector: { mac } }),
    );
    const node = groupName("infra", "node");
    under.source.drop(node).tellChanged(node);
    await under.settled();
    expect(under.answer(labels)).toBe("bereft");
    for (let edit = 0; edit < 61; edit++) {
      under.source.put(inNamespace("team-b", "attack", { selector: { serial: `SN-${edit}` } })).tellChanged(atTenant);
      await under.clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await under.settled();
    expect(under.answer(labels)).toBe("infra/installer infra");
  });
});

describe("a tenant's Group of the admin's machine that is edited every 20 s", () => {
  const node = groupName("infra", "node");
  const editAttack = async (spec: Partial<GroupSpec>) => {
    under.source.put(inNamespace("team-b", "attack", spec)).tellChanged(atTenant);
    await under.clock.advance(20_000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  };

  it.each<[name: string, selector: (edit: number) => Record<string, string>]>([
    ["by its address and a label that is new each time", (edit) => ({ mac, [`try-${edit}`]: "x" })],
    ["by its address and one of two labels", (edit) => ({ mac, [`try-${edit % 2}`]: "x" })],
  ])("keeps no tombstone of the admin's from its end, %s", async (_name, selector) => {
    await begin(
      inNamespace("infra", "role", { selector: { role: "db" }, priority: 500 }),
      inNamespace("infra", "node", { selector: { mac }, priority: 1000 }),
    );
    const seen = under.watchAnswers(labels);
    under.source.drop(node).tellChanged(node);
    await under.settled();
    expect(under.answer(labels)).toBe("bereft");
    for (let edit = 0; edit < 12; edit++) {
      await editAttack({ selector: selector(edit) });
    }
    expect(seen).toEqual(["infra/node infra", "bereft", "infra/role infra"]);
    expect(under.stored("/davit/tombstones/").length).toBeLessThanOrEqual(1);
  });

  it("keeps none of a Group that named no machine from its end, which an Install waits for", async () => {
    const wipe = profileObject({ effect: "Install", displayName: "wipe" }, "wipe");
    under.source.put({ ...wipe, namespace: "infra" });
    await begin(
      inNamespace("infra", "wipe", { profile: "wipe", selector: { os: "1" }, priority: 500 }),
      inNamespace("infra", "node", { selector: { role: "db" }, priority: 1000 }),
    );
    const seen = under.watchAnswers(labels);
    under.source.drop(node).tellChanged(node);
    await under.settled();
    expect(under.answer(labels)).toBe("bereft");
    for (let edit = 0; edit < 12; edit++) {
      const selector = edit % 2 === 0 ? { role: "db" } : { role: "db", try: `${edit}` };
      await editAttack({ selector });
    }
    expect(seen).toEqual(["infra/node infra", "bereft", "infra/wipe wipe"]);
  });
});

describe("a Group leaves its tombstone all the same where it is", () => {
  const installer = inNamespace("infra", "installer", { selector: {}, matchAll: true });
  const remove = async () => {
    under.source.drop(atTenant).tellChanged(atTenant);
    await under.settled();
    expect(under.stored("/davit/tombstones/")).toHaveLength(1);
    expect(under.answer(labels)).toBe("bereft");
  };

  it("held", async () => {
    await begin(installer, inNamespace("team-b", "attack", { selector: { mac }, hold: true }));
    expect(under.answer(labels)).toBe("held");
    await remove();
  });

  it("refused", async () => {
    await begin(installer, { ...inNamespace("team-b", "attack", { selector: { mac } }), refusal: "No" });
    expect(under.answer(labels)).toBe("refused");
    await remove();
  });

  it("tied with one that goes in the same step", async () => {
    under.source.put(profileOf("team-c"));
    await begin(
      installer,
      inNamespace("team-b", "attack", { selector: { mac } }),
      inNamespace("team-c", "other", { selector: { mac } }),
    );
    const other = groupName("team-c", "other");
    under.source.drop(atTenant, other).tellChanged(atTenant, other);
    await under.settled();
    expect(under.answer(labels)).toBe("bereft");
  });
});
