/** The peer of the boot benchmarks: a matchbox binary that `MATCHBOX` names, with the same groups as files. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { freePorts } from "../cluster/ports.ts";
import { benchBoot, benchMetadata, ignitionTemplate, macOf } from "./machines.ts";

export interface Matchbox {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

const startLimitMs = 10_000;

/** Starts a binary with this many groups. Its boot arguments are no templates, so they stay as they are. */
export async function startMatchbox(binary: string, groups: number): Promise<Matchbox> {
  const directory = await mkdtemp(join(tmpdir(), "davit-bench-matchbox-"));
  await writeData(directory, groups);
  const [port = 0] = await freePorts(1);
  const paths = ["-data-path", directory, "-assets-path", directory];
  const child = spawn(binary, ["-address", `127.0.0.1:${port}`, "-log-level", "error", ...paths], { stdio: "ignore" });
  const stop = async () => {
    if (child.exitCode === null && child.kill()) await once(child, "exit");
    await rm(directory, { recursive: true });
  };
  try {
    await untilAnswered(`http://127.0.0.1:${port}/`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, pid: child.pid ?? 0, stop };
}

async function writeData(directory: string, groups: number): Promise<void> {
  for (const folder of ["groups", "profiles", "ignition"]) await mkdir(join(directory, folder));
  const { kernel, initrd, args } = benchBoot;
  const profile = { id: "linux", name: "Linux", boot: { kernel, initrd, args }, ignition_id: "linux.ign" };
  await writeFile(join(directory, "profiles", "linux.json"), JSON.stringify(profile));
  await writeFile(
    join(directory, "ignition", "linux.ign"),
    ignitionTemplate((name) => `{{.${name}}}`),
  );
  for (let at = 0; at < groups; at++) {
    const id = `node-${at}`;
    const group = { id, name: id, profile: "linux", selector: { mac: macOf(at) }, metadata: benchMetadata(at) };
    await writeFile(join(directory, "groups", `${id}.json`), JSON.stringify(group));
  }
}

async function untilAnswered(url: string): Promise<void> {
  const giveUpMs = systemClock.monotonicMs() + startLimitMs;
  while (!(await isAnswered(url))) {
    if (systemClock.monotonicMs() > giveUpMs) throw new Error("matchbox does not answer");
    await systemClock.sleep(50);
  }
}

async function isAnswered(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    // It does not listen yet.
    return false;
  }
}
