/** Machines of a cluster: which versions count, and what holds where the cluster does not know them. */

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/model/json.ts";
import type { MachineObject } from "../../../src/model/objects/source.ts";
import { until } from "./client-under-test.ts";
import type { Handler } from "./fake-api-server.ts";
import { groupOf, type SourceUnderTest, useSources } from "./source-under-test.ts";

const { suite, sourceOf } = useSources();

const mac = "52:54:00:a1:9c:ae";
const good = { identity: { macs: [mac] }, approved: true, labels: { rack: "7" }, metadata: { ip: "192.0.2.7" } };
const install = { generation: 2, ledger: "9f3c0a52", until: "2026-12-01T18:00:00Z" };

function machineOf(spec: JsonObject, generation = 1) {
  return { kind: "Machine", name: "node-1", content: { spec }, generation };
}

function machineIn({ source }: SourceUnderTest): MachineObject | undefined {
  return source.view.get("Machine", "default", "node-1");
}

const unknown: Handler = (_, response) => {
  response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found\n");
};

describe("a Machine", () => {
  it("is in view with its identities as the ledger names them", async () => {
    const identity = {
      uuid: "4C4C4544-0042-3510-8052-B4C04F4E4A32",
      macs: [mac, "52-54-00-A1-9C-AE", "5254.00a1.9caf"],
    };
    suite.server.put(machineOf({ ...good, identity, install }));
    const under = sourceOf();
    await under.list();
    expect(machineIn(under)?.spec).toEqual({
      identities: ["uuid/4c4c4544-0042-3510-8052-b4c04f4e4a32", `mac/${mac}`, "mac/52:54:00:a1:9c:af"],
      approved: true,
      hold: false,
      labels: { rack: "7" },
      metadata: { ip: "192.0.2.7" },
      install: { generation: 2, ledger: "9f3c0a52", untilMs: Date.UTC(2026, 11, 1, 18), scope: "All" },
    });
    expect(under.source.view.complete).toBe(true);
  });

  it("that is refused holds, but approves and grants nothing, and keeps the labels that were accepted", async () => {
    suite.server.put(machineOf({ ...good, install }));
    const under = sourceOf();
    await under.list();
    const bad = { ...good, install, labels: { rack: 8 }, hold: true, identity: { macs: ["52:54:00:a1:9c:af"] } };
    await under.tells("Machine/default/node-1", () => suite.server.put(machineOf(bad, 2)));
    expect(machineIn(under)).toMatchObject({
      refusal: expect.stringContaining("spec.labels.rack: must be text"),
      spec: { identities: [`mac/${mac}`, "mac/52:54:00:a1:9c:af"], approved: false, hold: true, labels: { rack: "7" } },
    });
    expect(machineIn(under)?.spec).not.toHaveProperty("install");
    expect([...under.source.view.refusals]).toMatchObject([{ kind: "Machine", name: "node-1", generation: 2 }]);
    await under.tells("Machine/default/node-1", () => suite.server.put(machineOf(good, 3)));
    expect(machineIn(under)?.spec).toMatchObject({ identities: [`mac/${mac}`], approved: true, hold: false });
    expect(machineIn(under)).not.toHaveProperty("refusal");
  });

  it("of another uid that is refused keeps nothing of the former one", async () => {
    suite.server.put({ ...machineOf(good), uid: "one" });
    const under = sourceOf();
    await under.list();
    const bad = { identity: { macs: ["52:54:00:a1:9c:af"] }, approved: 1 };
    await under.tells("Machine/default/node-1", () => suite.server.put({ ...machineOf(bad), uid: "two" }));
    expect(machineIn(under)?.spec).toMatchObject({
      identities: ["mac/52:54:00:a1:9c:af"],
      labels: {},
      approved: false,
    });
  });

  it("of a uuid that many boards share is refused, and its MAC addresses count", async () => {
    const identity = { uuid: "03000200-0400-0500-0006-000700080009", macs: [mac] };
    suite.server.put(machineOf({ ...good, identity, hold: true }));
    const under = sourceOf();
    await under.list();
    expect(machineIn(under)).toMatchObject({
      refusal: expect.stringContaining("spec.identity.uuid: is a UUID that many boards share"),
      spec: { identities: [`mac/${mac}`], approved: false, hold: true },
    });
  });

  it("of which no identity can be read is refused alone", async () => {
    suite.server.put(machineOf({ identity: { macs: ["52:54"] }, hold: true }));
    const under = sourceOf();
    await under.list();
    expect(machineIn(under)).toBeUndefined();
    const name = { kind: "Machine", namespace: "default", name: "node-1" } as const;
    expect(under.source.view.refusalOf(name)?.message).toContain("spec.identity.macs: is no MAC address");
    expect(under.source.view.isGone(name)).toBe(false);
  });

  it("is not told again for a status alone", async () => {
    suite.server.put(machineOf({ ...good, approved: 1 }));
    const under = sourceOf();
    await under.list();
    const before = machineIn(under);
    const count = under.changed.length;
    suite.server.put({
      ...machineOf({ ...good, approved: 1 }),
      content: { spec: { ...good, approved: 1 }, status: { phase: "Waiting" } },
    });
    await under.tells("Group/default/a", () => suite.server.put(groupOf("a")));
    expect(under.changed.slice(count)).toEqual(["Group/default/a"]);
    expect(machineIn(under)).toBe(before);
  });

  it("whose approval is withdrawn loses it at once, while the Groups are not heard", async () => {
    suite.server.put(machineOf({ ...good, install }));
    const under = sourceOf();
    await under.list();
    await until(() => under.source.isFollowed);
    suite.server.always(/groups/, (_, response) => response.writeHead(500).end());
    suite.server.cut(/groups/);
    await until(() => !under.source.isFollowed);
    await under.tells("Machine/default/node-1", () =>
      suite.server.put(machineOf({ ...good, approved: false, metadata: { ip: "192.0.2.8" } }, 2)),
    );
    expect(machineIn(under)?.spec).toEqual({
      identities: [`mac/${mac}`],
      approved: false,
      hold: false,
      labels: { rack: "7" },
      metadata: { ip: "192.0.2.7" },
    });
  });
});

describe("a cluster that does not know Machines", () => {
  const stored = { kind: "Machine", namespace: "default", name: "node-1" } as const;

  it("has none, is followed and proven, and says which CRDs to apply", async () => {
    suite.server.put(groupOf("a"));
    suite.server.always(/machines/, unknown);
    const under = sourceOf({ proveMs: 30_000 });
    await under.list();
    await until(() => under.source.isFollowed);
    expect(under.source.view.complete).toBe(true);
    expect(under.source.view.get("Group", "default", "a")).toBeDefined();
    expect(under.source.attention.join()).toContain("does not know machines.davit.dev (404), so there are none");
    await under.bed.clock.advance(30_000);
    await until(() => under.source.provenAtMs === 30_000);
    expect(under.source.isFollowed).toBe(true);
  });

  it("leaves stored Machines as they are", async () => {
    suite.server.put(groupOf("a"));
    suite.server.always(/machines/, unknown);
    const under = sourceOf();
    await under.list();
    expect(under.source.view.isGone(stored)).toBe(false);
    expect(under.source.view.isGone({ ...stored, kind: "Group" })).toBe(true);
  });

  it("is followed as soon as it knows them", async () => {
    suite.server.put(groupOf("a"));
    const off = suite.server.always(/machines/, unknown);
    const under = sourceOf();
    await under.list();
    await until(() => under.source.isFollowed);
    off();
    suite.server.put(machineOf({ ...good, hold: true }));
    await under.tells("Machine/default/node-1", () => under.bed.clock.advance(5_000));
    expect(machineIn(under)?.spec.hold).toBe(true);
    await until(() => under.source.attention.length === 0);
    expect(under.source.view.isGone({ ...stored, name: "other" })).toBe(true);
  });

  it("is away if it knew them: what is known stays", async () => {
    suite.server.put(machineOf({ ...good, hold: true }));
    const under = sourceOf();
    await under.list();
    await until(() => under.source.isFollowed);
    suite.server.always(/machines/, unknown);
    suite.server.cut(/machines/);
    await until(() => !under.source.isFollowed);
    await under.bed.clock.advance(10_000);
    await until(() => under.source.attention.some((line) => line.includes("install the CRDs")));
    expect(machineIn(under)?.spec.hold).toBe(true);
    expect(under.source.isFollowed).toBe(false);
  });

  it("is not ready if it knows no Profiles either", async () => {
    suite.server.always(/davit\.dev/, unknown);
    const under = sourceOf();
    await under.start();
    await until(() => under.source.attention.length > 3);
    expect(under.listed).toEqual([]);
    expect(under.source.attention.join()).toContain("machines.davit.dev (404): install the CRDs");
  });

  it("is not ready if davit may not read them: they may hold machines", async () => {
    suite.server.put(groupOf("a"));
    suite.server.always(/machines/, (_, response) => response.writeHead(403).end("{}"));
    const under = sourceOf();
    await under.start();
    await until(() => under.source.attention.some((line) => line.includes("may not list machines.davit.dev")));
    expect(under.listed).toEqual([]);
  });
});
