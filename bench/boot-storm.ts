/**
 * A storm: thousands of machines are powered on within a second and boot from one `davit serve`, each on one connection.
 * The machines are in two other processes. Reports errors, refusals that were obeyed, latencies and davit's memory.
 */

import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isJsonObject, type JsonValue } from "../src/model/json.ts";
import { type DavitProcess, startDavit } from "../tools/davit-process.ts";
import { type Stops, startChild } from "./boot-contenders.ts";
import type { Child } from "./child.ts";
import { benchBoot, benchMetadata, ignitionTemplate, macOf } from "./machines.ts";
import { cpuMicrosecondsOf, residentBytesOf } from "./process-usage.ts";
import { type Latency, latencyOf } from "./statistics.ts";

export interface BootStorm {
  readonly machines: number;
  readonly errors: readonly string[];
  /** Answers 503. The machines obeyed all of them. */
  readonly refusals: number;
  /** Of each step, milliseconds. */
  readonly steps: ReadonlyMap<string, Latency>;
  /** From power on to the last answer, waits included; milliseconds. */
  readonly boots: Latency;
  readonly cpuMicrosecondsPerBoot: number;
  readonly bytesBefore: number;
  readonly bytesMost: number;
}

interface ClientReport {
  readonly latenciesMs: readonly (readonly number[])[];
  readonly totalsMs: readonly number[];
  readonly refusals: number;
  readonly errors: readonly string[];
}

const steps = ["/boot.ipxe", "/ipxe", "kernel", "initrd", "/ignition", "/metadata"];
const assetBytes = 64 * 1024;
const startWithinMs = 1_000;
const clientCount = 2;
const documentsPerFile = 1_000;
const memoryLookMs = 50;

/** @throws {Error} when this system allows too few open files. */
export async function measureBootStorm(machines: number): Promise<BootStorm> {
  refuseFewFiles(machines);
  const directory = await mkdtemp(join(tmpdir(), "davit-bench-storm-"));
  const stops: Stops = [() => rm(directory, { recursive: true })];
  try {
    const davit = await startServe(directory, machines);
    stops.unshift(async () => void (await davit.stop()));
    const clients = Array.from({ length: clientCount }, () => startChild("storm-child.ts", stops));
    return await run(davit, clients, machines);
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

async function run(davit: DavitProcess, clients: readonly Child[], machines: number): Promise<BootStorm> {
  const bytesBefore = residentBytesOf(davit.pid);
  const cpuBefore = cpuMicrosecondsOf(davit.pid);
  let bytesMost = bytesBefore;
  const look = setInterval(() => {
    bytesMost = Math.max(bytesMost, residentBytesOf(davit.pid));
  }, memoryLookMs);
  const count = Math.ceil(machines / clients.length);
  const port = Number(new URL(davit.bootUrl).port);
  const assets = [benchBoot.kernel, ...benchBoot.initrd];
  const reports = await Promise.all(
    clients.map((client, at) =>
      client.ask({ port, first: at * count, count, startMs: startWithinMs, assets }, readReport),
    ),
  );
  clearInterval(look);
  const latencies = reports.flatMap(({ latenciesMs }) => latenciesMs);
  return {
    machines: count * clients.length,
    errors: reports.flatMap(({ errors }) => errors),
    refusals: reports.reduce((sum, { refusals }) => sum + refusals, 0),
    steps: new Map(steps.map((step, at) => [step, latencyOf(latencies.flatMap((one) => one[at] ?? []))])),
    boots: latencyOf(reports.flatMap(({ totalsMs }) => totalsMs)),
    cpuMicrosecondsPerBoot: (cpuMicrosecondsOf(davit.pid) - cpuBefore) / machines,
    bytesBefore,
    bytesMost,
  };
}

async function startServe(directory: string, machines: number): Promise<DavitProcess> {
  const assetsDir = join(directory, "assets");
  for (const path of [benchBoot.kernel, ...benchBoot.initrd]) {
    const file = join(directory, path);
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, Buffer.alloc(assetBytes, "davit"));
  }
  const manifests = join(directory, "manifests");
  await mkdir(manifests);
  await writeFile(join(manifests, "profile.yaml"), JSON.stringify(profileObject()));
  for (let from = 0; from < machines; from += documentsPerFile) {
    const length = Math.min(documentsPerFile, machines - from);
    const documents = Array.from({ length }, (_, at) => JSON.stringify(groupObject(from + at)));
    await writeFile(join(manifests, `groups-${from}.yaml`), documents.join("\n---\n"));
  }
  return await startDavit({ manifests, dataDir: join(directory, "data"), args: ["--assets-dir", assetsDir] });
}

const apiVersion = "davit.dev/v1alpha1";

function profileObject() {
  const inline = ignitionTemplate((name) => `{{${name}}}`);
  return { apiVersion, kind: "Profile", metadata: { name: "linux" }, spec: { boot: benchBoot, ignition: { inline } } };
}

function groupObject(machine: number) {
  const spec = {
    profileRef: { name: "linux" },
    selector: { matchLabels: { mac: macOf(machine) } },
    metadata: benchMetadata(machine),
  };
  return { apiVersion, kind: "Group", metadata: { name: `node-${machine}` }, spec };
}

function readReport(answer: unknown): ClientReport {
  const { boots, errors } = Object(answer);
  const found: readonly JsonValue[] = Array.isArray(boots) ? boots : [];
  const objects = found.filter(isJsonObject);
  return {
    latenciesMs: objects.map(({ latenciesMs }) => numbersIn(latenciesMs)),
    totalsMs: objects.map(({ totalMs }) => Number(totalMs)),
    refusals: objects.reduce((sum, { refusals }) => sum + Number(refusals), 0),
    errors: Array.isArray(errors) ? errors.map(String) : ["a client said nothing"],
  };
}

function numbersIn(value: JsonValue | undefined): readonly number[] {
  return Array.isArray(value) ? value.map(Number) : [];
}

/** Each process of the storm needs a descriptor for each of its connections, davit for all of them. */
function refuseFewFiles(machines: number): void {
  const needed = machines + 1_000;
  // The second number is the one that counts: Node raises the first one to it.
  const [, hard = "0"] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
  if (hard === "unlimited" || Number(hard) >= needed) return;
  throw new Error(
    `This system allows ${hard} open files, the storm needs ${needed}: raise it ("ulimit -Hn ${needed}")`,
  );
}
