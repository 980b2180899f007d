/** A virtual machine from power on to power off, with somebody at its screen who may do something meanwhile. */

import { spawn } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { commandOf, type Machine, qemuArguments } from "../../tools/firmware/machine.ts";

/** Somebody who does something, once, when the screen shows a text. */
export interface Onlooker {
  readonly waitsFor: string;
  readonly does: (machine: Controls) => void;
}

export interface Controls {
  /** On the serial line. */
  type(text: string): void;
  /** Of a machine that would not do so itself. */
  switchOff(): void;
  /** Like `switchOff`, but QEMU ends at once, as a machine does without power (SIGKILL). */
  cutPower(): void;
}

export interface PowerOnOptions {
  /** Then the machine is cut off. */
  readonly timeoutMs: number;
  readonly onlooker?: Onlooker;
}

/** A machine that is off again. */
export interface Run {
  /** All that firmware and Linux wrote to the serial line, without cursor movements and colours. */
  readonly screen: string;
  readonly seconds: number;
}

/**
 * Boots a machine and waits until it is off.
 * @throws {Error} when it was cut off or QEMU failed; the message ends with the last lines of its screen.
 */
export function powerOn(machine: Machine, { timeoutMs, onlooker }: PowerOnOptions): Promise<Run> {
  const startMs = performance.now();
  const serial = ["-serial", "stdio", "-monitor", "none"];
  const [program = "", ...words] = [...commandOf(machine), ...qemuArguments(machine), ...serial];
  const qemu = spawn(program, words, { timeout: timeoutMs, killSignal: "SIGKILL" });
  let isCut = false;
  const controls: Controls = {
    type: (text) => void qemu.stdin.write(text),
    // QEMU then ends as if the machine had done it.
    switchOff: () => void qemu.kill("SIGTERM"),
    cutPower: () => {
      isCut = true;
      qemu.kill("SIGKILL");
    },
  };
  let written = "";
  let complaints = "";
  let waiting = onlooker;
  qemu.stdout.setEncoding("latin1").on("data", (text: string) => {
    written += text;
    if (waiting === undefined || !plainText(written).includes(waiting.waitsFor)) return;
    const { does } = waiting;
    waiting = undefined;
    does(controls);
  });
  qemu.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  return new Promise((resolve, reject) => {
    qemu.on("error", reject);
    qemu.on("close", (exitCode) => {
      const screen = plainText(written);
      if (exitCode === 0 || isCut) return resolve({ screen, seconds: (performance.now() - startMs) / 1_000 });
      const what = exitCode === null ? `Machine not off after ${timeoutMs} ms` : `QEMU ended with ${exitCode}`;
      return reject(new Error(`${what}\n${complaints}\n${tail(screen)}`));
    });
  });
}

/** The last lines of a screen: enough to see where a boot stopped. */
export function tail(screen: string): string {
  return screen.split("\n").slice(-40).join("\n");
}

function plainText(written: string): string {
  return stripVTControlCharacters(written).replaceAll("\r", "");
}
