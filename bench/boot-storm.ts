/**
 * A storm: thousands of machines are powered on within a second and boot from one `davit serve`, each on one connection.
 * The machines are in two other processes. A machine that gets 503 waits as long as `Retry-After` says.
 */

import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isJsonObject, type JsonValue } from "../src/model/json.ts";
import { imageProgram } from "../test/helpers/image-program.ts";
import { percentile } from "../tools/benchmarks/statistics.ts";
import { type DavitProcess, startDavit } from "../tools/davit-process.ts";
import { startChild, temporaryDirectory, threadOptions, withStops } from "./boot-contenders.ts";
import type { Child } from "./child.ts";
import { benchBoot, benchMetadata, ignitionTemplate, macOf } from "./machines.ts";
import { cpuMicrosecondsOf, residentBytesOf } from "./process-usage.ts";
import { type AddFigure, print } from "./run.ts";

interface ClientReport {
  readonly latenciesMs: readonly (readonly number[])[];
  readonly totalsMs: readonly number[];
  readonly refusals: number;
  readonly errors: readonly string[];
}

const steps = ["`/boot.ipxe`", "`/ipxe`", "kernel", "initrd", "`/ignition`", "`/metadata`"];
const assetBytes = 64 * 1024;
const startWithinMs = 1_000;
const clientCount = 2;
const documentsPerFile = 1_000;
const memoryLookMs = 50;

/** @throws {Error} if this system allows too few open files. Prints the error of each machine that does not boot. */
export async function measureBootStorm(
  { machines, threads }: { readonly machines: number; readonly threads: number },
  add: AddFigure,
): Promise<void> {
  refuseFewFiles(machines);
  await withStops(async (stops) => {
    const davit = await startServe(await temporaryDirectory(stops), machines, threadOptions(threads));
    stops.push(async () => void (await davit.stop()));
    const clients = Array.from({ length: clientCount }, () => startChild("storm-child.ts", stops));
    await run(davit, clients, machines, add);
  });
}

async function run(davit: DavitProcess, clients: readonly Child[], machines: number, add: AddFigure): Promise<void> {
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
  const totalsMs = reports.flatMap(({ totalsMs }) => totalsMs);
  const errors = reports.flatMap(({ errors }) => errors);
  const cpuMs = (cpuMicrosecondsOf(davit.pid) - cpuBefore) / 1_000 / machines;
  for (const error of new Set(errors)) print(error);
  const seconds = (percent: number) => [percentile(totalsMs, percent) / 1_000];
  const cpu = { unit: "ms", davit: [cpuMs] };
  // Nothing is said of all machines when some of them did not boot.
  const headline = (part: string) =>
    errors.length > 0 ? {} : { headline: `${part} of ${machines.toLocaleString("en")} machines boot within` };
  add({
    what: "half of the machines have booted within",
    unit: "s",
    davit: seconds(50),
    cpu,
    ...headline("half"),
  });
  add({ what: "99 % of the machines have booted within", unit: "s", davit: seconds(99), ...headline("99 %") });
  for (const [at, step] of steps.entries()) {
    const stepMs = latencies.flatMap((one) => one[at] ?? []);
    add({ what: `99 % of the answers to ${step} within`, unit: "ms", davit: [percentile(stepMs, 99)] });
  }
  const none = { of: "davit", atMost: 0 } as const;
  add({ what: "machines that did not boot", unit: "", davit: [errors.length], goal: none });
  add({ what: "answers 503, obeyed", unit: "", davit: [sum(reports.map(({ refusals }) => refusals))] });
  add({ what: "memory before", unit: "MiB", davit: [bytesBefore / 2 ** 20] });
  add({ what: "memory at most", unit: "MiB", davit: [bytesMost / 2 ** 20] });
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

async function startServe(directory: string, machines: number, options: readonly string[]): Promise<DavitProcess> {
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
  // All machines have one address here. The limits by client would count them as one client.
  const args = ["--assets-dir", assetsDir, "--client-limit-exempt", "127.0.0.0/8", ...options];
  return await startDavit({ ...imageProgram(), manifests, dataDir: join(directory, "data"), args });
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
