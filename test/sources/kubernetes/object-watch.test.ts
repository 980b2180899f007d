import { describe, expect, it } from "vitest";
import { until } from "./client-under-test.ts";
import { eventLine } from "./fake-api-server.ts";
import { groupsPath, useWatches, type WatchUnderTest } from "./watch-under-test.ts";

const { suite, follower, group } = useWatches();

describe("following a resource", () => {
  it("lists, tells what is there, and watches from that version on", async () => {
    group("a");
    group("b");
    const followed = follower();
    await followed.follow();
    expect(followed.changes).toEqual([["set a", "set b"]]);
    expect(followed.listedCount).toBe(1);
    expect(followed.watch.isSynced).toBe(true);
    const [watch] = suite.server.seen("watch");
    expect(watch?.path).toBe(groupsPath);
    expect(Object.fromEntries(watch?.query ?? [])).toEqual({
      watch: "1",
      allowWatchBookmarks: "true",
      resourceVersion: suite.server.version,
      timeoutSeconds: "300",
    });
    // Nobody wants a list of what a cache of the API server holds: it may be older than what was seen.
    expect(Object.fromEntries(suite.server.seen("list")[0]?.query ?? [])).toEqual({ limit: "500" });
  });

  it("tells what is added, changed and deleted, and holds it", async () => {
    group("a");
    const followed = follower();
    await followed.follow();
    group("b");
    await until(() => followed.changes.length === 2);
    group("a", { generation: 2 });
    await until(() => followed.changes.length === 3);
    suite.server.delete("Group", "b");
    await until(() => followed.changes.length === 4);
    expect(followed.changes.slice(1)).toEqual([["set b"], ["set a"], ["deleted b"]]);
    expect(followed.names()).toEqual(["a"]);
  });

  it("reads an object once for each of its versions, whatever is listed again", async () => {
    group("a");
    group("b");
    const followed = follower();
    await followed.follow();
    expect(followed.readCount).toBe(2);
    group("b", { generation: 2 });
    await until(() => followed.readCount === 3);
    followed.watch.relist();
    await until(() => followed.listedCount === 2);
    expect(followed.readCount).toBe(3);
    expect(followed.changes).toHaveLength(2);
  });

  it("asks for one object by its name, and for metadata alone, where told to", async () => {
    suite.server.put({ kind: "Group", name: "a", content: { spec: { big: true } } });
    group("b");
    const followed = follower({}, { name: "a", metadataOnly: true });
    await followed.follow();
    expect(followed.names()).toEqual(["a"]);
    const [list] = suite.server.seen("list");
    const [watch] = suite.server.seen("watch");
    expect(list?.headers.accept).toBe("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    expect(watch?.headers.accept).toBe("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    expect(watch?.query.get("fieldSelector")).toBe("metadata.name=a");
  });

  it("lists 10,000 objects in pages of 500, and tells them in one step", async () => {
    for (let count = 0; count < 10_000; count++) group(`g${count}`);
    const followed = follower();
    await followed.follow();
    expect(suite.server.seen("list")).toHaveLength(20);
    expect(followed.changes.map(({ length }) => length)).toEqual([10_000]);
    expect(followed.names()).toHaveLength(10_000);
  });

  it("comes again at once after an end in good order, from the last version, bookmarks included", async () => {
    const followed = follower();
    await followed.follow();
    group("a");
    await until(() => followed.names().length === 1);
    suite.server.put({ kind: "Profile", name: "other" });
    await followed.passTime();
    suite.server.put({ kind: "Profile", name: "later" });
    suite.server.endWatches();
    await followed.asked("watch", 2);
    expect(followed.versions()).toEqual(["100", "102"]);
    expect(suite.server.seen("list")).toHaveLength(1);
    expect(followed.failures).toEqual([]);
  });

  it("takes a stream of bookmarks alone for a healthy one, however long it is", async () => {
    const followed = follower({ silenceMs: 150_000 });
    await followed.follow();
    for (let minute = 0; minute < 5; minute++) {
      suite.server.put({ kind: "Profile", name: "other" });
      const heardAtMs = followed.watch.heardAtMs;
      await followed.bed.clock.advance(60_000 - 1_000);
      suite.server.bookmark();
      await until(() => followed.watch.heardAtMs > heardAtMs);
    }
    expect(followed.failures).toEqual([]);
    expect(suite.server.openWatches).toBe(1);
  });

  it("asks for shorter watches where a shorter silence counts, since bookmarks do not come sooner", async () => {
    const followed = follower({ silenceMs: 5_000 });
    await followed.follow();
    expect(suite.server.seen("watch")[0]?.query.get("timeoutSeconds")).toBe("4");
  });

  it("ends a watch that goes on past the end that it asked for", async () => {
    const followed = follower({ silenceMs: 1_000_000 });
    await followed.follow();
    await followed.bed.clock.advance(330_000);
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("overdue");
  });
});

describe("the bytes of a watch", () => {
  const text = eventLine("ADDED", object("größe-一", "200")) + eventLine("ADDED", object("b", "201"));

  it("mean the same wherever they are cut, in characters, too", async () => {
    const bytes = Buffer.from(text);
    const followed = follower();
    await followed.follow();
    for (const byte of bytes) {
      suite.server.write(Uint8Array.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => followed.names().length === 2);
    expect(followed.names()).toEqual(["b", "größe-一"]);
  });

  it.each([
    { name: "line ends of Windows", bytes: text.replaceAll("\n", "\r\n") },
    { name: "empty lines", bytes: text.replaceAll("\n", "\n\n\r\n") },
    { name: "several events in one chunk", bytes: text },
    { name: "a line of 1 MB", bytes: eventLine("ADDED", { ...object("a", "200"), spec: "x".repeat(1e6) }) + text },
  ])("may have $name", async ({ bytes }) => {
    const followed = follower();
    await followed.follow();
    suite.server.write(bytes);
    await until(() => followed.names().includes("b"));
    expect(followed.failures).toEqual([]);
    expect(followed.names()).toContain("größe-一");
  });

  it.each([
    { name: "a line beyond the limit", bytes: `${"x".repeat(2_000)}` },
    { name: "no JSON", bytes: "garbage\n" },
    { name: "no UTF-8", bytes: Uint8Array.of(0x7b, 0xff, 0x0a) },
    { name: "JSON that is no event", bytes: '{"type":"ADDED"}\n' },
    { name: "an unknown type", bytes: eventLine("MOVED", object("c", "300")) },
    {
      name: "an object without a version",
      bytes: eventLine("ADDED", { metadata: { name: "c", namespace: "default" } }),
    },
    { name: "a bookmark without a version", bytes: eventLine("BOOKMARK", { metadata: {} }) },
  ])("that have $name end it: what came before counts, and everything is listed", async ({ bytes }) => {
    const followed = follower({ maxLineBytes: 1_000 });
    await followed.follow();
    group("a");
    await until(() => followed.names().length === 1);
    suite.server.write(bytes);
    await followed.failed(1);
    expect(followed.failures[0]?.reason).toBe("protocol");
    expect(followed.names()).toEqual(["a"]);
    await followed.bed.clock.advance(800);
    await followed.asked("watch", 2);
    expect(suite.server.seen("list")).toHaveLength(2);
    expect(followed.names()).toEqual(["a"]);
  });
});

describe("an object under the name of another", () => {
  it("is told as replaced when a watch shows it", async () => {
    group("a", { uid: "one" });
    const followed = follower();
    await followed.follow();
    group("a", { uid: "two" });
    await until(() => followed.changes.length === 2);
    expect(followed.changes[1]).toEqual(["replaced a"]);
    expect(followed.watch.get("default", "a")?.uid).toBe("two");
  });

  it("is told as replaced when a list shows it", async () => {
    group("a", { uid: "one" });
    const followed = follower();
    await followed.follow();
    suite.server.cut();
    await followed.failed(1);
    suite.server.delete("Group", "a");
    group("a", { uid: "two" });
    await followed.bed.clock.advance(800);
    await until(() => followed.changes.length === 2);
    expect(followed.changes[1]).toEqual(["replaced a"]);
  });
});

describe("stopping", () => {
  const states: readonly { name: string; reach: (followed: WatchUnderTest) => Promise<void> }[] = [
    { name: "before it was started", reach: () => Promise.resolve() },
    {
      name: "while a list is not answered",
      reach: async (followed) => {
        suite.server.once("list", () => {});
        followed.begin();
        await followed.asked("list", 1);
      },
    },
    {
      name: "while the second page is not answered",
      reach: async (followed) => {
        for (let count = 0; count < 3; count++) group(`g${count}`);
        suite.server.once("list", (request, response) => {
          suite.server.once("list", () => {});
          const items = [group("x")];
          response.end(
            JSON.stringify({ metadata: { resourceVersion: "1", continue: "2" }, items, request: request.path }),
          );
        });
        followed.begin();
        await followed.asked("list", 2);
      },
    },
    {
      name: "while a watch is not answered",
      reach: async (followed) => {
        suite.server.once("watch", () => {});
        followed.begin();
        await followed.asked("watch", 1);
      },
    },
    { name: "while it watches", reach: (followed) => followed.follow() },
    {
      name: "in the middle of a line",
      reach: async (followed) => {
        await followed.follow();
        suite.server.write('{"type":"ADD');
      },
    },
    {
      name: "while it waits after a failure",
      reach: async (followed) => {
        suite.server.once("list", (_, response) => response.destroy());
        followed.begin();
        await followed.failed(1);
      },
    },
  ];

  it.each(states)("$name leaves no timer, no socket, and nothing that is told", async ({ reach }) => {
    const followed = follower();
    await reach(followed);
    await followed.stop();
    await followed.stop();
    await until(() => suite.server.openSockets === 0);
    expect(followed.bed.clock.sleeping).toBe(0);
    const told = [followed.changes.length, followed.listedCount, suite.server.requests.length];
    group("late");
    await followed.bed.clock.advance(600_000);
    expect([followed.changes.length, followed.listedCount, suite.server.requests.length]).toEqual(told);
  });
});

function object(name: string, resourceVersion: string) {
  return { metadata: { name, namespace: "default", uid: `uid-of-${name}`, resourceVersion } };
}
