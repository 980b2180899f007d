/** A grant never counts before an older change, of whatever kind, even if its watch brings it first. */

import { expect, it } from "vitest";
import type { JsonObject } from "../../../src/model/json.ts";
import { until } from "./client-under-test.ts";
import { useFakeServer } from "./fake-server-suite.ts";
import { fromConfigMap, fromSecret, groupOf, profileOf, SourceUnderTest, secretOf } from "./source-under-test.ts";

const suite = useFakeServer();
const install = { generation: 1, ledger: "9f3c0a52", until: "2030-01-01T00:00:00Z" };
const selector = { matchLabels: { mac: "52:54:00:a1:9c:ae" } };
const wipe = (more: JsonObject = {}) => profileOf("wipe", { effect: "Install", install: { then: "exit" }, ...more });
const machineOf = (spec: JsonObject, generation = 1) => ({
  kind: "Machine",
  name: "m",
  content: { spec: { identity: { macs: ["52:54:00:a1:9c:ae"] }, ...spec } },
  generation,
});
const configMapOf = (text: string) => ({ kind: "ConfigMap", name: "texts", content: { data: { text } } });
const group = { profileRef: { name: "wipe" }, selector };

async function followed(watches: number): Promise<SourceUnderTest> {
  const under = suite.stopsLater(new SourceUnderTest(suite.server));
  await under.list();
  await until(() => suite.server.openWatches === watches && under.source.isFollowed);
  return under;
}

/** Lets time pass, and the network bring what it can. */
async function pass(under: SourceUnderTest, seconds: number): Promise<void> {
  for (let step = 0; step < seconds * 5; step++) {
    await under.bed.clock.advance(200);
    for (let turn = 0; turn < 40; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

const grantOf = (under: SourceUnderTest, kind: "Group" | "Machine" = "Group") =>
  under.source.view.get(kind, "default", kind === "Group" ? "g" : "m")?.spec.install?.generation;

it.each([
  { what: "a Profile", path: /\/profiles$/, edit: () => wipe({ boot: { kernel: "/assets/safe" } }) },
  { what: "a Machine", path: /\/machines$/, edit: () => machineOf({ hold: true }, 2) },
  { what: "a ConfigMap", path: /\/configmaps$/, edit: () => configMapOf("new") },
  { what: "a Secret", path: /\/secrets$/, edit: () => secretOf("secret", "new") },
])("the grant of a Group waits for an older change of $what whose watch is late", async ({ path, edit }) => {
  suite.server.put(secretOf("secret", "old"));
  suite.server.put(configMapOf("old"));
  suite.server.put(machineOf({}));
  suite.server.put(wipe({ generic: fromConfigMap("texts"), ignition: fromSecret("secret") }));
  suite.server.put(groupOf("g", group));
  const under = await followed(5);
  suite.server.stall(path);
  suite.server.put(edit());
  suite.server.put(groupOf("g", { ...group, install }, { generation: 2 }));
  await pass(under, 5);
  expect(grantOf(under)).toBeUndefined();
  expect(under.source.seen({ kind: "Group", namespace: "default", name: "g" })?.value.generation).toBe(2);
  suite.server.trickle();
  await pass(under, 1);
  expect(grantOf(under)).toBe(1);
});

it("a Group that changes to an installer without a plan waits for an older change of its Profile", async () => {
  const raw = (kernel: string) => profileOf("wipe", { effect: "Install", boot: { kernel: `/assets/${kernel}` } });
  const of = (name: string) => ({ profileRef: { name }, selector });
  suite.server.put(raw("old"));
  suite.server.put(profileOf("disk", {}));
  suite.server.put(groupOf("g", of("disk")));
  const under = await followed(4);
  suite.server.stall(/\/profiles$/);
  suite.server.put(raw("new"));
  suite.server.put(groupOf("g", of("wipe"), { generation: 2 }));
  await pass(under, 5);
  const profile = () => under.source.view.get("Group", "default", "g")?.spec.profile;
  expect(profile()).toBe("disk");
  suite.server.trickle();
  await pass(under, 1);
  expect(profile()).toBe("wipe");
});

it("a Group that an installer without a plan installs waits at once when its next version has to wait", async () => {
  const of = (name: string) => ({ profileRef: { name }, selector });
  suite.server.put(profileOf("raw", { effect: "Install" }));
  suite.server.put(wipe());
  suite.server.put(groupOf("g", of("raw")));
  const under = await followed(4);
  await pass(under, 1);
  suite.server.stall(/\/machines$/);
  suite.server.put(machineOf({ hold: true }));
  suite.server.put(groupOf("g", of("wipe"), { generation: 2 }));
  const shown = () => {
    const { profile, hold } = under.source.view.get("Group", "default", "g")?.spec ?? {};
    return [profile, hold];
  };
  await until(() => shown()[1] === true);
  await pass(under, 5);
  expect(shown()).toEqual(["raw", true]);
  suite.server.trickle();
  await pass(under, 1);
  expect(shown()).toEqual(["wipe", false]);
});

it("a grant does not count for another Profile that the Group gets with a version that has to wait", async () => {
  suite.server.put(wipe());
  suite.server.put(profileOf("other", { effect: "Install", install: { then: "exit" } }));
  suite.server.put(groupOf("g", { ...group, install }));
  const under = await followed(4);
  const shown = () => {
    const { profile, hold } = under.source.view.get("Group", "default", "g")?.spec ?? {};
    return [profile, hold, grantOf(under)];
  };
  expect(shown()).toEqual(["wipe", false, 1]);
  await pass(under, 1);
  suite.server.stall(/\/machines$/);
  suite.server.put(machineOf({ hold: true }));
  suite.server.put(groupOf("g", { profileRef: { name: "other" }, selector, install }, { generation: 2 }));
  await until(() => grantOf(under) === undefined);
  await pass(under, 5);
  expect(shown()).toEqual(["wipe", false, undefined]);
  suite.server.trickle();
  await pass(under, 1);
  expect(shown()).toEqual(["other", false, 1]);
});

it("a grant does not count for other metadata that its Machine gets with a version that has to wait", async () => {
  suite.server.put(wipe());
  suite.server.put(groupOf("g", group));
  suite.server.put(machineOf({ install, metadata: { disk: "sda" } }));
  const under = await followed(4);
  expect(grantOf(under, "Machine")).toBe(1);
  await pass(under, 1);
  suite.server.stall(/\/profiles$/);
  suite.server.put(wipe({ boot: { kernel: "/assets/safe" } }));
  suite.server.put(machineOf({ install, metadata: { disk: "sdb" } }, 2));
  await pass(under, 5);
  expect(grantOf(under, "Machine")).toBeUndefined();
  suite.server.trickle();
  await pass(under, 1);
  expect(grantOf(under, "Machine")).toBe(1);
});

it.each([
  { kind: "Group", put: () => groupOf("g", { ...group, install }) },
  { kind: "Machine", put: () => machineOf({ install }) },
] as const)("a new $kind with a grant holds its machines until the grant counts", async ({ kind, put }) => {
  suite.server.put(wipe());
  const under = await followed(4);
  await pass(under, 1);
  suite.server.stall(/\/profiles$/);
  suite.server.put(wipe({ boot: { kernel: "/assets/safe" } }));
  suite.server.put(put());
  const spec = () => under.source.view.get(kind, "default", kind === "Group" ? "g" : "m")?.spec;
  await until(() => spec()?.hold === true);
  await pass(under, 5);
  expect([spec()?.hold, grantOf(under, kind)]).toEqual([true, undefined]);
  suite.server.trickle();
  await pass(under, 1);
  expect([spec()?.hold, grantOf(under, kind)]).toEqual([false, 1]);
});

it("the grant of a Machine waits for an older hold of its Group, and counts within a second without one", async () => {
  suite.server.put(wipe());
  suite.server.put(groupOf("g", group));
  suite.server.put(machineOf({}));
  const under = await followed(4);
  suite.server.put(machineOf({ install }, 2));
  await pass(under, 1);
  expect(grantOf(under, "Machine")).toBe(1);
  suite.server.stall(/\/groups$/);
  suite.server.put(groupOf("g", { ...group, hold: true }, { generation: 2 }));
  suite.server.put(machineOf({ install: { ...install, generation: 2 } }, 3));
  await pass(under, 5);
  // The earlier grant is no longer there.
  expect(grantOf(under, "Machine")).toBeUndefined();
  suite.server.trickle();
  await pass(under, 1);
  expect([grantOf(under, "Machine"), under.source.view.get("Group", "default", "g")?.spec.hold]).toEqual([2, true]);
});

it("the release of a Group with a grant waits, too, and a hold does not", async () => {
  suite.server.put(wipe());
  suite.server.put(groupOf("g", { ...group, install }));
  const under = await followed(4);
  const isHeld = () => under.source.view.get("Group", "default", "g")?.spec.hold;
  suite.server.stall(/\/profiles$/);
  suite.server.put(wipe({ boot: { kernel: "/assets/safe" } }));
  suite.server.put(groupOf("g", { ...group, install, hold: true }, { generation: 2 }));
  await pass(under, 1);
  expect(isHeld()).toBe(true);
  suite.server.put(groupOf("g", { ...group, install }, { generation: 3 }));
  await pass(under, 5);
  expect(isHeld()).toBe(true);
  suite.server.trickle();
  await pass(under, 1);
  expect(isHeld()).toBe(false);
});

it("what has no grant does not wait", async () => {
  suite.server.put(wipe());
  suite.server.put(groupOf("g", group));
  const under = await followed(4);
  suite.server.stall(/\/profiles$/);
  suite.server.put(wipe({ boot: { kernel: "/assets/safe" } }));
  await under.tells("Group/default/g", () =>
    suite.server.put(groupOf("g", { ...group, priority: 5 }, { generation: 2 })),
  );
  expect(under.source.view.get("Group", "default", "g")?.spec.priority).toBe(5);
});

it("a first list waits while a list of another kind is older than a grant", async () => {
  suite.server.put(wipe());
  suite.server.put(groupOf("g", group));
  let list = () => {};
  const isAnswered = new Promise<void>((resolve) => {
    suite.server.once(
      "list",
      (request, response) => {
        suite.server.answer(request, response);
        resolve();
      },
      /\/profiles$/,
    );
  });
  suite.server.once("list", (request, response) => (list = () => suite.server.answer(request, response)), /\/groups$/);
  const under = suite.stopsLater(new SourceUnderTest(suite.server));
  await under.start();
  await isAnswered;
  await until(() => suite.server.seen("list", /\/groups$/).length === 1 && suite.server.openWatches === 3);
  suite.server.stall(/\/profiles$/);
  suite.server.put(wipe({ boot: { kernel: "/assets/safe" } }));
  suite.server.put(groupOf("g", { ...group, install }, { generation: 2 }));
  list();
  await pass(under, 3);
  expect(under.listed).toEqual([]);
  suite.server.trickle();
  await pass(under, 1);
  expect([under.listed.length, grantOf(under)]).toEqual([1, 1]);
  expect(under.source.view.get("Profile", "default", "wipe")?.spec.boot).toMatchObject({ kernel: "/assets/safe" });
});
