/**
 * A virtual machine with BIOS and Debian's iPXE in its network card, booting from the network alone. It has no disk.
 *
 * QEMU's user network needs no root: it answers the machine's DHCP itself, names `bootfile` there, and what the machine
 * sends to 10.0.2.2 arrives at this computer's loopback.
 */

import { spawn } from "node:child_process";
import { accessSync, constants, readFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";

/** This computer's loopback, as a machine sees it. */
export const hostSeenByMachine = "10.0.2.2";

/** The machine that a Group of manifests/quickstart selects. */
export const quickstartMachine = {
  mac: "52:54:00:a1:9c:ae",
  uuid: "a1b2c3d4-0000-4000-8000-00000000abcd",
} as const;

export const qemuProgram = "qemu-system-x86_64";
export const ipxeRom = "/usr/lib/ipxe/qemu/pxe-virtio.rom";

/** What runs the guest's instructions: `auto` is KVM where this user may use it, else QEMU's own translator (TCG). */
export type Accelerator = "auto" | "kvm" | "tcg";

export interface Machine {
  readonly mac: string;
  readonly uuid: string;
  /** URL that DHCP gives the machine to boot from. */
  readonly bootfile: string;
  readonly accelerator?: Accelerator;
}

/** Somebody at the machine's keyboard: types a line once it shows a text. */
export interface Typist {
  readonly waitsFor: string;
  readonly types: string;
}

/** The options of QEMU for a machine, but for where its serial line goes. */
export function qemuArguments({ mac, uuid, bootfile, accelerator = "auto" }: Machine): readonly string[] {
  return [
    // Without a screen SeaBIOS and iPXE write to the serial line.
    ...["-nodefaults", "-display", "none", "-machine", "pc,graphics=off"],
    ...accelerators(accelerator).flatMap((name) => ["-accel", name]),
    ...["-m", "512", "-uuid", uuid, "-no-reboot"],
    // A comma ends a value in QEMU's options unless it is doubled.
    ...["-netdev", `user,id=net0,bootfile=${bootfile.replaceAll(",", ",,")}`],
    // Without its legacy half the card has the PCI id for which the ROM was built; QEMU mends only ROMs of its own choice.
    ...["-device", `virtio-net-pci,netdev=net0,mac=${mac},romfile=${ipxeRom},disable-legacy=on,bootindex=0`],
  ];
}

/**
 * Boots a machine and waits until it powers itself off.
 * @param timeoutMs then it is cut off.
 * @returns all that firmware and Linux wrote to the serial line, without cursor movements and colours.
 * @throws {Error} when it was cut off or QEMU failed; the message ends with the last lines of its screen.
 */
export function bootMachine(
  machine: Machine,
  { timeoutMs, typist }: { readonly timeoutMs: number; readonly typist?: Typist },
): Promise<string> {
  const serial = ["-serial", "stdio", "-monitor", "none"];
  const qemu = spawn(qemuProgram, [...qemuArguments(machine), ...serial], {
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  let screen = "";
  let complaints = "";
  let hasTyped = false;
  qemu.stdout.setEncoding("latin1").on("data", (text: string) => {
    screen += text;
    if (typist === undefined || hasTyped || !plainText(screen).includes(typist.waitsFor)) return;
    hasTyped = true;
    qemu.stdin.write(typist.types);
  });
  qemu.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  return new Promise((resolve, reject) => {
    qemu.on("error", reject);
    qemu.on("close", (exitCode) => {
      const transcript = plainText(screen);
      if (exitCode === 0) return resolve(transcript);
      const what = exitCode === null ? `Machine not off after ${timeoutMs} ms` : `QEMU ended with ${exitCode}`;
      return reject(new Error(`${what}\n${complaints}\n${tail(transcript)}`));
    });
  });
}

/** The last lines of a transcript: enough to see where a boot stopped. */
export function tail(transcript: string): string {
  return transcript.split("\n").slice(-40).join("\n");
}

function accelerators(wanted: Accelerator): readonly string[] {
  if (wanted !== "auto") return [wanted];
  // Not offered at all without permission: QEMU would complain before it falls back.
  return isUsable("/dev/kvm") && hasHardwareVirtualization() ? ["kvm", "tcg"] : ["tcg"];
}

/**
 * Some clouds give their machines a KVM made of software. It runs Linux, but stops in the 16-bit code of a BIOS, and
 * QEMU cannot tell beforehand.
 */
function hasHardwareVirtualization(): boolean {
  return /^flags\s*:.*\s(vmx|svm)\s/m.test(readFileSync("/proc/cpuinfo", "utf8"));
}

function isUsable(device: string): boolean {
  try {
    accessSync(device, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function plainText(screen: string): string {
  return stripVTControlCharacters(screen).replaceAll("\r", "");
}
