/**
 * `npm run bench:pauses`: how long other requests wait while the store does something large. `davit serve` runs with a
 * million keys of 100 bytes; one process sends GET and PUT at a steady rate, another one reads listings of all keys. A
 * latency counts from when the request was to be sent.
 *
 *   npm run bench:pauses -- --keys 1000000 --rounds 3 --interval-ms 2
 */

import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type DavitProcess, startDavit } from "../tools/davit-process.ts";
import { Child } from "./child.ts";
import { residentBytesOf } from "./process-usage.ts";
import { requestText, sendAll } from "./raw-client.ts";

const quietMs = 10_000;
// A snapshot is taken when 64 MiB were logged; these are a little more.
const fillerCount = 1_056;
const fillerForm = `value=${"z".repeat(64 * 1024)}`;
const manifests = join(import.meta.dirname, "../manifests/quickstart");

interface Options {
  readonly keys: number;
  readonly rounds: number;
  readonly intervalMs: number;
}

interface Scene extends Options {
  readonly davit: DavitProcess;
  readonly probe: Child;
  readonly reader: Child;
}

await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      keys: { type: "string", default: "1000000" },
      rounds: { type: "string", default: "3" },
      "interval-ms": { type: "string", default: "2" },
    },
  });
  const options = {
    keys: Number(values.keys),
    rounds: Number(values.rounds),
    intervalMs: Number(values["interval-ms"]),
  };
  print(`${cpus().length} x ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB; Node ${process.version}\n`);
  const dataDir = await mkdtemp(join(process.env.BENCH_DIR ?? tmpdir(), "davit-bench-pauses-"));
  try {
    await fill(dataDir, options.keys);
    const startMs = performance.now();
    const davit = await startDavit({ manifests, dataDir });
    print(`${options.keys} keys: served after ${Math.round(performance.now() - startMs)} ms, RSS ${rssOf(davit)}`);
    await withChildren(davit, options);
    await davit.stop();
  } finally {
    await rm(dataDir, { recursive: true });
  }
}

async function fill(directory: string, keys: number): Promise<void> {
  const child = Child.start("pauses-child.ts");
  await child.ask({ kind: "fill", directory, keys }, () => undefined);
  await child.stop();
}

async function withChildren(davit: DavitProcess, options: Options): Promise<void> {
  const [probe, reader] = [Child.start("pauses-child.ts"), Child.start("pauses-child.ts")];
  const scene = { ...options, davit, probe, reader };
  try {
    // The start may have begun a snapshot.
    await probed(scene, () => pause(quietMs));
    print("\n| beside | | requests | p50 ms | p99 ms | p99.9 ms | max ms | |\n|---|---|---|---|---|---|---|---|");
    await measure(scene, "nothing", async () => () => pause(quietMs));
    await measure(scene, "a listing", async () => () => list(scene, "/v2/keys/many?recursive=true"));
    await measure(scene, "a sorted one", async () => () => list(scene, "/v2/keys/many?recursive=true&sorted=true"));
    await measure(scene, "a snapshot", () => beginSnapshot(scene));
    print(`\nRSS at the end: ${rssOf(davit)}`);
  } finally {
    await Promise.all([probe.stop(), reader.stop()]);
  }
}

type Work = () => Promise<string>;

/** Prints what GET and PUT took in all rounds together, and what the work says of itself. */
async function measure(scene: Scene, name: string, begin: () => Promise<Work>): Promise<void> {
  const rounds: Latencies[] = [];
  const notes: string[] = [];
  for (let round = 0; round < scene.rounds; round++) {
    const { note, ...latencies } = await probed(scene, await begin());
    rounds.push(latencies);
    notes.push(note);
  }
  const what = notes.filter((note) => note !== "").join("; ");
  printRow(
    [name, "GET"],
    rounds.flatMap(({ getsMs }) => getsMs),
    what,
  );
  printRow(
    ["", "PUT"],
    rounds.flatMap(({ putsMs }) => putsMs),
    "",
  );
}

interface Latencies {
  readonly getsMs: readonly number[];
  readonly putsMs: readonly number[];
}

async function probed(
  { probe, davit, keys, intervalMs }: Scene,
  work: Work,
): Promise<Latencies & { readonly note: string }> {
  await probe.ask({ kind: "begin", url: davit.storeUrl, keys, intervalMs }, () => undefined);
  const note = await work();
  const latencies = await probe.ask({ kind: "end" }, (answer) => ({
    getsMs: listOf(fieldOf(answer, "getsMs")),
    putsMs: listOf(fieldOf(answer, "putsMs")),
  }));
  return { note, ...latencies };
}

async function list({ reader, davit }: Scene, target: string): Promise<string> {
  const { bytes, seconds } = await reader.ask({ kind: "list", url: davit.storeUrl, target }, (answer) => ({
    bytes: Number(fieldOf(answer, "bytes")),
    seconds: Number(fieldOf(answer, "seconds")),
  }));
  return `${Math.round(bytes / 2 ** 20)} MiB in ${seconds.toFixed(1)} s`;
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
    return `${Number(saved().at(-1)?.seconds).toFixed(1)} s`;
  };
}

async function pause(durationMs: number): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, durationMs));
  return "";
}

function printRow(names: readonly string[], latenciesMs: readonly number[], note: string): void {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const cells = [0.5, 0.99, 0.999, 1].map((part) => quantile(sorted, part).toFixed(1));
  print(`| ${[...names, sorted.length, ...cells, note].join(" | ")} |`);
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

function fieldOf(answer: unknown, name: string): unknown {
  return typeof answer === "object" && answer !== null ? Reflect.get(answer, name) : undefined;
}

function listOf(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.map(Number) : [];
}

function rssOf({ pid }: DavitProcess): string {
  return `${Math.round(residentBytesOf(pid) / 2 ** 20)} MiB`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
