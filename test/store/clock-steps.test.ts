/**
 * Keys end when docs/internals/store.md says, whatever becomes of the machine's clock: a small model of that rule is compared
 * with a store whose wall clock is set back and forth while it runs and between two runs.
 */

import fc from "fast-check";
import { expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import type { FaultFiles } from "../helpers/fault-files.ts";
import { memoryFiles, openStore } from "../helpers/test-store.ts";

/** What lies below it does not age between two runs. */
const agelessRoot = "/ageless";
const names = ["/a", "/b", "/c", `${agelessRoot}/d`] as const;
const anyStepMs = fc.constantFrom(-86_400_000, -5_000, -1, 1, 5_000, 86_400_000);

type Step =
  | { readonly kind: "set"; readonly name: string; readonly ttlSeconds: number | undefined }
  | { readonly kind: "pass" | "wall clock steps" | "restart"; readonly ms: number };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("set"),
    name: fc.constantFrom(...names),
    ttlSeconds: fc.constantFrom(undefined, 1, 2, 10, 100_000),
  }),
  fc.record({ kind: fc.constant("pass"), ms: fc.constantFrom(1, 500, 1_000, 9_000, 50_000_000) }),
  fc.record({ kind: fc.constantFrom("wall clock steps", "restart"), ms: fc.oneof(fc.constant(0), anyStepMs) }),
);

interface Ending {
  readonly ttlSeconds: number;
  /** By the clock of the run. */
  dueAtMs: number;
}

/** The rule: a run takes the wall clock at its start, and then counts durations. Between two runs no time passes. */
class Model {
  readonly #keys = new Map<string, Ending | undefined>();
  #nowMs: number;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  set(name: string, ttlSeconds: number | undefined): void {
    const expiresAtMs = this.#nowMs + (ttlSeconds ?? 0) * 1_000;
    this.#keys.set(name, ttlSeconds === undefined ? undefined : { ttlSeconds, dueAtMs: expiresAtMs });
  }

  pass(ms: number): void {
    this.#nowMs += ms;
    for (const [name, ending] of this.#keys) {
      if (ending !== undefined && ending.dueAtMs <= this.#nowMs) this.#keys.delete(name);
    }
  }

  restart(wallMs: number): void {
    const beforeMs = this.#nowMs;
    this.#nowMs = wallMs;
    for (const [name, ending] of this.#keys) {
      if (ending === undefined) continue;
      const wholeMs = wallMs + ending.ttlSeconds * 1_000;
      ending.dueAtMs = name.startsWith(agelessRoot) ? wholeMs : wallMs + ending.dueAtMs - beforeMs;
    }
    this.pass(0);
  }

  /** What each key shows; nothing for one that has ended. */
  get shown(): Readonly<Record<string, number | "no end">> {
    return Object.fromEntries([...this.#keys].map(([name, ending]) => [name, ending?.dueAtMs ?? "no end"]));
  }
}

function shownBy(store: Store): Readonly<Record<string, number | "no end">> {
  const found: Record<string, number | "no end"> = {};
  for (const name of names) {
    try {
      found[name] = store.get(storePath(name)).node.expiresAtMs ?? "no end";
    } catch (error) {
      expect(error).toBeInstanceOf(StoreError);
    }
  }
  return found;
}

/** A store and its model, on a clock that anyone may set. */
class Scene {
  readonly #model: Model;
  #clock: FakeClock;
  #files: FaultFiles;
  #store: Store;

  private constructor(store: Store, clock: FakeClock, files: FaultFiles) {
    this.#store = store;
    this.#clock = clock;
    this.#files = files;
    this.#model = new Model(clock.nowMs());
  }

  static async open(): Promise<Scene> {
    const [clock, files] = [new FakeClock(), memoryFiles()];
    return new Scene(await openStore(files, { clock, agelessRoot }), clock, files);
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case "set": {
        const { name, ttlSeconds } = step;
        const path = storePath(name);
        await this.#store.submit({ kind: "set", path, value: "x", ...(ttlSeconds !== undefined && { ttlSeconds }) });
        this.#model.set(name, ttlSeconds);
        return;
      }
      case "pass":
        await this.#clock.advance(step.ms);
        this.#model.pass(step.ms);
        return;
      case "wall clock steps":
        this.#clock.stepWallClock(step.ms);
        return;
      case "restart":
        await this.stop();
        this.#files = this.#files.reopened();
        this.#clock = new FakeClock(this.#clock.nowMs() + step.ms);
        this.#store = await openStore(this.#files, { clock: this.#clock, agelessRoot });
        this.#model.restart(this.#clock.nowMs());
    }
  }

  compare(): void {
    expect(shownBy(this.#store)).toEqual(this.#model.shown);
  }

  get index(): number {
    return this.#store.indexes.storeIndex;
  }

  stop(): Promise<void> {
    return this.#store.stop();
  }
}

it("keys end by the rule and never return, however the clock is set in a run and between runs", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 40 }), async (steps) => {
      const scene = await Scene.open();
      for (const step of steps) {
        const { index } = scene;
        await scene.take(step);
        scene.compare();
        expect(scene.index).toBeGreaterThanOrEqual(index);
      }
      await scene.stop();
    }),
    { numRuns: 200 },
  );
});

it("a run begun in 1970 ends no lease at the restart, nor at those behind it, and none lives for decades", async () => {
  const [right, wrong] = [Date.UTC(2026, 0, 1), 5_000];
  let files = memoryFiles();
  const path = storePath("/lease");
  const write = (store: Store, name: string) =>
    store.submit({ kind: "set", path: storePath(name), value: "x", ...(name === path && { ttlSeconds: 60 }) });
  const shownTtl = (store: Store) => store.get(path).node.ttlSeconds;

  const first = await openStore(files, { clock: new FakeClock(wrong) });
  await write(first, path);
  await first.stop();
  // Seconds later, by a clock that was set meanwhile; then crashes and a clean stop, each behind another clock.
  for (const [startMs, ending] of [
    [right, "crash"],
    [right + 3_000, "stop"],
    [wrong, "crash"],
    [right - 86_400_000, "stop"],
    [right, "stop"],
  ] as const) {
    files = files.reopened();
    const clock = new FakeClock(startMs);
    const store = await openStore(files, { clock });
    expect(shownTtl(store)).toBeGreaterThan(50);
    expect(shownTtl(store)).toBeLessThanOrEqual(60);
    expect(store.get(path).node.expiresAtMs).toBe(startMs + 60_000);
    await write(store, "/other");
    if (ending === "stop") await store.stop();
  }
  const clock = new FakeClock(wrong);
  const last = await openStore(files.reopened(), { clock });
  await clock.advance(59_000);
  expect(shownTtl(last)).toBe(1);
  await clock.advance(1_000);
  expect(() => last.get(path)).toThrow(StoreError);
  await last.stop();
});

it("what a lease has lived counts in every later run, from a snapshot, too", async () => {
  for (const every of [1, 1_000]) {
    let files = memoryFiles();
    const path = storePath("/lease");
    const snapshotInterval = { records: every, bytes: 2 ** 30 };
    for (const [startMs, leftSeconds] of [
      [5_000, 60],
      [Date.UTC(2026, 0, 1), 50],
      [9_000, 40],
      [Date.UTC(2030, 0, 1), 30],
    ] as const) {
      const clock = new FakeClock(startMs);
      const store = await openStore(files, { clock, snapshotInterval });
      if (leftSeconds === 60) await store.submit({ kind: "set", path, value: "x", ttlSeconds: 60 });
      expect(store.get(path).node.ttlSeconds).toBe(leftSeconds);
      await clock.advance(10_000);
      // The crash comes right behind a record.
      await store.submit({ kind: "set", path: storePath("/other"), value: "x" });
      await clock.advance(0);
      files = files.reopened();
    }
  }
});
