import { describe, expect, it } from "vitest";
import { apply, type SingleCommand } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { EventRing } from "../../src/store/watch/event-ring.ts";
import { type Defer, type WatchEnd, WatchHub, type WatchOptions } from "../../src/store/watch/watch-hub.ts";

const set = (path: string, value = ""): SingleCommand => ({ kind: "set", path: storePath(path), value });
const remove = (path: string): SingleCommand => ({ kind: "delete", path: storePath(path), recursive: true });

/** A tree with its hub; `watch` collects the indexes that a watcher gets. */
function scene(maxBytes?: number, later?: Defer) {
  const tree = new Tree();
  const hub = new WatchHub(new EventRing(maxBytes), undefined, later);
  const run = (...commands: readonly SingleCommand[]) => {
    for (const command of commands) for (const change of apply(tree, { atMs: 0, command })) hub.publish(change);
  };
  const watch = (path: string, options: Omit<WatchOptions, "path"> & { readonly takes?: number } = {}) => {
    const seen: number[] = [];
    const ends: WatchEnd[] = [];
    const handle = hub.watch(
      { stream: true, ...options, path: storePath(path) },
      {
        event: ({ node }) => {
          seen.push(node.modifiedIndex);
          return seen.length !== options.takes;
        },
        closed: (end) => ends.push(end),
      },
    );
    return { seen, ends, ...handle };
  };
  return { hub, run, watch };
}

function flowing(watcher: ReturnType<ReturnType<typeof scene>["watch"]>) {
  watcher.resume();
  return watcher;
}

describe("who gets an event", () => {
  const cases = [
    { watch: "/a", recursive: false, change: set("/a"), gets: true },
    { watch: "/a", recursive: false, change: set("/a/b"), gets: false },
    { watch: "/a/b", recursive: false, change: set("/a/b/c"), gets: false },
    { watch: "/a", recursive: true, change: set("/a/b/c"), gets: true },
    { watch: "/a", recursive: true, change: set("/ab"), gets: false },
    { watch: "/", recursive: true, change: set("/a/b"), gets: true },
    { watch: "/", recursive: true, change: set("/a/_b/c"), gets: false },
    { watch: "/a/_b", recursive: true, change: set("/a/_b/c"), gets: true },
    { watch: "/a/_b/c", recursive: false, change: set("/a/_b/c"), gets: true },
  ];
  it.each(cases)("$change.path reaches $watch (recursive: $recursive): $gets", ({ watch, recursive, change, gets }) => {
    const { run, watch: start } = scene();
    const live = flowing(start(watch, { recursive }));
    run(change);
    const replayed = flowing(start(watch, { recursive, waitIndex: 1 }));
    expect(live.seen).toEqual(gets ? [1] : []);
    expect(replayed.seen).toEqual(gets ? [1] : []);
  });

  it("the delete of a directory reaches those who watch what was in it, once", () => {
    const { run, watch } = scene();
    run(set("/d/a/_x"), set("/dx"));
    const watchers = ["/d/a/_x", "/d/a", "/d", "/", "/d/other", "/dx"].map((path) =>
      flowing(watch(path, { recursive: true })),
    );
    run(remove("/d"));
    expect(watchers.map(({ seen }) => seen)).toEqual([[3], [3], [3], [3], [], []]);
  });

  it("an event that `accepts` refuses is passed over", () => {
    const { run, watch } = scene();
    const options = { stream: false, accepts: ({ node }: { node: { value?: string } }) => node.value === "yes" };
    const live = flowing(watch("/a", options));
    run(set("/a", "no"), set("/a", "yes"));
    expect(live.seen).toEqual([2]);
    expect(flowing(watch("/a", { ...options, waitIndex: 1 })).seen).toEqual([2]);
  });
});

describe("where a watch begins", () => {
  it.each([
    { waitIndex: undefined, seen: [4] },
    { waitIndex: 0, seen: [4] },
    { waitIndex: 1, seen: [1, 3, 4] },
    { waitIndex: 2, seen: [3, 4] },
    { waitIndex: 5, seen: [] },
    { waitIndex: 2 ** 64, seen: [] },
  ])("waitIndex $waitIndex sees $seen", ({ waitIndex, seen }) => {
    const { run, watch } = scene();
    run(set("/a"), set("/b"), set("/a"));
    const watcher = flowing(watch("/a", waitIndex === undefined ? {} : { waitIndex }));
    run(set("/a"));
    expect(watcher.seen).toEqual(seen);
  });

  it("what happens between `watch` and `resume` is not missed", () => {
    const { run, watch } = scene();
    const watcher = watch("/a");
    run(set("/a"), set("/b"), set("/a"));
    expect(watcher.seen).toEqual([]);
    expect(flowing(watcher).seen).toEqual([1, 3]);
  });

  it("of a full history the last 1,000 events can be asked for", () => {
    const { run, watch } = scene();
    for (let count = 0; count < 1_005; count++) run(set("/a"));
    expect(flowing(watch("/a", { waitIndex: 6 })).seen).toHaveLength(1_000);
    expect(() => watch("/a", { waitIndex: 5 })).toThrowError(
      expect.objectContaining({
        refusal: "historyCleared",
        causeText: "the requested history has been cleared [6/5]",
        index: 1_005,
      }),
    );
  });

  it("large values shorten the history, but never to nothing", () => {
    const { run, watch } = scene(10_000);
    run(set("/a", "x".repeat(3_000)), set("/b", "x".repeat(3_000)), set("/c", "x".repeat(30_000)));
    expect(() => watch("/a", { waitIndex: 2 })).toThrowError(/cleared \[3\/2\]/);
    expect(flowing(watch("/c", { waitIndex: 3 })).seen).toEqual([3]);
  });
});

describe("a slow watcher", () => {
  it("goes on where it paused, in order and without a gap", () => {
    const { run, watch } = scene();
    const watcher = flowing(watch("/a", { takes: 2 }));
    run(...Array.from({ length: 5 }, () => set("/a")));
    expect(watcher.seen).toEqual([1, 2]);
    watcher.resume();
    expect(watcher.seen).toEqual([1, 2, 3, 4, 5]);
    run(set("/a"));
    expect(watcher.seen).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("is closed when the history has moved on", () => {
    const { hub, run, watch } = scene();
    const watcher = flowing(watch("/a", { takes: 1 }));
    for (let count = 0; count < 1_001; count++) run(set("/a"));
    expect(watcher.ends).toEqual([]);
    run(set("/a"));
    expect(watcher).toMatchObject({ seen: [1], ends: ["overtaken"] });
    expect(hub.count).toBe(0);
  });

  it("is not closed for events that were none of its own while it flowed", () => {
    const { run, watch } = scene();
    const watcher = flowing(watch("/a", { takes: 1 }));
    for (let count = 0; count < 2_000; count++) run(set("/b"));
    run(set("/a"), set("/a"));
    watcher.resume();
    expect(watcher).toMatchObject({ seen: [2_001, 2_002], ends: [] });
  });
});

describe("the end of a watch", () => {
  it("comes after one event unless it streams", () => {
    const { hub, run, watch } = scene();
    const watcher = flowing(watch("/a", { stream: false }));
    expect(hub.count).toBe(1);
    run(set("/a"), set("/a"));
    expect(watcher).toMatchObject({ seen: [1], ends: [] });
    expect(hub.count).toBe(0);
  });

  it("comes for all when the hub stops, and only then is told", () => {
    const { hub, run, watch } = scene();
    const stopped = flowing(watch("/a"));
    const closed = flowing(watch("/a"));
    closed.close();
    closed.close();
    hub.endAll("stopped");
    run(set("/a"));
    expect(stopped).toMatchObject({ seen: [], ends: ["stopped"] });
    expect(closed).toMatchObject({ seen: [], ends: [] });
    expect(hub.count).toBe(0);
  });
});

describe("a change that many watch", () => {
  const count = 200;

  function crowd(options: { readonly takes?: number; readonly stream?: boolean } = {}, maxBytes?: number) {
    const turns: (() => void)[] = [];
    const { hub, run, watch } = scene(maxBytes, (work) => void turns.push(work));
    const watchers = Array.from({ length: count }, () => flowing(watch("/a", options)));
    const turn = () => turns.shift()?.();
    const settle = () => {
      while (turns.length > 0) turn();
    };
    const told = () => watchers.filter(({ seen }) => seen.length > 0).length;
    return { hub, run, watch, watchers, turn, settle, told };
  }

  it("is brought to some dozen of them at a time", () => {
    const { run, turn, told } = crowd();
    run(set("/a"));
    const steps = [told()];
    for (let at = 0; at < 4; at++) {
      turn();
      steps.push(told());
    }
    expect(steps).toEqual([64, 128, 192, 200, 200]);
  });

  it("reaches each once, with what follows behind it, whenever that comes", () => {
    const { run, watchers, turn, settle } = crowd();
    run(set("/a"), set("/a"));
    turn();
    run(set("/a"));
    settle();
    run(set("/a"));
    settle();
    expect(watchers.map(({ seen }) => seen)).toEqual(watchers.map(() => [1, 2, 3, 4]));
  });

  it("ends each wait for one event with that event, whatever follows", () => {
    const { hub, run, watchers, settle } = crowd({ stream: false });
    run(set("/a"), set("/a"));
    expect(hub.count).toBe(0);
    settle();
    expect(watchers.map(({ seen }) => seen)).toEqual(watchers.map(() => [1]));
  });

  it("is not brought to who has left meanwhile", () => {
    const { run, watchers, settle, told } = crowd();
    run(set("/a"));
    for (const { close } of watchers) close();
    settle();
    expect(told()).toBe(64);
  });

  it("is there again for who pauses at it", () => {
    const { run, watchers, settle } = crowd({ takes: 1 });
    run(set("/a"), set("/a"), set("/a"));
    settle();
    expect(watchers.map(({ seen }) => seen)).toEqual(watchers.map(() => [1]));
    for (const { resume } of watchers) resume();
    expect(watchers.map(({ seen }) => seen)).toEqual(watchers.map(() => [1, 2, 3]));
  });

  it("is brought to all before they are told that the store ends", () => {
    const { hub, run, watchers, told } = crowd();
    run(set("/a"));
    hub.endAll("stopped");
    expect(told()).toBe(count);
    expect(watchers.every(({ ends }) => ends.join() === "stopped")).toBe(true);
  });
});
