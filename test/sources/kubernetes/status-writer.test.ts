import { describe, expect, it } from "vitest";
import { isJsonObject } from "../../../src/model/json.ts";
import type { Condition, ObjectStatus } from "../../../src/model/objects/source.ts";
import { statusPace } from "../../../src/sources/kubernetes/status/status-writer.ts";
import { until } from "./client-under-test.ts";
import { sendStatus } from "./fake-api-server.ts";
import { useFakeServer } from "./fake-server-suite.ts";
import { groupOf } from "./source-under-test.ts";
import { groupName, WriterUnderTest } from "./writer-under-test.ts";

const suite = useFakeServer();
const statusPath = /\/status$/;

const good = { status: "True", reason: "Ready", message: "Machines are answered from this object" } as const;
const bad = { status: "False", reason: "ProfileNotFound", message: 'Profile "web" does not exist' } as const;

function statusOf(ready: Omit<Condition, "type">, more: Partial<ObjectStatus> = {}): ObjectStatus {
  return { observedGeneration: 1, conditions: [{ type: "Ready", ...ready }], selector: "role=a", ...more };
}

describe("a status", () => {
  it("is applied on the status subresource, as davit-controller, and nothing else", async () => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    await under.write("a", statusOf(good));
    await under.shows("a");
    const [patch] = suite.server.seen("patch");
    expect(patch?.path).toBe("/apis/davit.dev/v1alpha1/namespaces/default/groups/a/status");
    expect(Object.fromEntries(patch?.query ?? [])).toEqual({ fieldManager: "davit-controller", force: "true" });
    expect(patch?.headers["content-type"]).toBe("application/apply-patch+yaml");
    const lastTransitionTime = "2026-01-01T00:00:00Z";
    expect(patch?.body).toEqual({
      apiVersion: "davit.dev/v1alpha1",
      kind: "Group",
      metadata: { namespace: "default", name: "a", uid: "uid-1" },
      status: {
        observedGeneration: 1,
        conditions: [{ type: "Ready", ...good, observedGeneration: 1, lastTransitionTime }],
        selector: "role=a",
      },
    });
  });

  it("that is shown already is not written: not again, and not after a restart", async () => {
    suite.server.put(groupOf("a"));
    const first = await WriterUnderTest.start(suite);
    await first.write("a", statusOf(good));
    await first.shows("a");
    await first.write("a", statusOf(good));
    const second = await WriterUnderTest.start(suite);
    await second.bed.clock.advance(60_000);
    await second.write("a", statusOf(good));
    suite.server.put(groupOf("b"));
    await until(() => second.source.seen(groupName("b")) !== undefined);
    await second.write("b", statusOf(good));
    await second.shows("b");
    expect(suite.server.seen("patch").map(({ path }) => path.at(-"/status".length - 1))).toEqual(["a", "b"]);
  });

  it("keeps the time of a condition until its status changes", async () => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    await under.write("a", statusOf(bad));
    await under.shows("a");
    await under.bed.clock.advance(3_000);
    await under.write("a", statusOf({ ...bad, message: "other" }, { observedGeneration: 2 }));
    await under.shows("a", 2);
    await under.bed.clock.advance(4_000);
    await under.write("a", statusOf(good, { observedGeneration: 3 }));
    await under.shows("a", 3);
    expect(suite.server.seen("patch").map(({ body }) => timeOf(body))).toEqual([
      "2026-01-01T00:00:00Z",
      "2026-01-01T00:00:00Z",
      "2026-01-01T00:00:07Z",
    ]);
  });

  it("that changes while one is written is written after it, and only the newest", async () => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    suite.server.once("patch", (request, response) => void held.then(() => suite.server.answer(request, response)));
    await under.write("a", statusOf(good));
    await until(() => suite.server.seen("patch").length === 1);
    for (let count = 2; count <= 9; count++) await under.write("a", statusOf(good, { observedGeneration: count }));
    release();
    await under.shows("a", 9);
    expect(suite.server.seen("patch")).toHaveLength(2);
  });

  it("is written anew for an object that has taken the place of another", async () => {
    suite.server.put({ ...groupOf("a"), uid: "one" });
    const under = await WriterUnderTest.start(suite);
    await under.write("a", statusOf(good));
    await under.shows("a");
    suite.server.delete("Group", "a");
    suite.server.put({ ...groupOf("a"), uid: "two" });
    await until(() => under.source.seen(groupName("a"))?.uid === "two");
    await under.shows("a");
    expect(suite.server.object("Group", "a")?.status).toBeDefined();
  });

  it("of another object under the same name is not written for it", async () => {
    suite.server.put({ ...groupOf("a"), uid: "one" });
    const under = await WriterUnderTest.start(suite);
    await under.write("a", statusOf(good, { uid: "one" }));
    await under.shows("a");
    suite.server.delete("Group", "a");
    suite.server.put({ ...groupOf("a"), uid: "two" });
    await until(() => under.source.seen(groupName("a"))?.uid === "two");
    await under.isIdle();
    expect(suite.server.seen("patch")).toHaveLength(1);
    await under.write("a", statusOf(good, { uid: "two" }));
    await under.shows("a");
    expect(suite.server.seen("patch").map(({ body }) => body?.status)).not.toContainEqual(
      expect.objectContaining({ uid: expect.anything() }),
    );
  });

  it("of a Group is written before those of many Machines", async () => {
    suite.server.put(groupOf("a"));
    for (let at = 0; at < 40; at++) {
      suite.server.put({
        kind: "Machine",
        name: `m${at}`,
        content: { spec: { identity: { macs: [`5254.0000.00${10 + at}`] } } },
      });
    }
    const under = await WriterUnderTest.start(suite);
    for (let at = 0; at < 40; at++) {
      const name = { kind: "Machine", namespace: "default", name: `m${at}` } as const;
      await under.writer.write(name, { ...statusOf(good), machine: { phase: "Waiting" } });
    }
    await under.write("a", statusOf(good));
    await until(() => suite.server.seen("patch").length === 41);
    const paths = suite.server.seen("patch").map(({ path }) => path);
    expect(paths.findIndex((path) => path.includes("/groups/"))).toBeLessThan(9);
    expect(suite.server.object("Machine", "m7")?.status).toMatchObject({ phase: "Waiting", observedGeneration: 1 });
  });

  it("that somebody takes away is written at once, and then after longer and longer waits", async () => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    await under.write("a", statusOf(good));
    await under.shows("a");
    const writes = () => suite.server.seen("patch").filter(({ query }) => query.has("fieldManager")).length;
    await under.wipe("a");
    await until(() => writes() === 2);
    await under.shows("a");
    for (const [at, waitMs] of [1_000, 2_000, 4_000].entries()) {
      await under.wipe("a");
      await until(() => under.bed.clock.nextWakeMs === waitMs);
      expect(writes()).toBe(at + 2);
      await under.bed.clock.advance(waitMs);
      await until(() => writes() === at + 3);
      await under.shows("a");
    }
  });

  it("of an object that is gone is not written", async () => {
    suite.server.put(groupOf("b"));
    const under = await WriterUnderTest.start(suite);
    await under.write("gone", statusOf(good));
    await under.write("b", statusOf(good));
    await under.shows("b");
    expect(suite.server.seen("patch")).toHaveLength(1);
  });
});

describe("a write that fails", () => {
  it.each([404, 400, 422])("with %i is not made again until the status changes", async (code) => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    suite.server.once("patch", (_, response) => sendStatus(response, code, "Whatever"));
    await under.write("a", statusOf(good));
    await until(() => suite.server.seen("patch").length === 1);
    await under.isIdle();
    await under.bed.clock.advance(120_000);
    expect(suite.server.seen("patch")).toHaveLength(1);
    await under.write("a", statusOf(good, { observedGeneration: 2 }));
    await under.shows("a", 2);
  });

  it.each([
    [409, "the same short wait, since the watch tells soon of the object that is another", [1_000, 1_000]],
    [500, "a wait that grows", [1_000, 2_000]],
    [403, "a wait that grows", [1_000, 2_000]],
  ] as const)("with %i is made again after %s", async (code, _wait, delaysMs) => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    for (let count = 0; count < 2; count++) {
      suite.server.once("patch", (_, response) => sendStatus(response, code, "Whatever"));
    }
    await under.write("a", statusOf(good));
    for (const delayMs of delaysMs) {
      await until(() => under.bed.clock.nextWakeMs === delayMs);
      await under.bed.clock.advance(delayMs);
    }
    await under.shows("a");
    expect(suite.server.seen("patch")).toHaveLength(3);
  });

  it("for want of a place (429) is made again after the time that is wanted, with fewer at a time", async () => {
    const names = Array.from({ length: 60 }, (_, at) => `g${at}`);
    for (const name of names) suite.server.put(groupOf(name));
    const under = await WriterUnderTest.start(suite);
    let isBusy = false;
    let refusals = 0;
    suite.server.always(statusPath, (request, response) => {
      if (isBusy) {
        refusals += 1;
        sendStatus(response, 429, "TooManyRequests", { "retry-after": "1" });
        return;
      }
      isBusy = true;
      setImmediate(() => {
        isBusy = false;
        suite.server.answer(request, response);
      });
    });
    for (const name of names) await under.write(name, statusOf(good));
    while (suite.server.seen("patch").length - refusals < names.length) await under.bed.clock.advance(100);
    for (const name of names) await under.shows(name);
    // At first seven of eight, then few: more lanes are tried now and then.
    expect(refusals).toBeGreaterThan(0);
    expect(refusals).toBeLessThan(25);
    expect(under.bed.told("cannot write a status, trying again later")).toEqual([]);
  });

  it("for every object holds all of them, instead of trying each", async () => {
    for (let count = 0; count < 50; count++) suite.server.put(groupOf(`g${count}`));
    const under = await WriterUnderTest.start(suite);
    const off = suite.server.always(statusPath, (_, response) => sendStatus(response, 403, "Forbidden"));
    for (let count = 0; count < 50; count++) await under.write(`g${count}`, statusOf(good));
    for (let count = 0; count < 70; count++) await under.bed.clock.advance(10);
    expect(suite.server.seen("patch").length).toBeLessThan(20);
    off();
    while (suite.server.seen("patch").length < 50) await under.bed.clock.advance(500);
    for (let count = 0; count < 50; count++) await under.shows(`g${count}`);
  });
});

describe("a missing right to write statuses", () => {
  const line = 'cluster: davit may not patch groups/status in namespace "default" (403): its Role lacks the rule';

  async function refused(...names: readonly string[]) {
    for (const name of names) suite.server.put(groupOf(name));
    const under = await WriterUnderTest.start(suite);
    const off = suite.server.always(statusPath, (_, response) => sendStatus(response, 403, "Forbidden"));
    for (const name of names) await under.write(name, statusOf(good));
    await until(() => under.bed.told("cannot write a status, trying again later").length === names.length);
    return { under, off };
  }

  it("is named in words, once for all objects, in the log as well, until one can be written", async () => {
    const { under, off } = await refused("a", "b");
    expect(under.writer.attention).toEqual([expect.stringContaining(line)]);
    const [told] = under.bed.told("cannot write a status, trying again later");
    expect(`cluster: ${told?.problem}`).toContain(line);
    off();
    await under.bed.clock.advance(10_000);
    await until(() => under.writer.attention.length === 0);
    await under.shows("a");
  });

  it("is not told any more when what is wanted is shown already", async () => {
    const { under } = await refused("a");
    const lastTransitionTime = "2026-01-01T00:00:00Z";
    const conditions = [{ type: "Ready", ...good, observedGeneration: 1, lastTransitionTime }];
    const status = { observedGeneration: 1, conditions, selector: "role=a" };
    const group = groupOf("a");
    suite.server.put({ ...group, content: { ...group.content, status } });
    await under.shows("a");
    await under.write("a", statusOf(good));
    await under.bed.clock.advance(10_000);
    await until(() => under.writer.attention.length === 0);
    expect(under.writer.attention).toEqual([]);
  });
});

describe("the pace", () => {
  it("is 150 writes a second, after a burst", async () => {
    expect(statusPace).toEqual({ perSecond: 150, burst: 3_000 });
    for (let count = 0; count < 100; count++) suite.server.put(groupOf(`g${count}`));
    const under = await WriterUnderTest.start(suite, { ...statusPace, burst: 10 });
    const startMs = under.bed.clock.monotonicMs();
    for (let count = 0; count < 100; count++) await under.write(`g${count}`, statusOf(good));
    while (suite.server.seen("patch").length < 100) await under.bed.clock.advance(1);
    // Ten at once, the others one each 6.7 ms.
    expect(under.bed.clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(600);
  });
});

describe("events", () => {
  it("tell of trouble and of its end, with who it is about", async () => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    await under.write("a", statusOf(bad));
    await under.shows("a");
    await under.passGrace();
    await until(() => suite.server.events.length === 1);
    await under.write("a", statusOf(good, { observedGeneration: 2 }));
    await until(() => suite.server.events.length === 2);
    expect(suite.server.events[0]).toMatchObject({
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { namespace: "default", name: expect.stringMatching(/^a\.[0-9a-f]+$/) },
      eventTime: "2026-01-01T00:00:05.000000Z",
      reportingController: "davit.dev/controller",
      reportingInstance: "davit-0",
      action: "Reconcile",
      reason: "ProfileNotFound",
      regarding: { apiVersion: "davit.dev/v1alpha1", kind: "Group", namespace: "default", name: "a", uid: "uid-1" },
      type: "Warning",
      note: 'Profile "web" does not exist',
    });
    expect(suite.server.events[1]).toMatchObject({ type: "Normal", reason: "Ready" });
  });

  it("do not tell of a first status that is good, nor of the same trouble twice in ten minutes", async () => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    await under.write("a", statusOf(good));
    await under.shows("a");
    for (const [at, status] of [bad, good, bad, good, bad].entries()) {
      await under.write("a", statusOf(status, { observedGeneration: at + 2 }));
      await under.shows("a", at + 2);
      await under.passGrace();
    }
    await until(() => suite.server.events.length === 2);
    await under.bed.clock.advance(600_000);
    await until(() => suite.server.openWatches === 4);
    await under.write("a", statusOf(good, { observedGeneration: 9 }));
    await until(() => suite.server.events.length === 3);
    expect(suite.server.events.map(({ reason }) => reason)).toEqual(["ProfileNotFound", "Ready", "Ready"]);
  });

  it("tell nothing of an object that waited for another for a moment: files are applied by their names", async () => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    await under.write("a", statusOf(bad));
    await under.shows("a");
    await under.bed.clock.advance(4_999);
    await under.write("a", statusOf(good, { observedGeneration: 2 }));
    await under.shows("a", 2);
    await under.passGrace();
    expect(suite.server.events).toEqual([]);
  });

  it("tell at once what no other object can mend", async () => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    const refused: Condition = { type: "Ready", status: "False", reason: "Refused", message: "spec.boot: no" };
    await under.write("a", statusOf(bad));
    await under.shows("a");
    await under.write("a", statusOf(refused, { observedGeneration: 2 }));
    await until(() => suite.server.events.length === 1);
    await under.passGrace();
    expect(suite.server.events.map(({ reason }) => reason)).toEqual(["Refused"]);
  });

  it("that cannot be written are forgotten", async () => {
    suite.server.put(groupOf("a"));
    const under = await WriterUnderTest.start(suite);
    suite.server.always(/\/events$/, (_, response) => sendStatus(response, 403, "Forbidden"));
    await under.write("a", statusOf(bad));
    await under.shows("a");
    await under.passGrace();
    await until(() => suite.server.seen("post").length === 1);
    await under.events.stop();
    expect(under.bed.told("could not write an event")).toHaveLength(1);
  });
});

describe("stopping", () => {
  it("drops what waits, and leaves no timer", async () => {
    for (let count = 0; count < 30; count++) suite.server.put(groupOf(`g${count}`));
    const under = await WriterUnderTest.start(suite);
    suite.server.always(statusPath, (_, response) => sendStatus(response, 500, "InternalError"));
    for (let count = 0; count < 30; count++) await under.write(`g${count}`, statusOf(good));
    await until(() => suite.server.seen("patch").length > 0);
    await under.stop();
    await under.stop();
    await until(() => suite.server.openSockets === 0);
    const count = suite.server.requests.length;
    await under.bed.clock.advance(600_000);
    await under.write("g1", statusOf(bad));
    expect(suite.server.requests).toHaveLength(count);
    expect(under.bed.clock.sleeping).toBe(0);
  });
});

function timeOf(body: unknown): unknown {
  const status = isJsonObject(body) ? body.status : undefined;
  const conditions = isJsonObject(status) && Array.isArray(status.conditions) ? status.conditions : [];
  return isJsonObject(conditions[0]) ? conditions[0].lastTransitionTime : undefined;
}
