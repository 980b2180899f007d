/** Who takes part in the boot benchmarks: each is a server in a process of its own. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Child } from "./child.ts";
import { benchTargets, type Endpoint, type Shape } from "./machines.ts";
import { startMatchbox } from "./matchbox.ts";
import { cpuMicrosecondsOf } from "./process-usage.ts";

/** A server that is asked. */
export interface Contender {
  readonly name: string;
  readonly port: number;
  readonly targets: readonly string[];
  /** Processor time of its process so far. */
  cpuMicroseconds(): Promise<number>;
}

/** davit's boot service with some number of groups. */
export interface BootServer {
  readonly groups: number;
  readonly child: Child;
  readonly port: number;
}

/** Functions that end processes and remove directories. */
export type Stops = (() => Promise<void>)[];

/** Calls `use` with a list for such functions, and calls them afterwards, the last one first. */
export async function withStops<Result>(use: (stops: Stops) => Promise<Result>): Promise<Result> {
  const stops: Stops = [];
  try {
    return await use(stops);
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

/** `BENCH_DIR` names a directory on the disk to measure; default: the system's temporary one. */
export async function temporaryDirectory(stops: Stops): Promise<string> {
  const directory = await mkdtemp(join(process.env.BENCH_DIR ?? tmpdir(), "davit-bench-"));
  stops.push(() => rm(directory, { recursive: true }));
  return directory;
}

export interface BootServerOptions {
  readonly stops: Stops;
  readonly shape?: Shape;
  /** Further options of `davit serve`. */
  readonly options?: readonly string[];
}

export async function startBoot(groups: number, { stops, ...how }: BootServerOptions): Promise<BootServer> {
  const directory = await temporaryDirectory(stops);
  const child = startChild("boot-child.ts", stops);
  const numberOf = await child.askNumbers({ kind: "start", directory, groups, ...how });
  return { groups, child, port: numberOf("port") };
}

/** Returns the options for this many boot threads. */
export function threadOptions(threads: number): readonly string[] {
  return threads > 1 ? ["--boot-threads", String(threads)] : [];
}

/** davit as one endpoint's contender. */
export function bootContender(endpoint: Endpoint, { groups, child, port }: BootServer): Contender {
  const name = `davit, ${groups.toLocaleString("en")} groups`;
  return { name, port, targets: benchTargets(endpoint, groups), cpuMicroseconds: () => cpuOf(child) };
}

/** The yardstick: `node:http` and nothing else, with the bytes of a real answer. */
export async function startBare(model: Contender, stops: Stops): Promise<Contender> {
  const child = startChild("bare-child.ts", stops);
  const answer = await fetch(`http://127.0.0.1:${model.port}${model.targets[0]}`);
  if (answer.status !== 200) throw new Error(`davit answered ${answer.status}`);
  const question = { kind: "start", contentType: answer.headers.get("content-type"), body: await answer.text() };
  const numberOf = await child.askNumbers(question);
  return { ...model, name: "bare node:http", port: numberOf("port"), cpuMicroseconds: () => cpuOf(child) };
}

/** Starts matchbox with this many of the same groups as files. @returns it as the contender of each endpoint. */
export async function startMatchboxes(
  binary: string,
  groups: number,
  stops: Stops,
): Promise<(endpoint: Endpoint) => Contender> {
  const { port, pid, stop } = await startMatchbox(binary, groups);
  stops.push(stop);
  const cpuMicroseconds = async () => cpuMicrosecondsOf(pid);
  return (endpoint) => ({ name: "matchbox", port, targets: benchTargets(endpoint, groups), cpuMicroseconds });
}

export function startChild(file: string, stops: Stops): Child {
  const child = Child.start(file);
  stops.push(() => child.stop());
  return child;
}

async function cpuOf(child: Child): Promise<number> {
  return (await child.askNumbers({ kind: "cpu" }))("microseconds");
}
