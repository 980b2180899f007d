/** A matchbox binary, which `MATCHBOX` names, on a data directory. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { systemClock } from "../../src/lib/clock.ts";
import { freePorts } from "../../tools/cluster/ports.ts";

export interface Matchbox {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

const startLimitMs = 10_000;

/** Starts it and waits until it answers. @param assets what `/assets/` serves. */
export async function startMatchbox(binary: string, data: string, assets: string): Promise<Matchbox> {
  const [port = 0] = await freePorts(1);
  const paths = ["-data-path", data, "-assets-path", assets];
  const child = spawn(binary, ["-address", `127.0.0.1:${port}`, "-log-level", "error", ...paths], { stdio: "ignore" });
  const stop = async () => {
    if (child.exitCode === null && child.kill()) await once(child, "exit");
  };
  try {
    await untilAnswered(`http://127.0.0.1:${port}/`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, pid: child.pid ?? 0, stop };
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
