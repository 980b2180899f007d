/**
 * What an answer of the boot service costs, at 10 groups and at many, beside a bare `node:http` server that sends the
 * same bytes and beside matchbox. Other work on the machine disturbs processor time less than throughput.
 */

import { setTimeout } from "node:timers/promises";
import type { MeasuredFigure } from "../tools/benchmarks/figures.ts";
import {
  bootContender,
  type Contender,
  type Stops,
  startBare,
  startBoot,
  startChild,
  startMatchboxes,
  threadOptions,
  withStops,
} from "./boot-contenders.ts";
import type { Child } from "./child.ts";
import type { Endpoint } from "./machines.ts";
import type { AddFigure } from "./run.ts";
import { takeTurns } from "./turns.ts";

export interface Pace {
  readonly rounds: number;
  readonly roundMs: number;
}

export interface BootSpeedOptions extends Pace {
  readonly endpoints: readonly Endpoint[];
  readonly threads: number;
  /** A matchbox binary. */
  readonly matchbox: string | undefined;
}

interface Speed {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
}

/** The others are compared with the first one. */
const groupCounts = [10, 1_000, 10_000, 100_000];

/** V8 goes on compiling for some seconds, which counts as processor time: davit has more code than the bare server. */
const warmUpMs = 3_000;

/** Between two turns. */
const restMs = 100;

export async function measureBootSpeed(options: BootSpeedOptions, add: AddFigure): Promise<void> {
  await withStops(async (stops) => {
    const fields = await startFields(options, stops);
    const speedOf = await measureAll([...fields.values()].flat(), options, stops);
    for (const [endpoint, [few, ...others]] of fields) {
      for (const other of others) if (few !== undefined) add(figureOf(endpoint, few, other, speedOf));
    }
  });
}

/** Compares davit with few groups with another server, or davit with more groups with davit with few. */
function figureOf(
  endpoint: Endpoint,
  few: Contender,
  other: Contender,
  speedOf: (contender: Contender) => readonly Speed[],
): MeasuredFigure {
  const isDavit = other.name.startsWith("davit");
  const [own, peer] = isDavit ? [other, few] : [few, other];
  const atLeast = isDavit ? 0.9 : other.name === "matchbox" ? 5 : 0.65;
  const isHeadline = endpoint === "ipxe" && /bare|matchbox|100,000/.test(other.name);
  const headline = `requests of \`/ipxe\`, ${own.name.replace("davit, ", "").replace("groups", "Groups")}`;
  return {
    what: `\`/${endpoint}\`, ${own.name.replace("davit, ", "")}`,
    peer: peer.name,
    ...compared(speedOf(own), speedOf(peer)),
    goal: { of: "ratio", atLeast },
    ...(isHeadline && { headline }),
  };
}

/** The contenders of each endpoint: davit at each size, then bare, then matchbox. */
async function startFields(
  { endpoints, matchbox, threads }: BootSpeedOptions,
  stops: Stops,
): Promise<ReadonlyMap<Endpoint, readonly Contender[]>> {
  const servers = [];
  for (const groups of groupCounts) servers.push(await startBoot(groups, { stops, options: threadOptions(threads) }));
  const peer = matchbox === undefined ? undefined : await startMatchboxes(matchbox, groupCounts[0] ?? 10, stops);
  const fields = new Map<Endpoint, readonly Contender[]>();
  for (const endpoint of endpoints) {
    const [model, ...others] = servers.map((server) => bootContender(endpoint, server));
    if (model === undefined) continue;
    const peers = [await startBare(model, stops), ...(peer === undefined ? [] : [peer(endpoint)])];
    fields.set(endpoint, [model, ...others, ...peers]);
  }
  return fields;
}

/** Measures all contenders in turns, after each has warmed up. */
export async function measureAll(
  contenders: readonly Contender[],
  { rounds, roundMs }: Pace,
  stops: Stops,
): Promise<(contender: Contender) => readonly Speed[]> {
  const load = startChild("load-child.ts", stops);
  for (const contender of contenders) await measure(load, contender, warmUpMs);
  return await takeTurns(contenders, rounds, (contender) => measure(load, contender, roundMs));
}

async function measure(load: Child, contender: Contender, durationMs: number): Promise<Speed> {
  const { port, targets } = contender;
  // The previous contender may still collect garbage and write its log, which would slow this one.
  await setTimeout(restMs);
  const before = await contender.cpuMicroseconds();
  const numberOf = await load.askNumbers({ port, targets, durationMs });
  const cpuMicroseconds = ((await contender.cpuMicroseconds()) - before) / numberOf("count");
  return { perSecond: numberOf("count") / numberOf("seconds"), cpuMicroseconds };
}

/** Compares requests per second and processor time. */
export function compared(
  own: readonly Speed[],
  peer: readonly Speed[],
): Pick<MeasuredFigure, "unit" | "davit" | "beside"> & Required<Pick<MeasuredFigure, "cpu">> {
  const sides = (of: (speed: Speed) => number) => ({ davit: own.map(of), beside: peer.map(of) });
  return {
    unit: "/s",
    ...sides(({ perSecond }) => perSecond),
    cpu: { unit: "us", ...sides(({ cpuMicroseconds }) => cpuMicroseconds) },
  };
}
