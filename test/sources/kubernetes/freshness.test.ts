/** Since when the view of a cluster is proven, by the signs of life of an API server. */

import { expect, it } from "vitest";
import { until } from "./client-under-test.ts";
import { answers } from "./fake-api-server.ts";
import { useFakeServer } from "./fake-server-suite.ts";
import { fromConfigMap, fromSecret, groupOf, profileOf, SourceUnderTest, secretOf } from "./source-under-test.ts";

const suite = useFakeServer();
const proveMs = 15_000;

/** A source whose first list is in and whose watches stand, at the time 0. */
async function followed(): Promise<SourceUnderTest> {
  const under = suite.stopsLater(new SourceUnderTest(suite.server, { proveMs }));
  await under.list();
  await until(() => suite.server.openWatches === 4 && under.source.isFollowed);
  return under;
}

it("is not known before the first list, and then is the time of the list", async () => {
  suite.server.put(groupOf("a"));
  const under = suite.stopsLater(new SourceUnderTest(suite.server, { proveMs }));
  expect(under.source.provenAtMs).toBeUndefined();
  await under.start();
  expect(under.source.provenAtMs).toBeUndefined();
  await until(() => under.source.isFollowed && suite.server.openWatches === 4);
  expect(under.source.provenAtMs).toBe(0);
  await under.bed.clock.advance(4_000);
  suite.server.bookmark();
  await until(() => under.source.ageSeconds === 0);
  expect(under.source.provenAtMs).toBe(0);
});

it("is the moment in which a list was asked for, however long that took", async () => {
  suite.server.put(groupOf("a"));
  let list = () => {};
  suite.server.once("list", (request, response) => (list = () => suite.server.answer(request, response)), /groups$/);
  suite.server.once("watch", () => {}, /groups$/);
  const under = suite.stopsLater(new SourceUnderTest(suite.server, { proveMs }));
  await under.start();
  await until(() => suite.server.seen("list").length === 4);
  await under.bed.clock.advance(8_000);
  list();
  await until(() => under.listed.length > 0);
  expect(under.source.provenAtMs).toBe(0);
});

it("is asked for regularly, and is the time of the question", async () => {
  suite.server.put(groupOf("a"));
  const under = await followed();
  await under.bed.clock.advance(proveMs);
  await until(() => under.source.provenAtMs === proveMs);
  expect(suite.server.seen("look").map(({ query }) => query.get("limit"))).toEqual(["1", "1", "1", "1"]);
  await under.bed.clock.advance(proveMs - 1);
  expect(under.source.provenAtMs).toBe(proveMs);
  await under.bed.clock.advance(1);
  await until(() => under.source.provenAtMs === 2 * proveMs);
  expect(suite.server.seen("look")).toHaveLength(8);
});

it("stays where it was while the API server is away, and goes on when it is back", async () => {
  suite.server.put(groupOf("a"));
  const under = await followed();
  const off = suite.server.always(/./, answers(503));
  suite.server.cut();
  await until(() => !under.source.isFollowed);
  await under.bed.clock.advance(60_000);
  expect(under.source.provenAtMs).toBe(0);
  off();
  await under.bed.clock.advance(60_000);
  await until(() => under.source.isFollowed && (under.source.provenAtMs ?? 0) > 60_000);
});

it("stays where it was while the watches stand and the API server does not answer", async () => {
  suite.server.put(groupOf("a"));
  const under = await followed();
  suite.server.always(/./, answers(500));
  await under.bed.clock.advance(2 * proveMs);
  await until(() => suite.server.seen("look").length >= 2);
  expect(under.source.isFollowed).toBe(true);
  expect(under.source.provenAtMs).toBe(0);
});

it("is not taken from an API server that went back: everything is listed", async () => {
  const before = suite.server.copy();
  suite.server.put(groupOf("a"));
  suite.server.put(groupOf("b"));
  const under = await followed();
  const lists = suite.server.seen("list").length;
  // Connections stay, as those to a proxy do.
  suite.server.cut = () => {};
  suite.server.restore(before);
  await under.bed.clock.advance(proveMs);
  await until(() => suite.server.seen("list").length > lists);
});

it("stays at the change of a ConfigMap while that cannot be read", async () => {
  const texts = { kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } } as const;
  suite.server.put(texts);
  suite.server.put(profileOf("web", { ignition: fromConfigMap("texts") }));
  const under = await followed();
  await until(() => under.source.provenAtMs === 0);
  const off = suite.server.always(/configmaps\/texts/, answers(500));
  await under.bed.clock.advance(3_000);
  suite.server.put({ ...texts, content: { data: { text: "{ }" } } });
  await until(() => suite.server.seen("get", /configmaps\/texts/).length > 1);
  await under.bed.clock.advance(5_000);
  suite.server.bookmark();
  await under.bed.clock.advance(1);
  expect(under.source.provenAtMs).toBeLessThanOrEqual(3_000);
  off();
  await under.bed.clock.advance(30_000);
  await until(() => (under.source.provenAtMs ?? 0) >= 30_000);
});

it("goes on after a minute in which davit may not read a changed ConfigMap, which then counts as not there", async () => {
  const texts = { kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } } as const;
  const reference = { kind: "ConfigMap", namespace: "default", name: "texts" } as const;
  suite.server.put(texts);
  suite.server.put(profileOf("web", { ignition: fromConfigMap("texts") }));
  const under = await followed();
  const off = suite.server.always(/configmaps\/texts/, answers(403));
  suite.server.put({ ...texts, content: { data: { text: "{ }" } } });
  await until(() => suite.server.seen("get", /configmaps\/texts/).length > 1);
  const stepsUntil = async (isReached: () => boolean) => {
    while (!isReached()) {
      suite.server.bookmark();
      await under.bed.clock.advance(5_000);
    }
  };
  await stepsUntil(() => under.bed.clock.monotonicMs() >= 55_000);
  expect(under.source.provenAtMs).toBe(0);
  expect(under.source.view.get("ConfigMap", "default", "texts")?.data.text).toBe("{}");
  await stepsUntil(() => under.source.view.isForbidden?.(reference) === true);
  expect(under.source.view.get("ConfigMap", "default", "texts")).toBeUndefined();
  await stepsUntil(() => (under.source.provenAtMs ?? 0) > 60_000);
  off();
  await stepsUntil(() => under.source.view.get("ConfigMap", "default", "texts")?.data.text === "{ }");
  expect(under.source.view.isForbidden?.(reference)).toBe(false);
});

it("does not wait for what davit may not read", async () => {
  suite.server.always(/configmaps/, answers(403));
  suite.server.put(groupOf("a"));
  const under = suite.stopsLater(new SourceUnderTest(suite.server, { proveMs }));
  await under.list();
  await until(() => under.source.isFollowed);
  await under.bed.clock.advance(proveMs);
  await until(() => under.source.provenAtMs === proveMs);
});

it.each([
  { what: "Secret", path: /\/secrets$/, generic: fromSecret("texts") },
  { what: "ConfigMap", path: /configmaps\/texts/, generic: fromConfigMap("texts") },
])("stays where it was while a Profile's newest version names a $what that cannot be read", async (reference) => {
  suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } });
  suite.server.put(secretOf("texts", "{}"));
  suite.server.put(profileOf("web", { effect: "Install" }));
  const under = await followed();
  suite.server.always(reference.path, answers(503));
  await under.bed.clock.advance(3_000);
  suite.server.put(profileOf("web", { boot: { local: "exit" }, generic: reference.generic }, 2));
  await until(() => suite.server.requests.some(({ path }) => reference.path.test(path)));
  for (let count = 0; count < 40; count++) {
    suite.server.bookmark();
    await under.bed.clock.advance(5_000);
  }
  expect(under.source.view.get("Profile", "default", "web")?.spec.effect).toBe("Install");
  expect(under.source.provenAtMs).toBeLessThanOrEqual(3_000);
});
