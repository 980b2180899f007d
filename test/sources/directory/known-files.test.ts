import { describe, expect, it } from "vitest";
import { KnownFiles } from "../../../src/sources/directory/known-files.ts";
import type { ListedFile } from "../../../src/sources/directory/list-files.ts";
import type { Definition, FileContent } from "../../../src/sources/directory/read-file.ts";

const read: FileContent = { definitions: [], problems: [], ignored: [] };

/** What a file says that defines these Groups. */
function defining(...names: readonly string[]): FileContent {
  const place = { file: "a.yaml", at: { line: 1, column: 1 }, document: 1, path: [] };
  const definitions = names.map((name): Definition => {
    const id = { kind: "Group", namespace: "default", name } as const;
    return { kind: "refused", name: id, origin: "a.yaml, document 1 (line 1)", text: "", place };
  });
  return { ...read, definitions };
}

interface Version {
  readonly path?: string;
  readonly sizeBytes?: number;
  /** Wall clock; the run begins at 1,000,000. */
  readonly modifiedMs: number;
  /** As `modifiedMs` unless given. */
  readonly changedMs?: number;
  readonly inode?: number;
}

/** Files as a run of davit sees them: both clocks begin at its start, and a test moves them. */
class Run {
  readonly files = new KnownFiles();
  nowMs = 1_000_000;
  monotonicMs = 0;
  #listed: readonly ListedFile[] = [];
  readonly #unanswered: ListedFile[] = [];
  /** What the disk has. */
  digest = "1";
  read = read;
  /** What files define whose paths are here, instead of `read`. */
  readonly reads = new Map<string, FileContent>();
  /** Of a file that is not answered. */
  slowPath = "";

  pass(ms: number): void {
    this.nowMs += ms;
    this.monotonicMs += ms;
  }

  list(...versions: readonly Version[]): void {
    this.#listed = versions.map(({ path = "a.yaml", sizeBytes = 100, modifiedMs, changedMs, inode = 1 }) => {
      const signature = [sizeBytes, modifiedMs, changedMs ?? modifiedMs, inode, 1].join(":");
      return { path, label: path, sizeBytes, modifiedMs, signature };
    });
    this.look();
  }

  /** A look as the source does it; returns the paths that were read. */
  look(): readonly string[] {
    this.files.see(
      { files: this.#listed, directories: new Map(), unreadable: [], problems: [] },
      { nowMs: this.nowMs, monotonicMs: this.monotonicMs },
    );
    const requests = this.files.due(this);
    for (const request of requests) {
      if (request.path === this.slowPath) {
        this.#unanswered.push(request);
        continue;
      }
      const isUnchanged = request.knownDigest === this.digest;
      const version = { signature: request.signature, digest: this.digest, ...(isUnchanged && { isUnchanged }) };
      this.files.take(request, { ...(this.reads.get(request.path) ?? this.read), ...version }, this);
    }
    this.files.settle(this);
    return requests.map(({ path }) => path);
  }

  /** Answers what was asked first of the files that were not answered. */
  answerLate(): void {
    const request = this.#unanswered.shift();
    if (request === undefined) throw new Error("Nothing waits for an answer");
    this.files.take(request, { ...this.read, signature: request.signature, digest: this.digest }, this);
  }

  /** How many files there are whose newest version does not count in full. */
  get unsettledCount(): number {
    return this.files.looked.filter(({ before }) => before !== undefined).length;
  }

  /** Looks whenever a look is due until everything counts; returns after how long it does. */
  rest(): number {
    const startMs = this.monotonicMs;
    for (let waitMs = this.files.waitMs(this); waitMs !== undefined; waitMs = this.files.waitMs(this)) {
      this.pass(waitMs);
      this.look();
    }
    return this.monotonicMs - startMs;
  }
}

/** A run that knows a file of 100 bytes since long. */
function knowing(): Run {
  const run = new Run();
  run.list({ modifiedMs: 0 });
  run.rest();
  run.pass(60_000);
  run.look();
  return run;
}

describe("a version counts", () => {
  it("at once when it is 2 s old at first sight, as a finished file that is moved in", () => {
    const run = knowing();
    run.list({ modifiedMs: run.nowMs - 2_000, inode: 2 });
    expect(run.rest()).toBe(100);
  });

  it("after 2 s when it was just written, and is read a second time then", () => {
    const run = knowing();
    run.digest = "2";
    run.list({ modifiedMs: run.nowMs });
    run.pass(100);
    expect([run.look(), run.unsettledCount]).toEqual([["a.yaml"], 1]);
    run.pass(1_899);
    expect([run.look(), run.unsettledCount]).toEqual([[], 1]);
    run.pass(1);
    expect([run.look(), run.unsettledCount]).toEqual([["a.yaml"], 0]);
    expect(run.files.waitMs(run)).toBeUndefined();
  });

  it("2 s after the last of several writes", () => {
    const run = knowing();
    for (let write = 0; write < 8; write++) {
      run.digest = `piece ${write}`;
      run.list({ modifiedMs: run.nowMs, sizeBytes: 100 + write });
      run.pass(250);
      run.look();
      expect(run.unsettledCount).toBe(1);
    }
    expect(run.rest()).toBe(1_750);
  });

  it("2 s after it was seen, not sooner, when its time is almost 2 s ago", () => {
    const run = knowing();
    run.list({ modifiedMs: run.nowMs - 1_999 });
    expect(run.rest()).toBe(2_000);
  });

  it("2 s after it was seen when its time is in the future, which another machine's clock may say", () => {
    const run = knowing();
    run.list({ modifiedMs: run.nowMs + 3_600_000 });
    expect(run.rest()).toBe(2_000);
  });

  it("2 s after it was seen when the wall clock was set meanwhile, so that it only seems to be old", () => {
    const run = knowing();
    run.nowMs += 3_600_000;
    run.list({ modifiedMs: run.nowMs - 3_600_000 });
    expect(run.rest()).toBe(2_000);
  });

  it("only once its time is 2 s ago when the wall clock was set back meanwhile", () => {
    const run = knowing();
    run.list({ modifiedMs: run.nowMs });
    run.pass(1_500);
    run.nowMs -= 1_000;
    run.look();
    expect(run.rest()).toBe(1_500);
  });

  it("2 s later when its bytes became others under the same times", () => {
    const run = knowing();
    run.digest = "2";
    run.list({ modifiedMs: run.nowMs });
    run.pass(100);
    run.look();
    run.digest = "3";
    expect(run.rest()).toBe(1_900 + 2_000);
  });
});

describe("a file that was renamed after its last write", () => {
  const renamed = (run: Run) => ({ modifiedMs: run.nowMs - 50, changedMs: run.nowMs - 40 });

  it("counts at once if it is another file, whatever its size", () => {
    const run = knowing();
    run.list({ ...renamed(run), inode: 2, sizeBytes: 99 });
    expect(run.rest()).toBe(100);
  });

  it("counts after 2 s if it is the known file, whose times a program may have set", () => {
    const run = knowing();
    run.list(renamed(run));
    expect(run.rest()).toBe(2_000);
  });
});

describe("a file that became smaller in place", () => {
  it("counts after 2 s if it has all objects that it had", () => {
    const run = knowing();
    run.list({ modifiedMs: run.nowMs, sizeBytes: 99 });
    expect(run.rest()).toBe(2_000);
  });

  /** A run that knows a file with two Groups, and what follows lacks one of them. */
  function lacking(): Run {
    const run = new Run();
    run.read = defining("a", "b");
    run.list({ modifiedMs: 0 });
    run.rest();
    run.pass(60_000);
    run.look();
    run.read = defining("a");
    run.digest = "2";
    return run;
  }

  it("counts after 10 s if it lacks an object, and its age, too", () => {
    const run = lacking();
    run.list({ modifiedMs: run.nowMs - 9_999 });
    expect(run.rest()).toBe(10_000);
    run.list({ modifiedMs: run.nowMs - 10_000 });
    expect(run.rest()).toBe(100);
  });

  it("counts at once if it was finished elsewhere", () => {
    const run = lacking();
    run.list({ modifiedMs: run.nowMs - 2_000, inode: 2 });
    expect(run.rest()).toBe(100);
  });

  it("counts after 2 s if another file has the object now", () => {
    const run = lacking();
    run.reads.set("b.yaml", defining("b"));
    run.list({ modifiedMs: run.nowMs }, { modifiedMs: run.nowMs, path: "b.yaml" });
    expect(run.rest()).toBe(2_000);
  });
});

describe("a file that is gone", () => {
  it("is kept for 2 s, for it may be about to be replaced", () => {
    const run = knowing();
    run.list();
    expect([run.files.looked.length, run.unsettledCount]).toEqual([1, 1]);
    expect(run.rest()).toBe(2_000);
    expect(run.files.looked).toEqual([]);
  });

  it("and comes back counts as a change of what it was", () => {
    const run = knowing();
    run.list();
    run.pass(100);
    run.list({ modifiedMs: run.nowMs, sizeBytes: 99, inode: 2 });
    expect(run.rest()).toBe(2_000);
  });
});

describe("files that were written one after the other", () => {
  /** Writes a file every so often, looks, and returns how many count at the end. */
  function write(count: number, everyMs: number): { readonly run: Run; readonly counting: number } {
    const run = knowing();
    const written = Array.from({ length: count }, (_, at) => ({
      path: `${at}.yaml`,
      modifiedMs: run.nowMs + at * everyMs,
    }));
    for (let at = 1; at <= count; at++) {
      run.list({ modifiedMs: 0 }, ...written.slice(0, at));
      run.pass(everyMs);
    }
    run.look();
    return { run, counting: count - run.unsettledCount };
  }

  it("count together, an old one that was moved in after another one's write, too", () => {
    const run = knowing();
    const written = { modifiedMs: run.nowMs, path: "written.yaml" };
    run.list({ modifiedMs: 0 }, written);
    run.pass(500);
    run.list({ modifiedMs: 0 }, written, { modifiedMs: 0, path: "moved.yaml" });
    run.pass(100);
    run.look();
    expect(run.unsettledCount).toBe(2);
    expect(run.rest()).toBe(1_400);
  });

  it("count together", () => {
    const { run } = write(5, 400);
    const counting = [run.unsettledCount];
    for (let step = 0; step < 5; step++) {
      run.pass(400);
      run.look();
      counting.push(run.unsettledCount);
    }
    expect(counting).toEqual([5, 5, 5, 5, 0, 0]);
  });

  it("do not wait for each other for ever", () => {
    expect(write(70, 200).counting).toBeGreaterThan(10);
  });

  it("wait for one that takes long to be read, for 10 s at most", () => {
    const run = knowing();
    run.slowPath = "large.yaml";
    run.list({ modifiedMs: 0 }, { modifiedMs: 0, path: "large.yaml" }, { modifiedMs: 0, path: "small.yaml" });
    const counting: number[] = [];
    for (const ms of [100, 9_800, 101]) {
      run.pass(ms);
      run.look();
      counting.push(run.unsettledCount);
    }
    expect([run.files.isReading, counting]).toEqual([true, [1, 1, 0]]);
  });

  it("are read once before davit's first list, even one that changes whenever it was read", () => {
    const run = knowing();
    run.slowPath = "large.yaml";
    const isNew: boolean[] = [];
    const read = (modifiedMs: number) => {
      run.list({ modifiedMs: 0 }, { modifiedMs, path: "large.yaml" });
      run.look();
      isNew.push(run.files.isReadingNew);
    };
    read(0);
    read(run.nowMs);
    run.answerLate();
    run.pass(100);
    read(run.nowMs);
    expect([run.files.isReading, isNew]).toEqual([true, [true, true, false]]);
  });
});
