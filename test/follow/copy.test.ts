import { describe, expect, it } from "vitest";
import { FollowedCopy, type LineEffect } from "../../src/follow/copy.ts";
import { FollowError } from "../../src/follow/follow-error.ts";
import type { FollowLine } from "../../src/model/follow-line.ts";
import { encodeDocument, syncedPath } from "../../src/model/objects/documents.ts";

const dump = (cluster: string): FollowLine => ({ kind: "dump", cluster });
const resume = (cluster: string): FollowLine => ({ kind: "resume", cluster });
const put = (path: string, text = "t"): FollowLine => ({ kind: "put", path, text });
const gone = (path: string): FollowLine => ({ kind: "delete", path });
const commit = (index: number): FollowLine => ({ kind: "commit", index });
const heartbeat = (index: number): FollowLine => ({ kind: "heartbeat", index });

/** A connection of its own: its lines' effects but those that are none. */
function connect(copy: FollowedCopy, ...lines: readonly FollowLine[]): readonly LineEffect[] {
  copy.begin();
  return more(copy, ...lines);
}

function more(copy: FollowedCopy, ...lines: readonly FollowLine[]): readonly LineEffect[] {
  return lines.map((line) => copy.take(line)).filter(({ kind }) => kind !== "none");
}

function served(copy: FollowedCopy): object {
  return { ...copy.served, documents: Object.fromEntries(copy.served?.documents ?? []) };
}

const synced = put(syncedPath);

describe("a followed copy", () => {
  it("is replaced by a dump once its end has come, never by a part of it", () => {
    const copy = new FollowedCopy();
    expect(connect(copy, dump("c"), put("/davit/a"))).toEqual([]);
    expect(copy.served).toBeUndefined();
    expect(more(copy, synced, commit(7))).toEqual([{ kind: "replaced" }]);
    expect(served(copy)).toEqual({ cluster: "c", index: 7, documents: { "/davit/a": "t", [syncedPath]: "t" } });
    expect(connect(copy, dump("c"), put("/davit/b"))).toEqual([]);
    expect(connect(copy, resume("c"), heartbeat(7))).toEqual([{ kind: "current" }]);
    expect(served(copy)).toMatchObject({ documents: { "/davit/a": "t" } });
  });

  it("changes by whole steps; of several changes of one path the last counts", () => {
    const copy = new FollowedCopy();
    connect(copy, dump("c"), put("/davit/a"), commit(1));
    expect(more(copy, put("/davit/b", "1"), gone("/davit/a"))).toEqual([]);
    expect(served(copy)).toMatchObject({ index: 1, documents: { "/davit/a": "t" } });
    expect(more(copy, put("/davit/b", "2"), commit(3))).toEqual([
      {
        kind: "changed",
        changes: [
          { path: "/davit/b", text: "2" },
          { path: "/davit/a", text: undefined },
        ],
      },
    ]);
    expect(served(copy)).toEqual({ cluster: "c", index: 3, documents: { "/davit/b": "2" } });
  });

  it("drops half a step when the connection ends", () => {
    const copy = new FollowedCopy();
    connect(copy, dump("c"), put("/davit/a"), commit(1), put("/davit/b"));
    expect(connect(copy, resume("c"), put("/davit/c"), commit(2))).toEqual([
      { kind: "changed", changes: [{ path: "/davit/c", text: "t" }] },
    ]);
  });

  it("says where it is to go on from", () => {
    const copy = new FollowedCopy();
    expect(copy.place).toBeUndefined();
    connect(copy, dump("c"), commit(1), heartbeat(5));
    expect(copy.place).toMatchObject({ cluster: "c", index: 5 });
    expect(new FollowedCopy({ cluster: "d", index: 2, documents: new Map() }).place).toMatchObject({ cluster: "d" });
  });

  describe("with a finished sync", () => {
    function syncedCopy(): FollowedCopy {
      const copy = new FollowedCopy();
      connect(copy, dump("c"), put("/davit/a"), synced, commit(1));
      return copy;
    }

    const kept = { cluster: "c", index: 1, documents: { "/davit/a": "t", [syncedPath]: "t" } };

    it("stays while a new store has none, and is replaced as soon as that has one", () => {
      const copy = syncedCopy();
      expect(connect(copy, dump("new"), put("/davit/b"), commit(1))).toEqual([{ kind: "withheld" }]);
      expect(served(copy)).toEqual(kept);
      expect(copy.place).toMatchObject({ cluster: "new", index: 1 });
      expect(more(copy, put("/davit/c"), commit(2), heartbeat(3))).toEqual([
        { kind: "withheld" },
        { kind: "withheld" },
      ]);
      expect(served(copy)).toEqual(kept);
      expect(connect(copy, resume("new"), synced, commit(4))).toEqual([{ kind: "replaced" }]);
      expect(served(copy)).toEqual({
        cluster: "new",
        index: 4,
        documents: { "/davit/b": "t", "/davit/c": "t", [syncedPath]: "t" },
      });
    });

    it("stays when its own store loses the sync, with what went before", () => {
      const copy = syncedCopy();
      expect(more(copy, gone(syncedPath), gone("/davit/a"), commit(2))).toEqual([{ kind: "withheld" }]);
      expect(served(copy)).toEqual(kept);
      expect(more(copy, synced, commit(3))).toEqual([{ kind: "replaced" }]);
      expect(served(copy)).toEqual({ cluster: "c", index: 3, documents: { [syncedPath]: "t" } });
    });

    it("goes back to its own store when that comes back instead of the new one", () => {
      const copy = syncedCopy();
      connect(copy, dump("new"), commit(1));
      expect(connect(copy, dump("c"), put("/davit/z"), synced, commit(9))).toEqual([{ kind: "replaced" }]);
      expect(served(copy)).toMatchObject({ cluster: "c", index: 9 });
    });

    it("is replaced at once by another that has one, from disk or not", () => {
      const copy = new FollowedCopy({ cluster: "c", index: 1, documents: new Map([[syncedPath, "t"]]) });
      expect(connect(copy, dump("new"), synced, commit(1))).toEqual([{ kind: "replaced" }]);
      expect(served(copy)).toMatchObject({ cluster: "new" });
    });
  });

  describe("of a complete sync", () => {
    const mark = (complete: boolean) => {
      const at = "2026-01-01T00:00:00.000Z";
      return put(syncedPath, encodeDocument({ source: "directory", at, revision: "r", complete }));
    };

    function completeCopy(): FollowedCopy {
      const copy = new FollowedCopy();
      connect(copy, dump("c"), put("/davit/a"), mark(true), commit(1));
      return copy;
    }

    it("stays while another store's sync is not complete, and is replaced once it is", () => {
      const copy = completeCopy();
      expect(connect(copy, dump("new"), put("/davit/b"), mark(false), commit(1), heartbeat(2))).toEqual([
        { kind: "withheld" },
        { kind: "withheld" },
      ]);
      expect(served(copy)).toMatchObject({ cluster: "c", documents: { "/davit/a": "t" } });
      expect(copy.isWithheld).toBe(true);
      expect(more(copy, put("/davit/c"), mark(true), commit(3))).toEqual([{ kind: "replaced" }]);
      expect(served(copy)).toMatchObject({ cluster: "new", documents: { "/davit/b": "t", "/davit/c": "t" } });
      expect(copy.isWithheld).toBe(false);
    });

    it("stays when its own store says that its sync is not complete any more", () => {
      const copy = completeCopy();
      expect(more(copy, mark(false), gone("/davit/a"), commit(2))).toEqual([{ kind: "withheld" }]);
      expect(served(copy)).toMatchObject({ index: 1, documents: { "/davit/a": "t" } });
    });

    it("replaces one that is not, which replaces one without a sync", () => {
      const copy = new FollowedCopy();
      expect(connect(copy, dump("c"), commit(1))).toEqual([{ kind: "replaced" }]);
      expect(connect(copy, dump("d"), mark(false), commit(1))).toEqual([{ kind: "replaced" }]);
      expect(connect(copy, dump("e"), mark(false), commit(1))).toEqual([{ kind: "replaced" }]);
      expect(connect(copy, dump("f"), mark(true), commit(1))).toEqual([{ kind: "replaced" }]);
      expect(served(copy)).toMatchObject({ cluster: "f" });
    });
  });

  describe("ends the connection for", () => {
    const greeted = [dump("c"), commit(5)];

    it.each([
      { name: "a step before a greeting", lines: [put("/davit/a")] },
      { name: "a heartbeat before a greeting", lines: [heartbeat(1)] },
      { name: "a second greeting", lines: [...greeted, dump("c")] },
      { name: "a resume of what it does not have", lines: [resume("c")] },
      { name: "a delete in a dump", lines: [dump("c"), gone("/davit/a")] },
      { name: "a heartbeat in a dump", lines: [dump("c"), heartbeat(5)] },
      { name: "a heartbeat in a step", lines: [...greeted, put("/davit/a"), heartbeat(6)] },
      { name: "a step into the past", lines: [...greeted, put("/davit/a"), commit(4)] },
      { name: "a heartbeat from the past", lines: [...greeted, heartbeat(4)] },
    ])("$name", ({ lines }) => {
      expect(() => connect(new FollowedCopy(), ...lines)).toThrow(FollowError);
    });

    it("a resume of another cluster", () => {
      const copy = new FollowedCopy({ cluster: "c", index: 1, documents: new Map() });
      expect(() => connect(copy, resume("d"))).toThrow(new FollowError("protocol", "a resume of another cluster"));
    });
  });
});
