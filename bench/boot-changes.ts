/**
 * Groups change while machines ask: how long answers take meanwhile, and how old they are. An answer is stale when the
 * store had answered a newer version before the answer was there; its age counts from then.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Stops, startChild } from "./boot-contenders.ts";
import { type Latency, latencyOf } from "./statistics.ts";

export interface BootChanges {
  readonly changes: number;
  readonly answers: number;
  readonly errors: readonly string[];
  /** Milliseconds from when each request was due. */
  readonly latency: Latency;
  readonly staleAnswers: number;
  /** Milliseconds. */
  readonly oldestStale: number;
}

const groups = 1_000;
const changesPerSecond = 100;
const requestsPerSecond = 5_000;

export async function measureBootChanges(durationMs: number): Promise<BootChanges> {
  const directory = await mkdtemp(join(process.env.BENCH_DIR ?? tmpdir(), "davit-bench-changes-"));
  const stops: Stops = [];
  try {
    const davit = startChild("changes-child.ts", stops);
    const machines = startChild("paced-child.ts", stops);
    const port = (await davit.askNumbers({ kind: "start", directory, groups }))("port");
    const ask = { port, groups, perSecond: requestsPerSecond };
    // Both are slow until their code is compiled.
    await machines.ask({ ...ask, durationMs: 2_000 }, () => undefined);
    await davit.ask({ kind: "begin", groups, perSecond: changesPerSecond }, () => undefined);
    const { seen, errors } = await machines.ask({ ...ask, durationMs }, readSeen);
    const changes = await davit.ask({ kind: "end" }, readChanges);
    const ages = seen.map((row) => ageOf(row, changes)).filter((age) => age > 0);
    return {
      changes: [...changes.values()].flat().length,
      answers: seen.length,
      errors,
      latency: latencyOf(seen.map(([, , dueMs, atMs]) => atMs - dueMs)),
      staleAnswers: ages.length,
      oldestStale: Math.max(0, ...ages),
    };
  } finally {
    await Promise.all(stops.map((stop) => stop()));
    await rm(directory, { recursive: true });
  }
}

type Seen = readonly [machine: number, version: number, dueMs: number, atMs: number];
type Change = readonly [version: number, atMs: number];

/** For how long there had been a newer version; 0 when there was none. */
function ageOf([machine, version, , atMs]: Seen, changes: ReadonlyMap<number, readonly Change[]>): number {
  const newer = changes.get(machine)?.find(([later, changedMs]) => later > version && changedMs < atMs);
  return newer === undefined ? 0 : atMs - newer[1];
}

function readSeen(answer: unknown): { readonly seen: readonly Seen[]; readonly errors: readonly string[] } {
  const { seen, errors } = Object(answer);
  const rows = rowsOf(seen).map(([machine = 0, version = 0, dueMs = 0, atMs = 0]): Seen => {
    return [machine, version, dueMs, atMs];
  });
  return { seen: rows, errors: Array.isArray(errors) ? errors.map(String) : ["the machines said nothing"] };
}

/** By machine, in the order in which they were made. */
function readChanges(answer: unknown): ReadonlyMap<number, readonly Change[]> {
  const byMachine = new Map<number, Change[]>();
  for (const [machine = 0, version = 0, atMs = 0] of rowsOf(Object(answer).changes)) {
    byMachine.set(machine, [...(byMachine.get(machine) ?? []), [version, atMs]]);
  }
  return byMachine;
}

function rowsOf(value: unknown): readonly (readonly number[])[] {
  return Array.isArray(value) ? value.map((row) => (Array.isArray(row) ? row.map(Number) : [])) : [];
}
