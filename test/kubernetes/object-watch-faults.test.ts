import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WatchLimits } from "../../src/kubernetes/object-watch.ts";
import { until } from "./client-under-test.ts";
import { eventLine, FakeApiServer, type Handler, sendStatus, statusOf } from "./fake-api-server.ts";
import { groupsPath, WatchUnderTest } from "./watch-under-test.ts";

const disposals: (() => Promise<void>)[] = [];
let server: FakeApiServer;

beforeEach(async () => {
  server = await FakeApiServer.start();
  disposals.push(() => server.stop());
});

afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

function follower(limits?: WatchLimits) {
  const followed = new WatchUnderTest(server, limits);
  disposals.push(() => followed.stop());
  return followed;
}

function group(name: string, more = {}) {
  return server.put({ kind: "Group", name, ...more });
}

const answers =
  (code: number, reason: string, headers = {}): Handler =>
  (_, response) =>
    sendStatus(response, code, reason, headers);

const everything = /./;

describe("a place in the history that is no longer kept", () => {
  it("told as a status: everything is listed at once, with the deletions that were not heard", async () => {
    group("a");
    group("b");
    const followed = follower();
    await followed.follow();
    await followed.endInGoodOrder();
    server.delete("Group", "a");
    server.compact();
    await until(() => followed.listedCount === 2);
    await until(() => server.openWatches === 1);
    expect(followed.changes.slice(1)).toEqual([["deleted a"]]);
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
      server.write(eventLine("MODIFIED", { ...before, metadata: metadata("b", "999") }) + eventLine("ERROR", status));
      await until(() => followed.listedCount === 2);
      expect(followed.changes.flat()).toEqual(["set a", "set b", "deleted b"]);
      expect(followed.failures).toEqual([]);
    },
  );

  it("is no failure after failures either: a server that was restarted is listed at once", async () => {
    group("a");
    const followed = follower();
    await followed.follow();
    server.cut();
    await followed.failed(1);
    server.delete("Group", "a");
    server.compact();
    await followed.bed.clock.advance(800);
    await until(() => followed.listedCount === 1 && followed.failures.length === 2);
    // One object is gone at once: that is asked a second time, as any list that is empty.
    expect(followed.failures[1]?.reason).toBe("emptied");
  });

  it("that is never kept leads to a list with longer and longer waits, not to a busy loop", async () => {
    const followed = follower();
    server.always(everything, (request, response) => {
      if (request.kind === "watch") sendStatus(response, 410, "Expired");
      else response.end(JSON.stringify({ metadata: { resourceVersion: "5" }, items: [] }));
    });
    followed.begin();
    await followed.failed(1);
    expect(server.seen("list")).toHaveLength(2);
    await followed.bed.clock.advance(1_600);
    await followed.failed(2);
    expect(server.seen("list")).toHaveLength(3);
    await followed.bed.clock.advance(3_200);
    await followed.failed(3);
    expect(server.requests).toHaveLength(8);
  });

  it("in the middle of a list begins the list anew, once", async () => {
    for (let count = 0; count < 5; count++) group(`g${count}`);
    const followed = follower({ pageSize: 2 });
    server.once("list", (request, response) => {
      server.once("list", answers(410, "Expired"));
      response.end(
        JSON.stringify({ metadata: { resourceVersion: "5", continue: "6/2" }, items: [], at: request.path }),
      );
    });
    await followed.follow();
    expect(followed.names()).toHaveLength(5);
    expect(followed.changes).toHaveLength(1);
    expect(server.seen("list").map(({ query }) => query.get("continue"))).toEqual([
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
    server.once("list", answers(410, "Expired"));
    server.once("list", answers(410, "Expired"));
    await followed.follow();
    expect(server.seen("list")).toHaveLength(3);
    expect(followed.names()).toEqual(["a"]);
  });
});

describe("a connection that is gone", () => {
  it("in the middle of a line: the next watch begins at the last whole event", async () => {
    const followed = follower();
    await followed.follow();
    group("a");
    await until(() => followed.names().length === 1);
    server.write('{"type":"ADDED","object":{"metadata":{"na');
    server.cut();
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("network");
    expect(followed.isConnected).toBe(false);
    await followed.bed.clock.advance(800);
    await until(() => followed.isConnected);
    expect(followed.versions()).toEqual(["100", "101"]);
    expect(server.seen("list")).toHaveLength(1);
  });

  it("without a sign (half-open): after the silence, and not before", async () => {
    const followed = follower({ silenceMs: 150_000 });
    await followed.follow();
    await followed.bed.clock.advance(149_999);
    expect(followed.failures).toEqual([]);
    await followed.bed.clock.advance(1);
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("silent");
    await until(() => server.openWatches === 0);
  });

  it.each(["list", "watch"] as const)("before an answer to a %s: after its time-out", async (kind) => {
    group("a");
    const followed = follower();
    server.once(kind, () => {});
    followed.begin();
    await followed.asked(kind, 1);
    await followed.bed.clock.advance(30_000);
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("silent");
    await followed.bed.clock.advance(800);
    await until(() => followed.isConnected);
    expect(followed.names()).toEqual(["a"]);
  });

  it("loses nothing: what was deleted meanwhile shows in the history or in the next list", async () => {
    group("a");
    group("b");
    const followed = follower();
    await followed.follow();
    server.cut();
    await followed.failed(1);
    server.delete("Group", "a");
    group("c");
    expect(followed.names()).toEqual(["a", "b"]);
    await followed.bed.clock.advance(800);
    await until(() => followed.names().join() === "b,c");
    expect(followed.changes.slice(1).flat()).toEqual(["deleted a", "set c"]);
  });

  it("waits longer after each failure, up to a cap, and begins anew after two quiet minutes", async () => {
    const followed = follower();
    await followed.follow();
    const off = server.always(everything, (_, response) => response.destroy());
    server.cut();
    for (const [at, delayMs] of [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000].entries()) {
      await followed.failed(at + 1);
      const count = server.requests.length;
      await followed.bed.clock.advance(delayMs - 1);
      expect(server.requests).toHaveLength(count);
      await followed.bed.clock.advance(1);
      await until(() => server.requests.length > count);
    }
    await followed.failed(9);
    off();
    await followed.bed.clock.advance(30_000);
    await until(() => followed.isConnected);
    await followed.bed.clock.advance(120_000);
    server.cut();
    await followed.failed(10);
    const count = server.requests.length;
    await followed.bed.clock.advance(800);
    await until(() => server.requests.length > count);
    expect(followed.failures).toHaveLength(10);
  });

  it("is told in the log every ten minutes however often it is tried, with its time, and so is its return", async () => {
    const followed = follower();
    await followed.follow();
    const off = server.always(everything, answers(503, "ServiceUnavailable"));
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
  ])("a watch with $code is asked again from the same version, after a wait", async ({ code, reason }) => {
    group("a");
    const followed = follower();
    server.once("watch", answers(code, "Whatever"));
    followed.begin();
    await followed.failed(1);
    expect(followed.failures[0]).toMatchObject({ reason, status: code });
    await followed.bed.clock.advance(800);
    await until(() => followed.isConnected);
    expect(followed.versions()).toEqual([server.version, server.version]);
    expect(server.seen("list")).toHaveLength(1);
  });

  it("by an error event is asked for a list, after a wait", async () => {
    const followed = follower();
    await followed.follow();
    server.write(eventLine("ERROR", statusOf(500, "InternalError")));
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
    server.once("watch", answers(429, "TooManyRequests", headers));
    followed.begin();
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("throttled");
    await followed.bed.clock.advance(waitMs - 1);
    expect(server.seen("watch")).toHaveLength(1);
    await followed.bed.clock.advance(1);
    await until(() => followed.isConnected);
    expect(server.seen("list")).toHaveLength(1);
  });

  it("by an error event of 429 keeps its place, too", async () => {
    const followed = follower();
    await followed.follow();
    const status = { ...statusOf(429, "TooManyRequests"), details: { retryAfterSeconds: 3 } };
    server.write(eventLine("ERROR", status));
    await followed.failed(1);
    expect(followed.failures[0]).toMatchObject({ reason: "throttled", retryAfterMs: 3_000 });
    await followed.bed.clock.advance(3_000);
    await until(() => followed.isConnected);
    expect(server.seen("list")).toHaveLength(1);
  });

  it("because the CRD is not there yet is asked until it is, every ten seconds at least", async () => {
    const followed = follower();
    const off = server.always(everything, answers(404, "NotFound"));
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
    server.always(everything, answers(404, "NotFound"));
    server.compact();
    await followed.endInGoodOrder();
    await followed.failed(1);
    expect(followed.names()).toEqual(["a"]);
  });

  it("the token is shown a new one", async () => {
    const followed = follower();
    server.always(everything, (request, response) => {
      if (request.headers.authorization === "Bearer first") sendStatus(response, 401, "Unauthorized");
      else if (request.kind === "watch") server.openWatch(request, response);
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
    server.once("watch", (_, response) => void response.writeHead(200).end());
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
    const off = server.always(everything, (_, response) =>
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
    server.once("list", (_, response) =>
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
    expect(server.seen("list", new RegExp(groupsPath))).toHaveLength(1);
  });
});

function metadata(name: string, resourceVersion: string) {
  return { name, namespace: "default", uid: `uid-of-${name}`, resourceVersion };
}
