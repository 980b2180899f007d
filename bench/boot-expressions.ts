/**
 * What expressions cost a request: 5,000 machines of one Group that lists them beside 5,000 that each have a Group, and
 * the list beside 1,000 Groups of patterns. As in `boot-speed.ts` all take turns, and ratios are taken within a round.
 */

import { bootContender, type Contender, type Stops, startBoot, startChild } from "./boot-contenders.ts";
import { type Measure, measureAll, medians, paired, type SpeedRow } from "./boot-speed.ts";
import { type Shape, shapes } from "./machines.ts";

const machines = 5_000;

export interface ShapeRow extends SpeedRow {
  /** Processor time of a request where each machine has a Group, to that of this one: more is better. */
  readonly cpuRatio: number;
}

export async function measureExpressions(options: {
  readonly rounds: number;
  readonly roundMs: number;
}): Promise<readonly ShapeRow[]> {
  const stops: Stops = [];
  try {
    const load = startChild("load-child.ts", stops);
    const contenders = new Map<Shape, Contender>();
    for (const shape of shapes) {
      const server = await startBoot(machines, stops, shape);
      contenders.set(shape, { ...bootContender("ipxe", server), name: names[shape] });
    }
    const found = await measureAll(load, [...contenders.values()], options);
    const [labels = []] = [...found.values()];
    const cpu = ({ cpuMicroseconds }: Measure) => cpuMicroseconds;
    return [...found].map(([{ name }, measures]) => ({
      ...medians(measures),
      name,
      cpuRatio: paired(labels, measures, cpu),
    }));
  } finally {
    await Promise.all(stops.map((stop) => stop()));
  }
}

const names: Readonly<Record<Shape, string>> = {
  labels: "5,000 Groups of one machine each",
  list: "one Group that lists 5,000 machines",
  patterns: "the same beside 1,000 Groups of serial Prefix",
};
