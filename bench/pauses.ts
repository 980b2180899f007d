/**
 * `make bench-pauses`: how long other requests wait while the store does something large. `davit serve` runs with a
 * million keys of 100 bytes; one process sends GET and PUT at a steady rate, another one reads listings of all keys. A
 * latency counts from when the request was to be sent.
 *
 *   npm run bench:pauses -- --keys 1000000 --rounds 3 --interval-ms 2
 */

import { parseArgs } from "node:util";
import { imageProgram } from "../test/helpers/image-program.ts";
import { percentile } from "../tools/benchmarks/statistics.ts";
import { type DavitProcess, startDavit } from "../tools/davit-process.ts";
import { temporaryDirectory, withStops } from "./boot-contenders.ts";
import { Child } from "./child.ts";
import { residentBytesOf } from "./process-usage.ts";
import { requestText, sendAll } from "./raw-client.ts";
import { type AddFigure, runBenchmark } from "./run.ts";
import { measureTurns } from "./store-pauses.ts";
import { manifests } from "./store-peers.ts";

const quietMs = 10_000;
// A snapshot is taken when 64 MiB were logged; these are a little more.
const fillerCount = 1_056;
const fillerForm = `value=${"z".repeat(64 * 1024)}`;

interface Scene {
  readonly davit: DavitProcess;
  readonly probe: Child;
  readonly reader: Child;
  readonly add: AddFigure;
}

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "3" },
    "interval-ms": { type: "string", default: "2" },
  },
});
const keys = Number(values.keys);
const rounds = Number(values.rounds);
const intervalMs = Number(values["interval-ms"]);

await runBenchmark({ name: "pauses", settings: { rounds, keys, "ms between requests": intervalMs }, measure: pauses });
await runBenchmark({ name: "turns", settings: { rounds }, measure: (add) => measureTurns(rounds, add) });

async function pauses(add: AddFigure): Promise<void> {
  await withStops(async (stops) => {
    const dataDir = await temporaryDirectory(stops);
    await fill(dataDir);
    const startMs = performance.now();
    const davit = await startDavit({ ...imageProgram(), manifests, dataDir });
    stops.push(async () => void (await davit.stop()));
    add({ what: "start", unit: "s", davit: [(performance.now() - startMs) / 1_000] });
    add({ what: "memory then", unit: "MiB", davit: [residentBytesOf(davit.pid) / 2 ** 20] });
    await withChildren(davit, add);
    add({ what: "memory at the end", unit: "MiB", davit: [residentBytesOf(davit.pid) / 2 ** 20] });
  });
}

async function fill(directory: string): Promise<void> {
  const child = Child.start("pauses-child.ts");
  await child.ask({ kind: "fill", directory, keys }, () => undefined);
  await child.stop();
}

async function withChildren(davit: DavitProcess, add: AddFigure): Promise<void> {
  const [probe, reader] = [Child.start("pauses-child.ts"), Child.start("pauses-child.ts")];
  const scene = { davit, probe, reader, add };
  try {
    // The start may have begun a snapshot.
    await probed(scene, () => pause(quietMs));
    const listing = "/v2/keys/many?recursive=true";
    await measure(scene, "nothing", async () => () => pause(quietMs));
    await measure(scene, "a listing", async () => () => list(scene, listing));
    await measure(scene, "a sorted one", async () => () => list(scene, `${listing}&sorted=true`));
    await measure(scene, "a snapshot", () => beginSnapshot(scene));
  } finally {
    await Promise.all([probe.stop(), reader.stop()]);
  }
}

/** @returns how long it took, in seconds. */
type Work = () => Promise<number>;

/** What GET and PUT took in each round, and the work itself. */
async function measure(scene: Scene, name: string, begin: () => Promise<Work>): Promise<void> {
  const found: Awaited<ReturnType<typeof probed>>[] = [];
  for (let round = 0; round < rounds; round++) found.push(await probed(scene, await begin()));
  const goal = name === "nothing" ? {} : { goal: { of: "davit", atMost: 50 } as const };
  const within = (percent: number, what: string, of: (each: Latencies) => readonly number[]) =>
    scene.add({
      what: `beside ${name}: ${percent} % of ${what} within`,
      unit: "ms",
      davit: found.map((each) => percentile(of(each), percent)),
      ...goal,
    });
  for (const percent of [99, 99.9]) {
    within(percent, "GET", ({ getsMs }) => getsMs);
    within(percent, "PUT", ({ putsMs }) => putsMs);
  }
  if (name !== "nothing") scene.add({ what: `${name} takes`, unit: "s", davit: found.map(({ seconds }) => seconds) });
}

interface Latencies {
  readonly getsMs: readonly number[];
  readonly putsMs: readonly number[];
}

async function probed({ probe, davit }: Scene, work: Work): Promise<Latencies & { readonly seconds: number }> {
  await probe.ask({ kind: "begin", url: davit.storeUrl, keys, intervalMs }, () => undefined);
  const seconds = await work();
  const latencies = await probe.ask({ kind: "end" }, (answer) => ({
    getsMs: listOf(fieldOf(answer, "getsMs")),
    putsMs: listOf(fieldOf(answer, "putsMs")),
  }));
  return { seconds, ...latencies };
}

async function list({ reader, davit }: Scene, target: string): Promise<number> {
  return (await reader.askNumbers({ kind: "list", url: davit.storeUrl, target }))("seconds");
}

/** Logs as much as makes a snapshot due. @returns the wait for its end. */
async function beginSnapshot({ davit }: Scene): Promise<Work> {
  const saved = () => davit.log.filter(({ msg }) => msg === "snapshot saved");
  const before = saved().length;
  const targets = Array.from({ length: fillerCount }, (_, at) => `/v2/keys/filler/${at}`);
  await sendAll(
    davit.storeUrl,
    targets.map((target) => requestText("PUT", target, fillerForm)),
  );
  return async () => {
    while (saved().length === before) await pause(10);
    return Number(saved().at(-1)?.seconds);
  };
}

async function pause(durationMs: number): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, durationMs));
  return durationMs / 1_000;
}

function fieldOf(answer: unknown, name: string): unknown {
  return typeof answer === "object" && answer !== null ? Reflect.get(answer, name) : undefined;
}

function listOf(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.map(Number) : [];
}
