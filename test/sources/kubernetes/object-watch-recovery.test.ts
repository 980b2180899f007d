import { describe, expect, it } from "vitest";
import { until } from "./client-under-test.ts";
import { answers } from "./fake-api-server.ts";
import { useWatches } from "./watch-under-test.ts";

const { suite, follower, group } = useWatches();

describe("a server that went back to an older state", () => {
  it("is listed anew: what came after that state is gone, and what was gone is back", async () => {
    group("a");
    group("b");
    const followed = follower();
    await followed.follow();
    const copy = suite.server.copy();
    suite.server.delete("Group", "b");
    group("c");
    await until(() => followed.names().join() === "a,c");
    suite.server.restore(copy);
    await followed.failed(1);
    await followed.bed.clock.advance(800);
    await until(() => followed.names().join() === "a,b");
    await until(() => followed.isConnected);
    expect(followed.versions().at(-1)).toBe(suite.server.version);
    expect(followed.bed.told("the cluster went back to an older state, listing everything")).toHaveLength(1);
    expect(await followed.bed.measured("davit_watch_restarts_total")).toContain(
      'davit_watch_restarts_total{reason="rewound"} 1',
    );
  });

  it("is not believed to have the same object because it has the same uid, generation and version", async () => {
    group("a");
    const followed = follower();
    await followed.follow();
    const copy = suite.server.copy();
    group("a", { generation: 2 });
    group("z");
    await until(() => followed.names().join() === "a,z");
    suite.server.restore(copy);
    group("a", { generation: 2, content: { spec: "another" } });
    const reads = followed.readCount;
    await followed.failed(1);
    await followed.bed.clock.advance(800);
    await until(() => followed.names().join() === "a");
    expect(followed.readCount).toBe(reads + 1);
    expect(followed.changes.at(-1)).toEqual(["deleted z", "replaced a"]);
  });

  it("is believed when it has shown nothing newer for a while: a cache on the way may show the past", async () => {
    group("a");
    const followed = follower({ pastMs: 20_000 });
    await followed.follow();
    const copy = suite.server.copy();
    group("b");
    await until(() => followed.names().join() === "a,b");
    suite.server.restore(copy);
    await followed.failed(1);
    for (let seconds = 0; seconds < 19; seconds++) await followed.bed.clock.advance(1_000);
    expect(new Set(followed.failures.slice(1).map(({ reason }) => reason))).toEqual(new Set(["rewound"]));
    expect(followed.names().join()).toBe("a,b");
    while (followed.names().join() !== "a") await followed.bed.clock.advance(1_000);
    await until(() => followed.isConnected);
    expect(followed.seen.of("groups")).toBe(suite.server.version);
  });

  it("is not believed by a davit that knows a later version from its store", async () => {
    group("a");
    const followed = follower({ pastMs: 20_000 });
    followed.seen.note("groups", String(Number(suite.server.version) + 1));
    followed.begin();
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("rewound");
    expect(followed.names()).toEqual([]);
    suite.server.put({ kind: "Profile", name: "other" });
    await followed.bed.clock.advance(10_000);
    await until(() => followed.names().join() === "a");
  });

  it("is listed even when it is beyond the version that was heard", async () => {
    group("a");
    const followed = follower();
    await followed.follow();
    const copy = suite.server.copy();
    group("a", { generation: 2 });
    await until(() => followed.readCount === 2);
    suite.server.restore(copy);
    for (let others = 0; others < 3; others++) suite.server.put({ kind: "Profile", name: "other" });
    await followed.failed(1);
    await followed.bed.clock.advance(800);
    await until(() => followed.readCount === 3);
    expect(followed.changes.at(-1)).toEqual(["replaced a"]);
  });

  it("is listed when it ends a watch before its time: it may have been stopped in good order", async () => {
    group("a");
    const followed = follower();
    await followed.follow();
    await followed.bed.clock.advance(100_000);
    suite.server.endWatches();
    await until(() => followed.listedCount === 2);
    await until(() => followed.isConnected);
    expect(followed.failures).toEqual([]);
  });
});

describe("what was not heard", () => {
  it("is read again where a list shows it, even if it is of the same generation", async () => {
    group("a", { generation: 3 });
    const followed = follower();
    await followed.follow();
    suite.server.once("watch", answers(410, "Expired"));
    await followed.endInGoodOrder();
    group("a", { generation: 3 });
    await until(() => followed.listedCount === 2);
    expect(followed.readCount).toBe(2);
  });

  it("is listed after half an hour, as soon as a watch has ended", async () => {
    group("a");
    const followed = follower();
    await followed.follow();
    const startedMs = followed.bed.clock.monotonicMs();
    for (let ends = 1; followed.listedCount === 1; ends++) {
      await followed.endInGoodOrder();
      await followed.asked("watch", ends + 1);
      group(`after-${ends}`);
      await until(() => followed.names().includes(`after-${ends}`));
    }
    expect(followed.bed.clock.monotonicMs() - startedMs).toBe(30 * 60_000);
    expect(followed.failures).toEqual([]);
  });
});

describe("a server that refuses every token", () => {
  it("is asked again every ten seconds at least", async () => {
    const followed = follower();
    const off = suite.server.always(/./, answers(401, "Unauthorized"));
    followed.begin();
    for (let count = 1; count <= 6; count++) {
      await followed.failed(count);
      await followed.bed.clock.advance(10_000);
    }
    expect(new Set(followed.failures.map(({ reason }) => reason))).toEqual(new Set(["credentials"]));
    off();
    await followed.bed.clock.advance(10_000);
    await until(() => followed.isConnected);
  });
});
