/** Who takes part in the boot benchmarks: each is a server in a process of its own. */

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
  /** What a group took when it was loaded. */
  readonly bytesPerGroup: number;
}

/** Processes to end afterwards. */
export type Stops = (() => Promise<void>)[];

export async function startBoot(groups: number, stops: Stops, shape: Shape = "labels"): Promise<BootServer> {
  const child = startChild("boot-child.ts", stops);
  const numberOf = await child.askNumbers({ kind: "start", groups, shape });
  return { groups, child, port: numberOf("port"), bytesPerGroup: numberOf("bytesPerGroup") };
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
  const question = { kind: "start", contentType: answer.headers.get("content-type"), body: await answer.text() };
  const numberOf = await child.askNumbers(question);
  return { ...model, name: "bare node:http", port: numberOf("port"), cpuMicroseconds: () => cpuOf(child) };
}

export async function startMatchboxes(
  binary: string,
  {
    endpoints,
    groups,
    stops,
  }: { readonly endpoints: readonly Endpoint[]; readonly groups: number; readonly stops: Stops },
): Promise<ReadonlyMap<Endpoint, Contender>> {
  const { port, pid, stop } = await startMatchbox(binary, groups);
  stops.push(stop);
  const name = `matchbox, ${groups.toLocaleString("en")} groups`;
  const cpuMicroseconds = async () => cpuMicrosecondsOf(pid);
  return new Map(
    endpoints.map((endpoint) => [endpoint, { name, port, targets: benchTargets(endpoint, groups), cpuMicroseconds }]),
  );
}

export function startChild(file: string, stops: Stops): Child {
  const child = Child.start(file);
  stops.push(() => child.stop());
  return child;
}

async function cpuOf(child: Child): Promise<number> {
  return (await child.askNumbers({ kind: "cpu" }))("microseconds");
}
