/**
 * `make boot`: boots a virtual machine from the davit of `make run` or `make cluster`, on this terminal.
 * PORT names davit's boot port (8080), FIRMWARE the machine's (bios or uefi), ACCEL what runs it (auto, kvm or tcg), DISK
 * the file of its disk, which is made if it is not there.
 */

import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import {
  type Accelerator,
  hostSeenByMachine,
  ipxeRom,
  type Machine,
  qemuArguments,
  qemuProgram,
  quickstartMachine,
} from "./machine.ts";

const diskBytes = 16 << 20;

const port = process.env.PORT ?? "8080";
const problem = (await davitProblem(`http://127.0.0.1:${port}`)) ?? romProblem();
if (problem === undefined) boot(accelerator(process.env.ACCEL));
else fail(problem);

/** What keeps a machine from booting, and the cure; undefined when all is there. */
async function davitProblem(url: string): Promise<string | undefined> {
  const script = await statusOf(`${url}/boot.ipxe`);
  if (script === undefined) return `No davit at ${url}: run "make run" or "make cluster" in another terminal`;
  if (script !== 200) return `What answers at ${url} is not davit, or it is not ready: "make run" shows its log`;
  if ((await statusOf(`${url}/assets/quickstart/vmlinuz`)) === 200) return undefined;
  return `davit at ${url} has no kernel: run "make boot-assets", and "make run" again if it was started before`;
}

async function statusOf(url: string): Promise<number | undefined> {
  try {
    const response = await fetch(url, { method: "HEAD", signal: AbortSignal.timeout(5_000) });
    return response.status;
  } catch {
    // Refused or silent: nobody is there.
    return undefined;
  }
}

function romProblem(): string | undefined {
  return existsSync(ipxeRom) ? undefined : `No iPXE in ${ipxeRom}: apt-get install ipxe-qemu`;
}

function accelerator(text: string | undefined): Accelerator {
  return text === "kvm" || text === "tcg" ? text : "auto";
}

function boot(accelerator: Accelerator): void {
  process.stdout.write("Booting a machine. Ctrl-A X switches it off.\n");
  const url = `http://${hostSeenByMachine}:${port}/boot.ipxe`;
  const firmware = process.env.FIRMWARE === "uefi" ? "uefi" : "bios";
  const disk = process.env.DISK;
  if (disk !== undefined && !existsSync(disk)) writeFileSync(disk, Buffer.alloc(diskBytes));
  const machine: Machine = {
    ...quickstartMachine,
    firmware,
    loader: { kind: "ipxe", url },
    accelerator,
    // A machine with a disk restarts when its installer says so.
    ...(disk !== undefined && { disk, isPersistent: true }),
  };
  const qemu = spawn(qemuProgram, [...qemuArguments(machine), "-serial", "mon:stdio"], { stdio: "inherit" });
  qemu.on("error", () => fail(`Cannot start ${qemuProgram}: apt-get install qemu-system-x86`));
  qemu.on("exit", (code) => {
    process.exitCode = code ?? 1;
  });
}

function fail(sentence: string): void {
  process.stderr.write(`${sentence}\n`);
  process.exitCode = 1;
}
