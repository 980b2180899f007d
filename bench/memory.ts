/**
 * `make bench-memory`: the memory that davit takes, idle and with objects, machines, followers and connections. Each
 * davit is a process of its own, as the image runs it (`npm run bundle`). `--only WORD` measures the rows whose names
 * contain this word.
 *
 * The heap is measured after a collection. Resident memory is measured before it, because a collection for a figure
 * would also free memory that davit usually keeps.
 */

import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { imageProgram } from "../test/helpers/image-program.ts";
import { bootOf, configOf, InstallWorld, ledgerId } from "../test/helpers/install-world.ts";
import {
  type DavitBootProcess,
  type DavitProcess,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../tools/davit-process.ts";
import { requestText } from "./raw-client.ts";
import { type AddFigure, runBenchmark } from "./run.ts";
import { manifests as quickstart } from "./store-peers.ts";

const { values } = parseArgs({ options: { only: { type: "string", multiple: true } } });

const image = imageProgram();
const collector = "data:text/javascript,process.on('SIGUSR2',()=>{gc();gc()})";
const how = { program: image.program, nodeArgs: [...image.nodeArgs, "--expose-gc", "--import", collector] };
/** After this time davit has nothing left to do. */
const restMs = 5_000;
const mebibyte = 2 ** 20;
const lanes = 32;
const groupsPerFile = 1_000;

/** In bytes. */
interface MemoryTaken {
  readonly resident: number;
  /** Resident, with only a part of the memory that other processes share (PSS). */
  readonly proportional: number;
  readonly heap: number;
  /** Buffers and typed arrays, which the heap's limit does not limit. */
  readonly outside: number;
}

type MemoryRows = Readonly<Record<string, MemoryTaken>>;

/** Rows in their order. A row for each boot thread belongs here: a start with `--boot-threads`, and its difference. */
const rows: Readonly<Record<string, () => Promise<MemoryRows>>> = {
  idle: () => withDavit(quickstart, async (davit) => ({ "idle: the quickstart": await memoryOf(davit) })),
  "10,000 Groups": () => withGroups(10_000),
  "100,000 Groups": () => withGroups(100_000),
  "machines booted": () => withDavit(quickstart, bootedMachines),
  "machines installed": installedMachines,
  followers: () => withDavit(quickstart, followers),
  "long polls": () => withDavit(quickstart, longPolls),
  "idle connections": () => withDavit(quickstart, idleConnections),
};

async function withDavit<Result>(manifests: string, use: (davit: DavitProcess) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), "davit-bench-memory-"));
  const davit = await startDavit({ manifests, dataDir: join(folder, "data"), ...how });
  try {
    return await use(davit);
  } finally {
    await davit.stop("SIGKILL");
    rmSync(folder, { recursive: true });
  }
}

async function withGroups(count: number): Promise<MemoryRows> {
  const folder = mkdtempSync(join(tmpdir(), "davit-bench-memory-"));
  writeFileSync(join(folder, "profile.yaml"), readFileSync(join(quickstart, "profile.yaml")));
  try {
    return await withDavit(folder, async (davit) => {
      for (let first = 0; first < count; first += groupsPerFile) {
        const groups = Array.from({ length: groupsPerFile }, (_, at) => JSON.stringify(groupOf(first + at)));
        writeFileSync(join(folder, `groups-${first}.yaml`), `${groups.join("\n---\n")}\n`);
      }
      while ((await metricOf(davit, 'davit_resources{kind="Group",ready="true"}')) !== count) await setTimeout(restMs);
      const name = `${count.toLocaleString("en")} Groups`;
      const ofWriter = await memoryOf(davit);
      return { [name]: ofWriter, [`davit boot: a follower of ${name}`]: await withFollower(davit, memoryOf) };
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function groupOf(number: number) {
  return {
    apiVersion: "davit.dev/v1alpha1",
    kind: "Group",
    metadata: { name: `node-${number}` },
    spec: {
      profileRef: { name: "quickstart" },
      selector: { matchLabels: { mac: macOf(number) } },
      metadata: { hostname: `node-${number}`, role: "worker", rack: { row: number % 50 } },
    },
  };
}

async function bootedMachines(davit: DavitProcess): Promise<MemoryRows> {
  const measured: Record<string, MemoryTaken> = {};
  let booted = 0;
  for (const count of [1_000, 10_000]) {
    await forEach(booted, count, async (number) => {
      for (const path of ["ipxe", "ignition", "metadata"]) await ask(`${davit.bootUrl}/${path}?mac=${macOf(number)}`);
    });
    booted = count;
    measured[`${count.toLocaleString("en")} machines booted`] = await memoryOf(davit);
  }
  return measured;
}

async function installedMachines(): Promise<MemoryRows> {
  const measured: Record<string, MemoryTaken> = {};
  const world = await InstallWorld.make();
  try {
    const davit = await world.serve([], how);
    await world.write({ grant: { generation: 1, ledger: await ledgerId(davit) } });
    let installed = 0;
    for (const count of [1_000, 10_000]) {
      await forEach(installed, count, async (number) => {
        while ((await bootOf(davit, number)) !== "install") await setTimeout(200);
        await configOf(davit, number);
      });
      installed = count;
      measured[`${count.toLocaleString("en")} machines installed once`] = await memoryOf(davit);
    }
  } finally {
    await world.stop();
  }
  return measured;
}

async function followers(davit: DavitProcess): Promise<MemoryRows> {
  const before = await memoryOf(davit);
  const count = 4;
  const follow = async (left: number): Promise<MemoryRows> => {
    if (left > 0) return await withFollower(davit, () => follow(left - 1));
    return { "for each follower, in davit serve": difference(await memoryOf(davit), before, count) };
  };
  const each = await follow(count);
  return { "davit boot: a follower of the quickstart": await withFollower(davit, memoryOf), ...each };
}

async function withFollower<Result>(
  davit: DavitProcess,
  use: (follower: DavitBootProcess) => Promise<Result>,
): Promise<Result> {
  const follower = await startDavitBoot(storeOf(davit), how);
  try {
    return await use(follower);
  } finally {
    await follower.stop("SIGKILL");
  }
}

async function longPolls(davit: DavitProcess): Promise<MemoryRows> {
  const before = await memoryOf(davit);
  const poll = requestText("GET", "/v2/keys/watched?wait=true");
  const sockets = await openSockets(davit.storeUrl, (socket) => socket.write(poll));
  return { "for each long poll": await perSocket(davit, before, sockets) };
}

async function idleConnections(davit: DavitProcess): Promise<MemoryRows> {
  const before = await memoryOf(davit);
  const ipxe = requestText("GET", "/ipxe?mac=52-54-00-a1-9c-ae");
  const sockets = await openSockets(davit.bootUrl, (socket) => socket.write(ipxe));
  return { "for each idle connection of a machine": await perSocket(davit, before, sockets) };
}

async function perSocket(davit: DavitProcess, before: MemoryTaken, sockets: readonly Socket[]): Promise<MemoryTaken> {
  const open = sockets.filter(({ destroyed }) => !destroyed).length;
  if (open < sockets.length) throw new Error(`davit closed ${sockets.length - open} connections`);
  const each = difference(await memoryOf(davit), before, open);
  for (const socket of sockets) socket.destroy();
  return each;
}

/** Opens connections from many addresses, because davit limits those of one client. */
async function openSockets(url: string, begin: (socket: Socket) => void): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  for (let number = 0; number < 2_000; number++) {
    const localAddress = `127.0.1.${1 + (number % 200)}`;
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), localAddress });
    await once(socket, "connect");
    begin(socket);
    socket.resume();
    sockets.push(socket);
  }
  return sockets;
}

/** Waits until davit is at rest, and measures it. */
async function memoryOf(davit: DavitBootProcess): Promise<MemoryTaken> {
  await setTimeout(restMs);
  const { pid } = davit;
  const resident = readFileSync(`/proc/${pid}/smaps_rollup`, "latin1");
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(resident)?.[1]) * 1024;
  const before = { resident: field("Rss"), proportional: field("Pss") };
  process.kill(pid, "SIGUSR2");
  await setTimeout(restMs);
  const heap = await metricOf(davit, "nodejs_heap_size_used_bytes");
  return { ...before, heap, outside: await metricOf(davit, "nodejs_external_memory_bytes") };
}

/** @param name the name with labels. @returns NaN for a metric that davit does not have. */
async function metricOf({ opsUrl }: Pick<DavitBootProcess, "opsUrl">, name: string): Promise<number> {
  const line = (await ask(`${opsUrl}/metrics`)).split("\n").find((each) => each.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

function difference(after: MemoryTaken, before: MemoryTaken, count: number): MemoryTaken {
  return {
    resident: (after.resident - before.resident) / count,
    proportional: (after.proportional - before.proportional) / count,
    heap: (after.heap - before.heap) / count,
    outside: (after.outside - before.outside) / count,
  };
}

async function ask(url: string): Promise<string> {
  // davit closes connections that were idle for some seconds, perhaps this one just now.
  const answer = await fetch(url).catch(() => fetch(url));
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return await answer.text();
}

/** Does the work for each number from `first` to before `end`, `lanes` at a time. */
async function forEach(first: number, end: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = first;
  const lane = async () => {
    while (next < end) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

function macOf(number: number): string {
  return `52:54:00:${number
    .toString(16)
    .padStart(6, "0")
    .replaceAll(/(..)(?=.)/g, "$1:")}`;
}

async function measureRows(add: AddFigure): Promise<void> {
  for (const [name, measure] of Object.entries(rows)) {
    const isAsked = values.only?.some((word) => name.includes(word)) ?? true;
    if (isAsked) for (const [row, memory] of Object.entries(await measure())) addRow(add, row, memory);
  }
}

function addRow(add: AddFigure, row: string, memory: MemoryTaken): void {
  const [unit, unitBytes] = row.startsWith("for each") ? ["KiB", 1024] : ["MiB", mebibyte];
  for (const [kind, bytes] of Object.entries(memory))
    add({ what: `${row}: ${kind}`, unit, davit: [bytes / unitBytes] });
}

await runBenchmark({ name: "memory", settings: {}, measure: measureRows });
