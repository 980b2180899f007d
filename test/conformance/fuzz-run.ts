/**
 * The differential fuzzer: random sequences of operations, sent to davit and to etcd side by side, until as many
 * operations were compared as asked for, or one showed a difference. Sequence n has the seed of the run plus n, so that
 * each can be run again as the first of another run.
 */

import type { TestServer } from "../helpers/keys-servers.ts";
import { Lane, type Pair } from "./fuzz-lane.ts";
import { type Operation, randomOperations } from "./fuzz-operations.ts";
import { Random } from "./fuzz-random.ts";
import { type Outcome, Sequence } from "./fuzz-sequence.ts";
import { shrink } from "./fuzz-shrink.ts";
import { FuzzSummary } from "./fuzz-summary.ts";

export interface FuzzOptions {
  readonly seed: number;
  readonly operations: number;
  /** How many sequences run at once, each on servers of its own: they spend half of their time waiting for ends. */
  readonly lanes: number;
  readonly start: Pair<() => Promise<TestServer>>;
  readonly shrinkLimitMs: number;
}

export interface FuzzResult {
  readonly summary: FuzzSummary;
  /** What differed first, and the shortest sequence that shows it; undefined when nothing did. */
  readonly difference: string | undefined;
}

const operationsPerSequence = 1_000;

interface Found {
  readonly seed: number;
  readonly operations: readonly Operation[];
  readonly outcome: Extract<Outcome, { kind: "different" }>;
}

export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const summary = new FuzzSummary();
  let left = options.operations;
  let nextSeed = options.seed;
  let found: Found | undefined;
  const runSequences = async (lane: Lane) => {
    while (left > 0 && found === undefined) {
      const count = Math.min(left, operationsPerSequence);
      const seed = nextSeed;
      left -= count;
      nextSeed += 1;
      const operations = randomOperations(new Random(seed), count);
      const outcome = await new Sequence(lane, summary).run(operations);
      summary.sequences += 1;
      if (outcome.kind === "late") summary.late += 1;
      if (outcome.kind === "different") found ??= { seed, operations, outcome };
    }
  };
  const lanes: Lane[] = [];
  try {
    for (let count = 0; count < options.lanes; count++) lanes.push(await Lane.start(options.start));
    await Promise.all(lanes.map(runSequences));
    const [lane] = lanes;
    const difference = found && lane ? await explain(lane, found, options.shrinkLimitMs) : undefined;
    return { summary, difference };
  } finally {
    await Promise.all(lanes.map((lane) => lane.stop()));
  }
}

async function explain(lane: Lane, { seed, operations, outcome }: Found, limitMs: number): Promise<string> {
  let report = outcome.report;
  const shows = async (some: readonly Operation[]) => {
    const again = await new Sequence(lane, new FuzzSummary()).run(some);
    if (again.kind === "different") report = again.report;
    return again.kind === "different";
  };
  const needed = operations.slice(0, outcome.at + 1);
  // Without watches there is no history to fill, and an attempt takes a tenth of the time.
  const requests = needed.filter(({ kind }) => kind === "request");
  const some = (await shows(requests)) ? requests : needed;
  const isShown = some === requests || (await shows(needed));
  const shortest = isShown ? await shrink(some, { shows, limitMs }) : needed.slice(-20);
  return [
    `FUZZ_SEED=${seed} FUZZ_OPERATIONS=${operations.length} shows a difference`,
    report,
    isShown ? "The shortest sequence that shows it:" : "It did not come again; the last operations before it were:",
    ...shortest.map(lineOf),
  ].join("\n");
}

function lineOf(operation: Operation): string {
  switch (operation.kind) {
    case "request":
      return [operation.method, operation.target, operation.contentType, operation.form].filter(Boolean).join(" ");
    case "watch":
      return `watch ${operation.target}`;
    case "unwatch":
      return `unwatch ${operation.nth}`;
    case "settle":
      return "settle";
  }
}
