/**
 * A store that is opened again is the one that was left, byte for byte: nodes, history, indexes, identity. Whatever was
 * asked of it, wherever its snapshots and segments end, however the life before ended, and whether it began as an empty
 * directory or as one that an older davit wrote.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { nextTurn } from "../../src/lib/slices.ts";
import type { Submission } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { Store } from "../../src/store/store.ts";
import { segmentHeadBytes } from "../../src/store/wal/record.ts";
import { anySubmission } from "../helpers/any-command.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import type { FaultFiles } from "../helpers/fault-files.ts";
import { dataDirectory, memoryFiles, openStore } from "../helpers/test-store.ts";

type Step =
  | { readonly kind: "submit"; readonly command: Submission; readonly turns: number }
  | { readonly kind: "pass"; readonly durationMs: number }
  | { readonly kind: "restart"; readonly after: "stop" | "kill" | "power cut" };

/** What meets the keys of the older directory, and its lease. */
const onOldKeys: readonly Submission[] = [
  { kind: "update", path: storePath("/app/1"), value: "new", ttlSeconds: 2 },
  { kind: "compareAndSwap", path: storePath("/app/2"), value: "again", expected: { value: "swapped" } },
  { kind: "delete", path: storePath("/app"), recursive: true },
  { kind: "createInOrder", path: storePath("/leases"), value: "x" },
  { kind: "set", path: storePath("/leases/x"), value: "z", ttlSeconds: 1 },
];

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    arbitrary: fc.record({
      kind: fc.constant("submit"),
      command: fc.oneof(
        { arbitrary: anySubmission, weight: 5 },
        { arbitrary: fc.constantFrom(...onOldKeys), weight: 1 },
      ),
      turns: fc.nat(4),
    }),
    weight: 10,
  },
  {
    arbitrary: fc.record({ kind: fc.constant("pass"), durationMs: fc.constantFrom(500, 2_000, 4_000_000) }),
    weight: 2,
  },
  {
    arbitrary: fc.record({ kind: fc.constant("restart"), after: fc.constantFrom("stop", "kill", "power cut") }),
    weight: 1,
  },
);

/** A life of a store, and what goes on to the next one. */
interface Life {
  readonly store: Store;
  readonly files: FaultFiles;
  readonly clock: FakeClock;
}

interface Sizes {
  readonly records: number;
  readonly segmentBytes: number;
}

async function begin(files: FaultFiles, nowMs: number, { records, segmentBytes }: Sizes): Promise<Life> {
  const clock = new FakeClock(nowMs);
  const store = await openStore(files, {
    clock,
    maxSegmentBytes: segmentHeadBytes + segmentBytes,
    snapshotInterval: { records, bytes: 2 ** 30 },
  });
  return { store, files, clock };
}

function stateOf(store: Store): string {
  const nodes = [...store.dump()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const { storeIndex, raftIndex } = store.indexes;
  const { clusterId, memberId } = store.identity;
  return JSON.stringify(
    { nodes, events: store.events, bytes: store.bytes, storeIndex, raftIndex, clusterId, memberId, run: store.run },
    undefined,
    1,
  );
}

/** Ends a life, and compares what the next one begins with. */
async function restarted(life: Life, after: "stop" | "kill" | "power cut", sizes: Sizes): Promise<Life> {
  const { store, files, clock } = life;
  // What is due is logged first: otherwise the next life does so.
  await clock.advance(1);
  const term = store.indexes.raftTerm;
  // Where something is to end, a clean stop logs a record that changes nothing.
  if (after === "stop") await store.stop();
  const before = stateOf(store);
  const next = await begin(after === "power cut" ? files.afterCrash() : files.reopened(), clock.nowMs(), sizes);
  await store.stop();
  expect(stateOf(next.store)).toBe(before);
  expect(next.store.indexes.raftTerm).toBeGreaterThan(term);
  return next;
}

async function take(life: Life, step: Step, sizes: Sizes): Promise<Life> {
  if (step.kind === "restart") return await restarted(life, step.after, sizes);
  if (step.kind === "pass") {
    await life.clock.advance(step.durationMs);
    return life;
  }
  await life.store.submit(step.command).catch((error: unknown) => expect(error).toBeInstanceOf(StoreError));
  // A snapshot that is under way gets so far.
  for (let turn = 0; turn < step.turns; turn++) await nextTurn();
  return life;
}

/** The directory of format 1 that is kept for ever, on a disk in memory. */
function olderDirectory(): FaultFiles {
  const files = memoryFiles();
  const folder = join(import.meta.dirname, "data-v1");
  for (const name of readdirSync(folder)) {
    files.damage(`${dataDirectory}/${name}`, () => readFileSync(join(folder, name)));
  }
  return files;
}

it.each([
  { name: "an empty directory", makeFiles: memoryFiles, nowMs: 0 },
  { name: "the directory of format 1", makeFiles: olderDirectory, nowMs: 1_700_000_100_000 },
])("a replay is what the life before was, from $name on", async ({ makeFiles, nowMs }) => {
  const anySizes = fc.record({
    records: fc.integer({ min: 1, max: 20 }),
    segmentBytes: fc.integer({ min: 1, max: 900 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 60 }), anySizes, async (steps, sizes) => {
      let life = await begin(makeFiles(), nowMs, sizes);
      for (const step of [...steps, { kind: "restart", after: "stop" } as const]) life = await take(life, step, sizes);
      await life.store.stop();
    }),
  );
});
