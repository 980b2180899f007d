import { describe, expect, it } from "vitest";
import { until } from "./client-under-test.ts";
import { answers, eventLine, sendStatus, statusOf } from "./fake-api-server.ts";
import { groupsPath, useWatches } from "./watch-under-test.ts";

const { suite, follower, group } = useWatches();

const everything = /./;

describe("a place in the history that is no longer kept", () => {
  it("told as a status: everything is listed at once, with the deletions that were not heard", async () => {
    group("a");
    group("b");
    const followed = follower();
    await followed.follow();
    await followed.endInGoodOrder();
    suite.server.delete("Group", "a");
    suite.server.compact();
    await until(() => followed.listedCount === 2);
    await until(() => suite.server.openWatches === 1);
    expect(followed.changes.slice(1)).toEqual([["deleted a", "replaced b"]]);
    // Normal operation: nobody is told of a failure.
    expect(followed.failures).toEqual([]);
    expect(await followed.bed.measured("davit_watch_restarts_total")).toEqual([
      'davit_watch_restarts_total{reason="expired"} 1',
    ]);
  });

  it.each([
    { name: "code 410", status: statusOf(410, "Gone") },
    { name: "reason Expired", status: statusOf(400, "Expired") },
  ])(
    "told as an event with $name: what came before it counts, and everything is listed at once",
    async ({ status }) => {
      const followed = follower();
      await followed.follow();
      const before = group("a");
      suite.server.write(
        eventLine("MODIFIED", { ...before, metadata: metadata("b", "999") }) + eventLine("ERROR", status),
      );
      await until(() => followed.listedCount === 2);
      expect(followed.changes.flat()).toEqual(["set a", "set b", "deleted b", "replaced a"]);
      expect(followed.failures).toEqual([]);
    },
  );

  it("is no failure after failures either: a server that was restarted is listed at once", async () => {
    group("a");
    const followed = follower();
    await followed.follow();
    suite.server.cut();
    await followed.failed(1);
    suite.server.delete("Group", "a");
    suite.server.compact();
    await followed.bed.clock.advance(800);
    await until(() => followed.listedCount === 1 && followed.failures.length === 2);
    // One object is gone at once: that is asked a second time, as any list that is empty.
    expect(followed.failures[1]?.reason).toBe("emptied");
  });

  it("that is never kept leads to a list with longer and longer waits, not to a busy loop", async () => {
    const followed = follower();
    suite.server.always(everything, (request, response) => {
      if (request.kind === "watch") sendStatus(response, 410, "Expired");
      else response.end(JSON.stringify({ metadata: { resourceVersion: "5" }, items: [] }));
    });
    followed.begin();
    await followed.failed(1);
    expect(suite.server.seen("list")).toHaveLength(2);
    await followed.bed.clock.advance(1_600);
    await followed.failed(2);
    expect(suite.server.seen("list")).toHaveLength(3);
    await followed.bed.clock.advance(3_200);
    await followed.failed(3);
    expect(suite.server.requests).toHaveLength(8);
  });

  it("in the middle of a list begins the list anew, once", async () => {
    for (let count = 0; count < 5; count++) group(`g${count}`);
    const followed = follower({ pageSize: 2 });
    suite.server.once("list", (request, response) => {
      suite.server.once("list", answers(410, "Expired"));
      response.end(
        JSON.stringify({ metadata: { resourceVersion: "5", continue: "6/2" }, items: [], at: request.path }),
      );
    });
    await followed.follow();
    expect(followed.names()).toHaveLength(5);
    expect(followed.changes).toHaveLength(1);
    expect(suite.server.seen("list").map(({ query }) => query.get("continue"))).toEqual([
      null,
      "6/2",
      null,
      "105/2",
      "105/4",
    ]);
  });

  it("in the middle of two lists is a failure", async () => {
    group("a");
    const followed = follower();
    suite.server.once("list", answers(410, "Expired"));
    suite.server.once("list", answers(410, "Expired"));
    await followed.follow();
    expect(suite.server.seen("list")).toHaveLength(3);
    expect(followed.names()).toEqual(["a"]);
  });
});

describe("a connection that is gone", () => {
  it("in the middle of a line: the whole event before it counts, and everything is listed", async () => {
    const followed = follower();
    await followed.follow();
    group("a");
    await until(() => followed.names().length === 1);
    suite.server.write('{"type":"ADDED","object":{"metadata":{"na');
    suite.server.cut();
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("network");
    expect(followed.isConnected).toBe(false);
    await followed.bed.clock.advance(800);
    await until(() => followed.isConnected);
    expect(followed.versions()).toEqual(["100", "101"]);
    expect(suite.server.seen("list")).toHaveLength(2);
  });

  it("without a sign (half-open): after the silence, and not before", async () => {
    const followed = follower({ silenceMs: 150_000 });
    await followed.follow();
    await followed.bed.clock.advance(149_999);
    expect(followed.failures).toEqual([]);
    await followed.bed.clock.advance(1);
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("silent");
    await until(() => suite.server.openWatches === 0);
  });

  it.each(["list", "watch"] as const)("before an answer to a %s: after its time-out", async (kind) => {
    group("a");
    const followed = follower();
    suite.server.once(kind, () => {});
    followed.begin();
    await followed.asked(kind, 1);
    await followed.bed.clock.advance(30_000);
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("silent");
    await followed.bed.clock.advance(800);
    await until(() => followed.isConnected);
    expect(followed.names()).toEqual(["a"]);
  });

  it("loses nothing: what was deleted meanwhile shows in the next list", async () => {
    group("a");
    group("b");
    const followed = follower();
    await followed.follow();
    suite.server.cut();
    await followed.failed(1);
    suite.server.delete("Group", "a");
    group("c");
    expect(followed.names()).toEqual(["a", "b"]);
    await followed.bed.clock.advance(800);
    await until(() => followed.names().join() === "b,c");
    expect(followed.changes.slice(1).flat()).toEqual(["deleted a", "replaced b", "set c"]);
  });

  it("waits longer after each failure, up to a cap, and begins anew after two quiet minutes", async () => {
    const followed = follower();
    await followed.follow();
    const off = suite.server.always(everything, (_, response) => response.destroy());
    suite.server.cut();
    for (const [at, delayMs] of [800, 1_600, 3_200, 5_000, 5_000].entries()) {
      await followed.failed(at + 1);
      const count = suite.server.requests.length;
      await followed.bed.clock.advance(delayMs - 1);
      expect(suite.server.requests).toHaveLength(count);
      await followed.bed.clock.advance(1);
      await until(() => suite.server.requests.length > count);
    }
    await followed.failed(6);
    off();
    await followed.bed.clock.advance(5_000);
    await until(() => followed.isConnected);
    await followed.bed.clock.advance(120_000);
    suite.server.cut();
    await followed.failed(7);
    const count = suite.server.requests.length;
    await followed.bed.clock.advance(800);
    await until(() => suite.server.requests.length > count);
    expect(followed.failures).toHaveLength(7);
  });

  it("is told in the log every ten minutes however often it is tried, with its time, and so is its return", async () => {
    const followed = follower();
    await followed.follow();
    const off = suite.server.always(everything, answers(503, "ServiceUnavailable"));
    await followed.endInGoodOrder();
    for (let count = 1; count <= 12; count++) {
      await followed.failed(count);
      await followed.bed.clock.advance(60_000);
    }
    off();
    await followed.bed.clock.advance(60_000);
    await until(() => followed.isConnected);
    const away = ["not following the cluster, what is known stays", "the cluster answers again"].flatMap((line) =>
      followed.bed.told(line).map(({ awaySeconds }) => Math.floor(Number(awaySeconds) / 600)),
    );
    expect(away).toEqual([0, 1, 1]);
  });
});

describe("a server that refuses", () => {
  it.each([
    { code: 500, reason: "server" },
    { code: 503, reason: "server" },
    { code: 403, reason: "refused" },
  ])("a watch with $code is asked for a list, after a wait", async ({ code, reason }) => {
    group("a");
    const followed = follower();
    suite.server.once("watch", answers(code, "Whatever"));
    followed.begin();
    await followed.failed(1);
    expect(followed.failures[0]).toMatchObject({ reason, status: code });
    await followed.bed.clock.advance(800);
    await until(() => followed.isConnected);
    expect(followed.versions()).toEqual([suite.server.version, suite.server.version]);
    expect(suite.server.seen("list")).toHaveLength(2);
  });

  it("by an error event is asked for a list, after a wait", async () => {
    const followed = follower();
    await followed.follow();
    suite.server.write(eventLine("ERROR", statusOf(500, "InternalError")));
    await followed.failed(1);
    expect(followed.failures[0]).toMatchObject({ reason: "server", status: 500 });
    await followed.bed.clock.advance(800);
    await until(() => followed.listedCount === 2);
  });

  it.each([
    { name: "with Retry-After", headers: { "retry-after": "7" }, waitMs: 7_000 },
    { name: "without Retry-After", headers: {}, waitMs: 800 },
    { name: "with a Retry-After that is none", headers: { "retry-after": "soon" }, waitMs: 800 },
  ])("by 429 $name is left alone for as long as it wants", async ({ headers, waitMs }) => {
    const followed = follower();
    suite.server.once("watch", answers(429, "TooManyRequests", headers));
    followed.begin();
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("throttled");
    await followed.bed.clock.advance(waitMs - 1);
    expect(suite.server.seen("watch")).toHaveLength(1);
    await followed.bed.clock.advance(1);
    await until(() => followed.isConnected);
    expect(suite.server.seen("list")).toHaveLength(1);
  });

  it("by an error event of 429 keeps its place, too", async () => {
    const followed = follower();
    await followed.follow();
    const status = { ...statusOf(429, "TooManyRequests"), details: { retryAfterSeconds: 3 } };
    suite.server.write(eventLine("ERROR", status));
    await followed.failed(1);
    expect(followed.failures[0]).toMatchObject({ reason: "throttled", retryAfterMs: 3_000 });
    await followed.bed.clock.advance(3_000);
    await until(() => followed.isConnected);
    expect(suite.server.seen("list")).toHaveLength(1);
  });

  it("because the CRD is not there yet is asked until it is, every ten seconds at least", async () => {
    const followed = follower();
    const off = suite.server.always(everything, answers(404, "NotFound"));
    followed.begin();
    for (let count = 1; count <= 8; count++) {
      await followed.failed(count);
      await followed.bed.clock.advance(10_000);
    }
    await followed.failed(9);
    expect(followed.watch.isSynced).toBe(false);
    off();
    group("a");
    await followed.bed.clock.advance(10_000);
    await until(() => followed.isConnected);
    expect(followed.names()).toEqual(["a"]);
  });

  it("because the CRD went away is not believed to have nothing", async () => {
    group("a");
    const followed = follower();
    await followed.follow();
    suite.server.always(everything, answers(404, "NotFound"));
    suite.server.compact();
    await followed.endInGoodOrder();
    await followed.failed(1);
    expect(followed.names()).toEqual(["a"]);
  });

  it("the token is shown a new one", async () => {
    const followed = follower();
    suite.server.always(everything, (request, response) => {
      if (request.headers.authorization === "Bearer first") sendStatus(response, 401, "Unauthorized");
      else if (request.kind === "watch") suite.server.openWatch(request, response);
      else response.end(JSON.stringify({ metadata: { resourceVersion: "5" }, items: null }));
    });
    await followed.follow();
    expect(followed.bed.renewals).toBe(1);
    expect(followed.failures).toEqual([]);
  });
});

describe("an end that comes too soon", () => {
  it("without an event is a failure: a server that does nothing else is not asked in a busy loop", async () => {
    const followed = follower();
    suite.server.once("watch", (_, response) => void response.writeHead(200).end());
    followed.begin();
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("short");
    await followed.bed.clock.advance(800);
    await followed.asked("watch", 2);
  });
});

describe("a list that is empty where there were objects", () => {
  it("is believed when a second one says the same", async () => {
    group("a");
    group("b");
    const followed = follower();
    await followed.follow();
    const off = suite.server.always(everything, (_, response) =>
      response.end(JSON.stringify({ metadata: { resourceVersion: "500" }, items: [] })),
    );
    followed.watch.relist();
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("emptied");
    expect(followed.names()).toEqual(["a", "b"]);
    await followed.bed.clock.advance(800);
    await until(() => followed.listedCount === 2);
    expect(followed.changes[1]).toEqual(["deleted a", "deleted b"]);
    off();
  });

  it("is forgotten when the second one has them", async () => {
    group("a");
    const followed = follower();
    await followed.follow();
    suite.server.once("list", (_, response) =>
      response.end(JSON.stringify({ metadata: { resourceVersion: "500" }, items: [] })),
    );
    followed.watch.relist();
    await followed.failed(1);
    await followed.bed.clock.advance(800);
    await until(() => followed.listedCount === 2);
    expect(followed.names()).toEqual(["a"]);
    expect(followed.changes).toHaveLength(1);
  });

  it("is believed at once when there were none", async () => {
    const followed = follower();
    await followed.follow();
    expect(followed.listedCount).toBe(1);
    expect(suite.server.seen("list", new RegExp(groupsPath))).toHaveLength(1);
  });
});

function metadata(name: string, resourceVersion: string) {
  return { name, namespace: "default", uid: `uid-of-${name}`, resourceVersion };
}
