/**
 * What one davit meets: its disk, its memory, its clock, its node's signals, its API server. The faults of `faults.ts`;
 * those of several members are in `members-fault-kinds.ts`.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAll } from "../test/cluster/machines.ts";
import { imageProgram } from "../test/helpers/image-program.ts";
import { fakeTimeLibrary } from "../test/helpers/requirements.ts";
import { startCluster } from "../tools/cluster/cluster.ts";
import { freePorts } from "../tools/cluster/ports.ts";
import { type DavitOptions, type DavitProcess, startDavit, startDavitBoot, storeOf } from "../tools/davit-process.ts";
import { type Asked, faultObjects, installedMac, pause, writeFaultObjects } from "./fault-clients.ts";
import { FaultDisk } from "./fault-disks.ts";

/** Calls `during` while clients ask these davits; it resolves when the fault is over, with what else is worth a line. */
export type Measure = (asked: Asked, during: (lost: (davit: number) => void) => Promise<string>) => Promise<void>;

export interface Fault {
  readonly name: string;
  readonly run: (measure: Measure) => Promise<void>;
}

const { DAVIT_FAULT_MINUTES, DAVIT_FAULT_RESTARTS, DAVIT_FAULT_KILLS } = process.env;
const awayMinutes = Number(DAVIT_FAULT_MINUTES ?? 10);
const restarts = Number(DAVIT_FAULT_RESTARTS ?? 200);
const kills = Number(DAVIT_FAULT_KILLS ?? 500);
const faultMs = 10_000;
const slowMs = 8_000;
const hourMs = 3_600_000;
const trying = { timeout: 60_000 };

export const faults: readonly Fault[] = [
  { name: "no fault", run: (measure) => withDavit({}, ({ asked }) => measure(asked, () => rest())) },
  {
    name: `the API server is away for ${awayMinutes} minutes, and davit restarts meanwhile`,
    run: apiServerAway,
  },
  {
    name: "the disk is full for 10 s",
    run: onDisk(async ({ fill, empty }) => {
      fill();
      await pause(faultMs);
      empty();
    }),
  },
  {
    name: "the file system becomes read-only after an error, davit restarts on a new mount",
    run: abortedDisk,
  },
  {
    name: `the disk does not answer for ${slowMs / 1_000} s`,
    run: onDisk(async ({ freeze, thaw }) => {
      freeze();
      await pause(slowMs);
      thaw();
    }),
  },
  { name: "every sync fails (EIO) for 10 s", run: failingSyncs },
  { name: "Node's heap limit is reached (96 MiB)", run: outOfMemory },
  { name: "the wall clock goes an hour ahead, back, and an hour behind", run: clockSteps },
  { name: `a writer and two followers are restarted in turns (SIGTERM), ${restarts} times`, run: rollingRestarts },
  { name: `the writer is killed ${kills} times, beside a follower`, run: manyKills },
];

interface OneDavit {
  readonly asked: Asked;
  readonly davit: () => DavitProcess;
  /** Ends it, and starts it on the same data and ports. @returns the time until it is ready, milliseconds. */
  restart(signal: "SIGTERM" | "SIGKILL", between?: () => void): Promise<number>;
  readonly folder: string;
}

type OneOptions = Omit<DavitOptions, "dataDir" | "manifests"> & {
  readonly dataDir?: (folder: string) => string;
  readonly fromFiles?: boolean;
};

/** A davit as the image runs it, on ports that it keeps. Without `fromFiles` it follows no directory. */
async function withDavit(options: OneOptions, use: (one: OneDavit) => Promise<void>): Promise<void> {
  const { dataDir = (folder: string) => join(folder, "data"), fromFiles = true, args = [], ...others } = options;
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), "davit-faults-"));
  const manifests = writeFaultObjects(folder);
  const addresses = await freeAddresses(["boot", "store", "ops"]);
  const image = imageProgram();
  const start = async () =>
    await startDavit({
      ...others,
      ...(fromFiles && { manifests }),
      program: image.program,
      nodeArgs: [...image.nodeArgs, ...(others.nodeArgs ?? [])],
      dataDir: dataDir(folder),
      args: [...addresses, "--log-level", "info", ...args],
    });
  let davit = await start();
  const restart = async (signal: "SIGTERM" | "SIGKILL", between = () => {}) => {
    await davit.stop(signal);
    between();
    const startMs = performance.now();
    davit = await start();
    return performance.now() - startMs;
  };
  try {
    const all = () => [davit];
    await use({ asked: { boot: all, store: all }, davit: () => davit, restart, folder });
  } finally {
    await davit.stop("SIGKILL");
    rmSync(folder, { recursive: true });
  }
}

async function freeAddresses(names: readonly string[]): Promise<readonly string[]> {
  const ports = await freePorts(names.length);
  return names.flatMap((name, at) => [`--${name}-address`, `127.0.0.1:${ports[at]}`]);
}

async function rest(): Promise<string> {
  await pause(faultMs);
  return "";
}

function onDisk(fault: (disk: Pick<FaultDisk, "fill" | "empty" | "freeze" | "thaw">) => Promise<void>): Fault["run"] {
  return async (measure) => {
    await withDisk(async (disk, { asked, davit }) => {
      await measure(asked, async () => {
        await fault({
          fill: () => disk.fill(),
          empty: () => disk.empty(),
          freeze: () => disk.freeze(),
          thaw: () => disk.thaw(),
        });
        return `writes work again after ${await againAfter(davit())}`;
      });
    });
  };
}

async function withDisk(use: (disk: FaultDisk, one: OneDavit) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "davit-faults-disk-"));
  const disk = new FaultDisk(folder, 64);
  try {
    await withDavit({ dataDir: () => join(disk.path, "data") }, (one) => use(disk, one));
  } finally {
    disk.remove();
    rmSync(folder, { recursive: true });
  }
}

async function abortedDisk(measure: Measure): Promise<void> {
  await withDisk(async (disk, { asked, restart }) => {
    await measure(asked, async () => {
      disk.abort();
      await pause(faultMs);
      const readyMs = await restart("SIGTERM", () => {
        disk.unmount();
        disk.mount();
      });
      return `davit is ready ${Math.round(readyMs)} ms after the new mount`;
    });
  });
}

async function failingSyncs(measure: Measure): Promise<void> {
  const preload = join(import.meta.dirname, "../test/durability/davit-failing-disk.ts");
  const failing = join(mkdtempSync(join(tmpdir(), "davit-faults-eio-")), "failing");
  const options = { nodeArgs: ["--import", preload], variables: { FAILING_DISK: failing } };
  await withDavit(options, async ({ asked, davit }) => {
    await measure(asked, async () => {
      writeFileSync(failing, "");
      await pause(faultMs);
      rmSync(failing);
      return `writes work again after ${await againAfter(davit())}`;
    });
  });
  rmSync(join(failing, ".."), { recursive: true });
}

/** A client writes until davit ends. The client's keys are gone again when the fault is over. */
async function outOfMemory(measure: Measure): Promise<void> {
  await withDavit({ nodeArgs: ["--max-old-space-size=96"] }, async ({ asked, davit, restart }) => {
    await measure(asked, async () => {
      const { storeUrl } = davit();
      const body = new URLSearchParams({ value: "v".repeat(50_000) });
      const write = (number: number) => fetch(`${storeUrl}/v2/keys/fill/${number}`, { method: "PUT", body });
      let number = 0;
      while ((await write(number).catch(() => undefined))?.ok === true) number += 1;
      const readyMs = await restart("SIGKILL");
      const listing = await (await fetch(`${storeUrl}/v2/keys/fill`)).text();
      const found = listing.match(/"key":"\/fill\/\d+"/g)?.length ?? 0;
      await (await fetch(`${storeUrl}/v2/keys/fill?recursive=true`, { method: "DELETE" })).text();
      const kept = `${number} writes of 50 kB acknowledged, ${found} found`;
      return `${kept}; ready again ${Math.round(readyMs)} ms after the start`;
    });
  });
}

async function clockSteps(measure: Measure): Promise<void> {
  const clock = join(mkdtempSync(join(tmpdir(), "davit-faults-clock-")), "clock");
  const variables = {
    LD_PRELOAD: fakeTimeLibrary,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: "1",
    // An administrator who sets a clock does not set this one either.
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
  writeFileSync(clock, "+0");
  await withDavit({ variables }, async ({ asked, davit }) => {
    await measure(asked, async () => {
      const ends: string[] = [];
      for (const offset of ["+1h", "+0", "-1h"]) {
        const ended = endOfKey(davit());
        writeFileSync(clock, offset);
        ends.push(await ended);
        await pause(faultMs / 2);
      }
      return `keys with a ttl of 2 s, written just before a step, ended after ${ends.join(", ")}`;
    });
  });
  rmSync(join(clock, ".."), { recursive: true });
}

async function apiServerAway(measure: Measure): Promise<void> {
  const cluster = await startCluster();
  try {
    const profiles = faultObjects.filter(({ kind }) => kind === "Profile");
    const groups = faultObjects.filter(({ kind }) => kind === "Group");
    await createAll(cluster, profiles);
    await createAll(cluster, groups);
    await withDavit({ fromFiles: false, kubeconfig: cluster.kubeconfig }, async ({ asked, restart }) => {
      await measure(asked, async () => {
        await cluster.kill();
        await pause((awayMinutes * hourMs) / 120);
        const readyMs = await restart("SIGKILL");
        await pause((awayMinutes * hourMs) / 120);
        await cluster.restart();
        const startMs = performance.now();
        await untilInstalls(asked);
        return `davit is ready ${Math.round(readyMs)} ms after its restart; installs go on ${since(startMs)} after the API server`;
      });
    });
  } finally {
    await cluster.stop();
  }
}

/** A writer and its followers, on ports that they keep. */
async function withFollowers(
  count: number,
  use: (writer: OneDavit, follower: (number: number) => () => Promise<void>, asked: Asked) => Promise<void>,
): Promise<void> {
  await withDavit({}, async (writer) => {
    const followers = await Promise.all(
      Array.from({ length: count }, async (_, number) => {
        const addresses = await freeAddresses(["boot", "ops"]);
        const copy = ["--copy-file", join(writer.folder, `copy-${number}`)];
        const start = async () => await startDavitBoot([...storeOf(writer.davit()), ...addresses, ...copy]);
        return { start, davit: await start() };
      }),
    );
    try {
      const restart = (number: number) => async () => {
        const follower = followers[number];
        if (follower === undefined) return;
        await follower.davit.stop();
        follower.davit = await follower.start();
      };
      const boot = () => [writer.davit(), ...followers.map(({ davit }) => davit)];
      await use(writer, restart, { ...writer.asked, boot });
    } finally {
      for (const { davit } of followers) await davit.stop("SIGKILL");
    }
  });
}

async function rollingRestarts(measure: Measure): Promise<void> {
  await withFollowers(2, async (writer, follower, asked) => {
    await measure(asked, async () => {
      const codes = new Map<number | null, number>();
      for (let number = 0; number < restarts; number++) {
        if (number % 3 > 0) await follower((number % 3) - 1)();
        else {
          const ending = writer.davit();
          await writer.restart("SIGTERM");
          const code = await ending.stop();
          codes.set(code, (codes.get(code) ?? 0) + 1);
        }
      }
      return `the writer's exit codes: ${[...codes].map(([code, count]) => `${count} x ${code}`).join(", ")}`;
    });
  });
}

async function manyKills(measure: Measure): Promise<void> {
  await withFollowers(1, async (writer, _, asked) => {
    await measure(asked, async () => {
      const readyMs: number[] = [];
      for (let number = 0; number < kills; number++) {
        readyMs.push(await writer.restart("SIGKILL"));
        // Another moment each time.
        await pause(Math.random() * 500);
      }
      const sorted = readyMs.toSorted((a, b) => a - b);
      const [median, longest] = [sorted[sorted.length >> 1], sorted.at(-1)].map((value) => Math.round(value ?? 0));
      return `ready after ${median} ms in the median, ${longest} ms at most`;
    });
  });
}

async function untilInstalls({ boot }: Asked): Promise<void> {
  const limit = AbortSignal.timeout(trying.timeout);
  while (!limit.aborted) {
    const answers = boot().map(({ bootUrl }) => fetch(`${bootUrl}/ipxe?mac=${installedMac}`).catch(() => undefined));
    if ((await Promise.all(answers)).every((answer) => answer?.status === 200)) return;
    await pause(100);
  }
  throw new Error("No install within a minute");
}

/** How long until a write is taken. */
async function againAfter({ storeUrl }: DavitProcess): Promise<string> {
  const startMs = performance.now();
  for (;;) {
    const body = new URLSearchParams({ value: "1" });
    const answer = await fetch(`${storeUrl}/v2/keys/again`, { method: "PUT", body }).catch(() => undefined);
    await answer?.text();
    if (answer?.ok === true) return since(startMs);
    if (performance.now() - startMs > trying.timeout) return "more than a minute";
    await pause(20);
  }
}

/** How long a key with a ttl of two seconds lasts. */
async function endOfKey({ storeUrl }: DavitProcess): Promise<string> {
  const body = new URLSearchParams({ value: "1", ttl: "2" });
  const startMs = performance.now();
  const { node } = Object(await (await fetch(`${storeUrl}/v2/keys/ends`, { method: "PUT", body })).json());
  await (await fetch(`${storeUrl}/v2/keys/ends?wait=true&waitIndex=${Number(node.modifiedIndex) + 1}`)).text();
  return since(startMs);
}

function since(startMs: number): string {
  return `${Math.round(performance.now() - startMs)} ms`;
}
