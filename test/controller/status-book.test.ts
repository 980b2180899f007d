import { describe, expect, it } from "vitest";
import { StatusBook } from "../../src/controller/status/status-book.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import type { ObjectName, ObjectStatus, StatusSink } from "../../src/model/objects/source.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { silentLog } from "../helpers/test-store.ts";

/** A sink whose writes end when the test says so. */
class SlowSink implements StatusSink {
  readonly begun: string[] = [];
  readonly #ends: ((error?: Error) => void)[] = [];
  forgotten = 0;

  write({ name }: ObjectName, { observedGeneration }: ObjectStatus): Promise<void> {
    this.begun.push(`${name} ${observedGeneration}`);
    return new Promise((resolve, reject) => {
      this.#ends.push((error) => (error === undefined ? resolve() : reject(error)));
    });
  }

  forget(): void {
    this.forgotten++;
  }

  /** Ends the oldest write. */
  async end(error?: Error): Promise<void> {
    this.#ends.shift()?.(error);
    await turn();
  }

  async endAll(): Promise<void> {
    while (this.#ends.length > 0) await this.end();
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const profile = (name: string): ObjectName => ({ kind: "Profile", namespace: "default", name });

function status(observedGeneration: number, isReady = true, reason = "Ready"): ObjectStatus {
  const condition = { type: "Ready", status: isReady ? "True" : "False", reason, message: "" } as const;
  return { observedGeneration, conditions: [condition] };
}

function makeBook() {
  const sink = new SlowSink();
  const clock = new FakeClock();
  const metrics = createMetrics("test");
  const book = new StatusBook({ statusSink: sink, clock, log: silentLog, metrics });
  book.start();
  return { book, sink, clock, metrics };
}

describe("StatusBook", () => {
  it("writes what differs, and nothing twice", async () => {
    const { book, sink } = makeBook();
    for (const generation of [1, 1, 2]) {
      book.show(profile("a"), status(generation));
      await turn();
      await sink.endAll();
    }
    expect(sink.begun).toEqual(["a 1", "a 2"]);
  });

  it("writes one status of an object at a time, and of those that wait the last", async () => {
    const { book, sink } = makeBook();
    book.show(profile("a"), status(1));
    await turn();
    for (const generation of [2, 3, 4]) book.show(profile("a"), status(generation));
    await turn();
    expect(sink.begun).toEqual(["a 1"]);
    await sink.end();
    expect(sink.begun).toEqual(["a 1", "a 4"]);
  });

  it("has eight writes under way at most", async () => {
    const { book, sink } = makeBook();
    for (let at = 0; at < 20; at++) book.show(profile(`p${at}`), status(1));
    await turn();
    expect(sink.begun).toHaveLength(8);
    await sink.end();
    expect(sink.begun).toHaveLength(9);
    await sink.endAll();
    expect(sink.begun).toHaveLength(20);
  });

  it("writes again later what could not be written, in its newest form", async () => {
    const { book, sink, clock } = makeBook();
    book.show(profile("a"), status(1));
    await turn();
    await sink.end(new Error("conflict"));
    await clock.advance(5);
    await sink.end(new Error("conflict"));
    expect(sink.begun).toEqual(["a 1", "a 1"]);
    book.show(profile("a"), status(2));
    await turn();
    await sink.end();
    await clock.advance(10);
    // The retry finds the status that was written meanwhile, and its sink knows that one.
    expect(sink.begun).toEqual(["a 1", "a 1", "a 2", "a 2"]);
  });

  it("drops what is forgotten before it is written", async () => {
    const { book, sink } = makeBook();
    book.show(profile("a"), status(1));
    book.forget(profile("a"));
    book.forget(profile("never told"));
    await turn();
    expect(sink.begun).toEqual([]);
    expect(sink.forgotten).toBe(1);
  });

  it("shows the sink everything again when it is asked to", async () => {
    const { book, sink } = makeBook();
    book.show(profile("a"), status(1));
    await turn();
    await sink.endAll();
    book.showAgain();
    await turn();
    expect(sink.begun).toEqual(["a 1", "a 1"]);
  });

  it("lets other work in between, although the sink ends each write immediately", async () => {
    let written = 0;
    const write = async () => void written++;
    const options = { statusSink: { write, forget: () => {} }, clock: new FakeClock(), log: silentLog };
    const book = new StatusBook({ ...options, metrics: createMetrics("test") });
    book.start();
    const count = 10_000;
    for (let at = 0; at < count; at++) book.show(profile(`p${at}`), status(1));
    const turns: number[] = [];
    while (written < count) {
      await turn();
      turns.push(written);
    }
    expect(turns[0]).toBeLessThan(count / 10);
    expect(turns.length).toBeGreaterThan(10);
    await book.stop();
  });

  it("counts who is ready", async () => {
    const { book, metrics } = makeBook();
    book.show(profile("a"), status(1));
    book.show(profile("b"), status(1, false));
    book.show(profile("a"), status(2, false));
    book.forget(profile("b"));
    book.show({ ...profile("c"), kind: "Group" }, status(1, false, "Held"));
    const text = await metrics.text();
    expect(text).toContain('davit_resources{kind="Profile",ready="true"} 0\n');
    expect(text).toContain('davit_resources{kind="Profile",ready="false"} 1\n');
    expect(text).toContain('davit_resources{kind="Group",ready="true"} 0\n');
    expect(text).toContain('davit_resources{kind="Group",ready="false"} 0\n');
    expect(text).toContain('davit_resources{kind="Group",ready="held"} 1\n');
  });

  it("ends the writes under way when it stops, and leaves no timer", async () => {
    const { book, sink, clock } = makeBook();
    for (let at = 0; at < 20; at++) book.show(profile(`p${at}`), status(1));
    await turn();
    const stopped = book.stop();
    await sink.endAll();
    await stopped;
    expect(sink.begun.length).toBeLessThan(20);
    book.show(profile("late"), status(1));
    await turn();
    expect(sink.begun).not.toContain("late 1");
    expect(clock.sleeping).toBe(0);
  });
});
