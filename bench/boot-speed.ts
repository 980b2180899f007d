/**
 * What an answer of the boot service costs, at 10 groups and at many, beside a bare `node:http` server that sends the
 * same bytes and beside matchbox. Rounds are interleaved and ratios are taken within a round, so that a noisy machine
 * disturbs all alike. Processor time per request counts the server's own only, and depends less on what else runs.
 */

import { setTimeout } from "node:timers/promises";
import {
  type BootServer,
  bootContender,
  type Contender,
  type Stops,
  startBare,
  startBoot,
  startChild,
  startMatchboxes,
} from "./boot-contenders.ts";
import type { Child } from "./child.ts";
import type { Endpoint } from "./machines.ts";
import { median, pairedRatio } from "./statistics.ts";

export interface BootSpeedOptions {
  readonly endpoints: readonly Endpoint[];
  /** Numbers of groups; the first one is what others are compared with. */
  readonly groups: readonly number[];
  /** A matchbox binary. */
  readonly matchbox: string | undefined;
  readonly rounds: number;
  readonly roundMs: number;
}

export interface Measure {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** One line of the table: medians. */
export interface SpeedRow extends Measure {
  readonly name: string;
}

/** Throughput and processor time of one contender beside another's. */
export interface RatioRow {
  readonly what: string;
  readonly target: number;
  readonly throughput: number;
  /** Processor time: of the other one to its own, so that more is better here, too. */
  readonly cpu: number;
}

export interface MemoryRow {
  readonly groups: number;
  readonly loadedBytes: number;
  /** After every machine asked for everything. */
  readonly servedBytes: number;
}

export interface BootSpeed {
  readonly speeds: ReadonlyMap<Endpoint, readonly SpeedRow[]>;
  readonly ratios: readonly RatioRow[];
  readonly memory: readonly MemoryRow[];
}

/** V8 goes on compiling for some seconds, which counts as processor time: davit has more code than the bare server. */
const warmUpMs = 3_000;

/** Between two turns. */
const restMs = 100;

export async function measureBootSpeed(options: BootSpeedOptions): Promise<BootSpeed> {
  const stops: Stops = [];
  try {
    const load = startChild("load-child.ts", stops);
    const servers: BootServer[] = [];
    for (const groups of options.groups) servers.push(await startBoot(groups, stops));
    const fields = await startFields(options, servers, stops);
    const found = await measureAll(load, [...fields.values()].flat(), options);
    const of = (contender: Contender) => found.get(contender) ?? [];
    const rows = (field: readonly Contender[]) => field.map((one) => ({ name: one.name, ...medians(of(one)) }));
    return {
      speeds: new Map([...fields].map(([endpoint, field]) => [endpoint, rows(field)])),
      ratios: [...fields].flatMap(([endpoint, field]) => ratiosOf(endpoint, field, of)),
      memory: await memoryOf(servers),
    };
  } finally {
    await Promise.all(stops.map((stop) => stop()));
  }
}

/** The contenders of each endpoint: davit at each size, then bare, then matchbox. */
async function startFields(
  { endpoints, matchbox, groups: [groups = 10] }: BootSpeedOptions,
  servers: readonly BootServer[],
  stops: Stops,
): Promise<ReadonlyMap<Endpoint, readonly Contender[]>> {
  const peers = matchbox === undefined ? new Map() : await startMatchboxes(matchbox, { endpoints, groups, stops });
  const fields = new Map<Endpoint, readonly Contender[]>();
  for (const endpoint of endpoints) {
    const own = servers.map((server) => bootContender(endpoint, server));
    const [model] = own;
    if (model === undefined) continue;
    const peer = peers.get(endpoint);
    fields.set(endpoint, [...own, await startBare(model, stops), ...(peer === undefined ? [] : [peer])]);
  }
  return fields;
}

/** Lets all of them take turns. */
export async function measureAll(
  load: Child,
  contenders: readonly Contender[],
  { rounds, roundMs }: Pick<BootSpeedOptions, "rounds" | "roundMs">,
): Promise<ReadonlyMap<Contender, readonly Measure[]>> {
  const found = new Map(contenders.map((contender): [Contender, Measure[]] => [contender, []]));
  for (const contender of contenders) await measure(load, contender, warmUpMs);
  for (let round = 0; round < rounds; round++) {
    // Another one begins each round: what runs first finds a cooler machine.
    const turns = [...contenders.slice(round % contenders.length), ...contenders.slice(0, round % contenders.length)];
    for (const contender of turns) found.get(contender)?.push(await measure(load, contender, roundMs));
  }
  return found;
}

async function measure(load: Child, contender: Contender, durationMs: number): Promise<Measure> {
  const { port, targets } = contender;
  // The previous contender may still collect garbage and write its log, which would slow this one.
  await setTimeout(restMs);
  const before = await contender.cpuMicroseconds();
  const numberOf = await load.askNumbers({ port, targets, durationMs });
  const cpuMicroseconds = ((await contender.cpuMicroseconds()) - before) / numberOf("count");
  return {
    perSecond: numberOf("count") / numberOf("seconds"),
    cpuMicroseconds,
    p50Ms: numberOf("p50"),
    p99Ms: numberOf("p99"),
  };
}

export function medians(measures: readonly Measure[]): Measure {
  const of = (read: (measure: Measure) => number) => median(measures.map(read));
  return {
    perSecond: of(({ perSecond }) => perSecond),
    cpuMicroseconds: of(({ cpuMicroseconds }) => cpuMicroseconds),
    p50Ms: of(({ p50Ms }) => p50Ms),
    p99Ms: of(({ p99Ms }) => p99Ms),
  };
}

function ratiosOf(
  endpoint: Endpoint,
  field: readonly Contender[],
  of: (contender: Contender) => readonly Measure[],
): readonly RatioRow[] {
  const [few, ...others] = field;
  if (few === undefined) return [];
  return others.map((other) => {
    const isDavit = other.name.startsWith("davit");
    const [some, beside] = isDavit ? [other, few] : [few, other];
    const target = isDavit ? 0.9 : other.name.startsWith("bare") ? 0.65 : 5;
    return {
      what: `/${endpoint}: ${some.name} beside ${beside.name}`,
      target,
      throughput: paired(of(some), of(beside), ({ perSecond }) => perSecond),
      cpu: paired(of(beside), of(some), ({ cpuMicroseconds }) => cpuMicroseconds),
    };
  });
}

export function paired(
  some: readonly Measure[],
  others: readonly Measure[],
  read: (measure: Measure) => number,
): number {
  return pairedRatio(some.map(read), others.map(read));
}

/** Of those with so many groups that the rest does not matter. */
async function memoryOf(servers: readonly BootServer[]): Promise<readonly MemoryRow[]> {
  const rows: MemoryRow[] = [];
  for (const { groups, child, bytesPerGroup } of servers.filter(({ groups }) => groups >= 10_000)) {
    const served = (await child.askNumbers({ kind: "memory", groups }))("bytesPerGroup");
    rows.push({ groups, loadedBytes: bytesPerGroup, servedBytes: bytesPerGroup + served });
  }
  return rows;
}
