/** What proves that the view of a cluster is its state now, however lines of watches arrive. */

import { expect, it } from "vitest";
import { until } from "./client-under-test.ts";
import type { Handler } from "./fake-api-server.ts";
import { useFakeServer } from "./fake-server-suite.ts";
import { fromSecret, groupOf, profileOf, SourceUnderTest, secretOf } from "./source-under-test.ts";

const suite = useFakeServer();
const proveMs = 15_000;

/** A source whose first list is in and whose watches stand, at the time 0. */
async function followed(watches = 4, namespaces?: readonly string[]): Promise<SourceUnderTest> {
  const under = suite.stopsLater(new SourceUnderTest(suite.server, { proveMs, ...(namespaces && { namespaces }) }));
  await under.list();
  await until(() => suite.server.openWatches === watches && under.source.isFollowed);
  return under;
}

const pathsOf = (kind: "list" | "look" | "watch") =>
  suite.server.seen(kind).map(({ path }) => path.replace(/.*\//, ""));

/** Lets time pass until a fact holds. */
async function passes(under: SourceUnderTest, fact: () => boolean): Promise<void> {
  while (!fact()) {
    await under.bed.clock.advance(100);
    await quiet();
  }
}

/** Lets the network bring what it can. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
}

it("does not come from lines that arrive late: what they held back is listed", async () => {
  suite.server.put(profileOf("wipe", { effect: "Install" }));
  suite.server.put(groupOf("a", { profileRef: { name: "wipe" } }));
  suite.server.put(groupOf("b"));
  const under = await followed();
  const profileNow = () => under.source.view.get("Group", "default", "a")?.spec.profile;
  suite.server.stall();
  // Old lines, of which one arrives each second from now on.
  for (let count = 0; count < 300; count++) suite.server.bookmark();
  await under.bed.clock.advance(1_000);
  suite.server.put(groupOf("a", { profileRef: { name: "safe" } }, { generation: 2 }));
  const seen = new Set<string | undefined>();
  for (let second = 0; second < 120; second++) {
    suite.server.trickle();
    await under.bed.clock.advance(1_000);
    await quiet();
    const atMs = under.source.provenAtMs ?? 0;
    if (atMs > 1_000) seen.add(profileNow());
  }
  expect(seen).toEqual(new Set(["safe"]));
  expect(under.source.provenAtMs).toBeGreaterThan(90_000);
});

it("is not the answer to a question while a watch brings nothing", async () => {
  suite.server.put(groupOf("a"));
  suite.server.put(groupOf("b"));
  const under = await followed();
  suite.server.stall();
  await under.bed.clock.advance(1_000);
  suite.server.put(groupOf("a", { profileRef: { name: "safe" } }, { generation: 2 }));
  await under.bed.clock.advance(proveMs);
  expect(under.source.provenAtMs).toBe(0);
  expect(under.source.view.get("Group", "default", "a")?.spec.profile).toBe("web");
  await under.bed.clock.advance(proveMs);
  await passes(under, () => under.source.view.get("Group", "default", "a")?.spec.profile === "safe");
  expect(await under.bed.measured("davit_watch_restarts_total")).toEqual([
    'davit_watch_restarts_total{reason="unproven"} 1',
  ]);
});

it("is there although a watch brings nothing, where nothing has changed", async () => {
  suite.server.put(groupOf("a"));
  suite.server.put(groupOf("b"));
  const under = await followed();
  suite.server.stall();
  suite.server.put({ kind: "Other", name: "a" });
  for (let round = 1; round < 6; round++) {
    await under.bed.clock.advance(proveMs);
    await until(() => under.source.provenAtMs === round * proveMs);
  }
  expect(pathsOf("list").toSorted()).toEqual(["configmaps", "groups", "machines", "profiles"]);
});

it("needs a list where bookmarks lag behind, every other time", async () => {
  suite.server.put(groupOf("a"));
  suite.server.put(groupOf("b"));
  const under = await followed();
  suite.server.sendsLastBookmarks = false;
  suite.server.put({ kind: "Other", name: "a" });
  const lists = () => pathsOf("list").filter((plural) => plural === "groups").length;
  let oldestMs = 0;
  for (let second = 0; second < 140; second++) {
    await under.bed.clock.advance(1_000);
    await quiet();
    suite.server.put({ kind: "Other", name: "a" });
    oldestMs = Math.max(oldestMs, under.bed.clock.monotonicMs() - (under.source.provenAtMs ?? 0));
  }
  // Of 60 s, which are --install-max-source-age.
  expect(oldestMs).toBeLessThan(45_000);
  expect(lists()).toBeGreaterThan(3);
  expect(lists()).toBeLessThan(7);
});

it("is one question where the watch has brought what the API server has", async () => {
  suite.server.put(groupOf("a"));
  suite.server.put(groupOf("b"));
  const under = await followed();
  suite.server.put({ kind: "Other", name: "a" });
  suite.server.bookmark();
  await under.bed.clock.advance(proveMs);
  await until(() => under.source.provenAtMs === proveMs);
  expect(pathsOf("look").toSorted()).toEqual(["configmaps", "groups", "machines", "profiles"]);
  expect(pathsOf("watch")).toHaveLength(4);
});

it("is an answer that a later change overtakes on its way: the cluster did not go back", async () => {
  suite.server.put(groupOf("a"));
  suite.server.put(groupOf("b"));
  const under = await followed();
  const isSafe = () => under.source.view.get("Group", "default", "a")?.spec.profile === "safe";
  const answer = async (response: Parameters<Handler>[1]) => {
    const metadata = { resourceVersion: suite.server.version, continue: "more" };
    suite.server.put(groupOf("a", { profileRef: { name: "safe" } }, { generation: 2 }));
    await until(isSafe);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ metadata, items: [{}] }));
  };
  suite.server.once("look", (_, response) => void answer(response), /groups/);
  await under.bed.clock.advance(proveMs);
  await until(() => under.source.provenAtMs === proveMs);
  await quiet();
  expect(isSafe()).toBe(true);
  expect(pathsOf("list").toSorted()).toEqual(["configmaps", "groups", "machines", "profiles"]);
});

it("is one question for a Secret, and holds back the whole while its watch brings nothing", async () => {
  suite.server.put(secretOf("texts", "one"));
  suite.server.put(profileOf("web", { generic: fromSecret("texts") }));
  const under = await followed(5);
  const text = () => under.source.view.get("Secret", "default", "texts")?.data.text;
  expect(text()).toBe("one");
  suite.server.stall();
  await under.bed.clock.advance(1_000);
  suite.server.put(secretOf("texts", "two"));
  await under.bed.clock.advance(proveMs);
  expect(under.source.provenAtMs).toBe(0);
  await under.bed.clock.advance(proveMs);
  await passes(under, () => text() === "two");
  expect(under.source.provenAtMs).toBeGreaterThan(1_000);
});
