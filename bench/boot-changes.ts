/**
 * Groups change while machines ask: how long answers take meanwhile, and how old they are. An answer is stale when the
 * store had answered a newer version before the answer was there; its age counts from then.
 */

import { percentile } from "../tools/benchmarks/statistics.ts";
import { startChild, temporaryDirectory, threadOptions, withStops } from "./boot-contenders.ts";
import type { AddFigure } from "./run.ts";

export const pace = { Groups: 1_000, "changes/s": 100, "requests/s": 5_000 };

/** The time of an answer begins when its request was due. @throws {Error} if a machine gets no answer. */
export async function measureBootChanges(
  { durationMs, threads }: { readonly durationMs: number; readonly threads: number },
  add: AddFigure,
): Promise<void> {
  await withStops(async (stops) => {
    const directory = await temporaryDirectory(stops);
    const davit = startChild("changes-child.ts", stops);
    const machines = startChild("paced-child.ts", stops);
    const { Groups: groups } = pace;
    const start = { kind: "start", directory, groups, options: threadOptions(threads) };
    const port = (await davit.askNumbers(start))("port");
    const ask = { port, groups, perSecond: pace["requests/s"] };
    // Both are slow until their code is compiled.
    await machines.ask({ ...ask, durationMs: 2_000 }, () => undefined);
    await davit.ask({ kind: "begin", groups, perSecond: pace["changes/s"] }, () => undefined);
    const seen = await machines.ask({ ...ask, durationMs }, readSeen);
    const changes = await davit.ask({ kind: "end" }, readChanges);
    const ages = seen.map((row) => ageOf(row, changes)).filter((age) => age > 0);
    const latenciesMs = seen.map(([, , dueMs, atMs]) => atMs - dueMs);
    const most = (atMost: number) => ({ of: "davit", atMost }) as const;
    add({ what: "changes", unit: "", davit: [[...changes.values()].flat().length] });
    add({ what: "answers", unit: "", davit: [seen.length] });
    add({ what: "half of the answers within", unit: "ms", davit: [percentile(latenciesMs, 50)] });
    add({ what: "99 % within", unit: "ms", davit: [percentile(latenciesMs, 99)], goal: most(20) });
    add({ what: "stale answers", unit: "", davit: [ages.length] });
    add({ what: "the oldest was stale by", unit: "ms", davit: [Math.max(0, ...ages)], goal: most(250) });
  });
}

type Seen = readonly [machine: number, version: number, dueMs: number, atMs: number];
type Change = readonly [version: number, atMs: number];

/** For how long there had been a newer version; 0 when there was none. */
function ageOf([machine, version, , atMs]: Seen, changes: ReadonlyMap<number, readonly Change[]>): number {
  const newer = changes.get(machine)?.find(([later, changedMs]) => later > version && changedMs < atMs);
  return newer === undefined ? 0 : atMs - newer[1];
}

function readSeen(answer: unknown): readonly Seen[] {
  const { seen, errors } = Object(answer);
  if (!Array.isArray(errors) || errors.length > 0) throw new Error(`machines got no answer: ${errors}`);
  return rowsOf(seen).map(([machine = 0, version = 0, dueMs = 0, atMs = 0]) => [machine, version, dueMs, atMs]);
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
