/**
 * A virtual machine with BIOS or UEFI, booting from the network by iPXE or by what it gets over TFTP, and where that
 * comes to nothing from its disk, if it has one.
 *
 * QEMU's user network needs no root: it answers the machine's DHCP and TFTP itself, names the boot file there, and what
 * the machine sends to 10.0.2.2 arrives at this computer's loopback. What that network cannot offer, lan.ts does.
 */

import { accessSync, constants, readFileSync } from "node:fs";
import { unreachable } from "../../src/lib/errors.ts";
import type { Lan } from "./lan.ts";

/** This computer's loopback, as a machine sees it. */
export const hostSeenByMachine = "10.0.2.2";

/** The machine that a Group of manifests/quickstart selects. */
export const quickstartMachine = {
  mac: "52:54:00:a1:9c:ae",
  uuid: "a1b2c3d4-0000-4000-8000-00000000abcd",
} as const;

export const qemuProgram = "qemu-system-x86_64";
export const ipxeRom = "/usr/lib/ipxe/qemu/pxe-virtio.rom";
const ipxeEfiRom = "/usr/lib/ipxe/qemu/efi-virtio.rom";
const uefiCode = "/usr/share/OVMF/OVMF_CODE_4M.fd";
const uefiVariables = "/usr/share/OVMF/OVMF_VARS_4M.fd";
const secureBootCode = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd";
const armCode = "/usr/share/AAVMF/AAVMF_CODE.fd";
const armVariables = "/usr/share/AAVMF/AAVMF_VARS.fd";
const ipxeKernel = "/usr/lib/ipxe/ipxe.lkrn";

// SeaBIOS says "No bootable device" that long.
const nothingBootedMs = 1_000;

/** What runs the guest's instructions: `auto` is KVM where this user may use it, else QEMU's own translator (TCG). */
export type Accelerator = "auto" | "kvm" | "tcg";

/** SeaBIOS, or EDK II's OVMF, or the same for arm64. */
export type Firmware = "bios" | "uefi" | "uefi-arm64";

/** What the firmware starts. */
export type Loader =
  /** iPXE from the network card's ROM; DHCP gives it the URL to boot from. */
  | { readonly kind: "ipxe"; readonly url: string }
  /** A file below a directory that QEMU serves by TFTP, loaded by the PXE of the firmware (of a BIOS: of the card). */
  | { readonly kind: "tftp"; readonly directory: string; readonly file: string }
  /** iPXE from a disk or CD, with drivers of its own; DHCP gives it the URL to boot from. */
  | { readonly kind: "medium"; readonly image: string; readonly medium: "disk" | "cd"; readonly url: string }
  /** What a network offers to the firmware. */
  | { readonly kind: "lan"; readonly lan: Lan; readonly by: LanClient };

/** What the firmware asks a network with. */
type LanClient =
  /** Its own PXE; of a BIOS, the iPXE in the card's ROM. */
  | "pxe"
  /** UEFI HTTP Boot. */
  | "http"
  /** For the PXE of a BIOS: an iPXE that runs this script, and by it need not say that it is iPXE. */
  | { readonly script: string };

export interface Machine {
  readonly mac: string;
  readonly uuid: string;
  readonly firmware: Firmware;
  readonly loader: Loader;
  readonly accelerator?: Accelerator;
  /** A raw image, which the machine writes to: its second boot device. */
  readonly disk?: string;
  /** Another one, behind `disk`, from which the firmware does not boot by itself. */
  readonly secondDisk?: string;
  /** What its SMBIOS calls the serial number. */
  readonly serial?: string;
  /** The authorities that UEFI trusts for HTTPS: a file with an EFI signature list. */
  readonly tlsAuthorities?: string;
  /** The name that DHCP gives it. */
  readonly hostname?: string;
  /** A BIOS that begins anew when nothing booted, as those of real machines do. Else it stays where it is. */
  readonly isPersistent?: boolean;
  /** OVMF's variables with the keys that it trusts: Secure Boot is on. For the firmware `uefi`. */
  readonly secureBoot?: string;
}

/** The options of QEMU for a machine, without those of its serial line. */
export function qemuArguments(machine: Machine): readonly string[] {
  const {
    uuid,
    accelerator = "auto",
    disk,
    secondDisk,
    serial,
    tlsAuthorities,
    isPersistent = false,
    secureBoot,
  } = machine;
  return [
    ...["-nodefaults", "-display", "none"],
    ...(secureBoot === undefined ? firmwareArguments(machine.firmware) : secureBootArguments(secureBoot)),
    ...accelerators(machine.firmware, accelerator).flatMap((name) => ["-accel", name]),
    ...["-m", "512", "-uuid", uuid],
    ...(isPersistent ? ["-boot", `reboot-timeout=${nothingBootedMs}`] : ["-no-reboot"]),
    ...(serial === undefined ? [] : ["-smbios", `type=1,serial=${escaped(serial)}`]),
    ...loaderArguments(machine.loader),
    ...(tlsAuthorities === undefined ? [] : ["-fw_cfg", `name=etc/edk2/https/cacerts,file=${escaped(tlsAuthorities)}`]),
    ...(disk === undefined ? [] : diskArguments(disk)),
    ...(secondDisk === undefined ? [] : secondDiskArguments(secondDisk)),
    ...["-netdev", networkOptions(machine), "-device", `virtio-net-pci,netdev=net0,${cardOptions(machine)}`],
  ];
}

/** QEMU for the machine's processor, in the machine's network. */
export function commandOf({ firmware, loader }: Machine): readonly string[] {
  const program = firmware === "uefi-arm64" ? "qemu-system-aarch64" : qemuProgram;
  return loader.kind === "lan" ? [...loader.lan.enter, program] : [program];
}

function firmwareArguments(firmware: Firmware): readonly string[] {
  switch (firmware) {
    case "bios":
      // Without a screen SeaBIOS and what it starts write to the serial line.
      return ["-machine", "pc,graphics=off"];
    case "uefi":
      return ["-machine", "q35", ...flash(uefiCode, uefiVariables)];
    case "uefi-arm64":
      return ["-machine", "virt", "-cpu", "cortex-a57", ...flash(armCode, armVariables)];
    default:
      return unreachable(firmware);
  }
}

/** Only code in System Management Mode may write to the flash, so Linux cannot change the keys. */
function secureBootArguments(variables: string): readonly string[] {
  const globals = ["driver=cfi.pflash01,property=secure,value=on", "ICH9-LPC.disable_s3=1"];
  return [
    ...["-machine", "q35,smm=on"],
    ...globals.flatMap((setting) => ["-global", setting]),
    ...flash(secureBootCode, variables),
  ];
}

function flash(code: string, variables: string): readonly string[] {
  // The variables are written in a copy that QEMU throws away: every boot is the machine's first.
  const drives = [`readonly=on,file=${code}`, `snapshot=on,file=${variables}`];
  return drives.flatMap((drive) => ["-drive", `if=pflash,format=raw,${drive}`]);
}

/** What the machine has because of its loader, except the network. */
function loaderArguments(loader: Loader): readonly string[] {
  switch (loader.kind) {
    case "ipxe":
    case "tftp":
      return [];
    case "medium": {
      const device = loader.medium === "cd" ? "ide-cd" : "virtio-blk-pci";
      const drive = `if=none,id=medium,format=raw,readonly=on,file=${escaped(loader.image)}`;
      return ["-drive", drive, "-device", `${device},drive=medium,bootindex=0`];
    }
    case "lan":
      return clientArguments(loader);
    default:
      return unreachable(loader);
  }
}

function clientArguments({ by, lan }: Extract<Loader, { kind: "lan" }>): readonly string[] {
  // OVMF would try PXE by IPv4 first, and wait a minute for it.
  if (by === "pxe") return lan.version === "IPv6" ? withoutPxe("IPv4") : [];
  if (by !== "http") return ["-kernel", ipxeKernel, "-initrd", by.script];
  // OVMF would try both PXEs first.
  return withoutPxe("IPv4", "IPv6");
}

function withoutPxe(...versions: readonly ("IPv4" | "IPv6")[]): readonly string[] {
  return versions.flatMap((version) => ["-fw_cfg", `name=opt/org.tianocore/${version}PXESupport,string=n`]);
}

function diskArguments(file: string): readonly string[] {
  const drive = `if=none,id=disk0,format=raw,file=${escaped(file)}`;
  // OVMF tries the network in every other way before it goes on with the disk, and by IPv6 it waits for minutes.
  return ["-drive", drive, "-device", "virtio-blk-pci,drive=disk0,bootindex=1", ...withoutPxe("IPv6")];
}

function secondDiskArguments(file: string): readonly string[] {
  const drive = `if=none,id=disk1,format=raw,file=${escaped(file)}`;
  return ["-drive", drive, "-device", "virtio-blk-pci,drive=disk1,bootindex=2"];
}

function networkOptions({ loader, hostname, disk }: Machine): string {
  if (loader.kind === "lan") return `tap,id=net0,ifname=${loader.lan.tap},script=no,downscript=no`;
  const name = hostname === undefined ? "" : `,hostname=${escaped(hostname)}`;
  const versions = disk === undefined ? "" : ",ipv6=off";
  return `user,id=net0,${bootFileOptions(loader)}${name}${versions}`;
}

function bootFileOptions(loader: Exclude<Loader, { kind: "lan" }>): string {
  switch (loader.kind) {
    case "ipxe":
    case "medium":
      return `bootfile=${escaped(loader.url)}`;
    case "tftp":
      return `tftp=${escaped(loader.directory)},bootfile=${escaped(loader.file)}`;
    default:
      return unreachable(loader);
  }
}

/** A comma ends a value in QEMU's options unless it is doubled. */
function escaped(value: string): string {
  return value.replaceAll(",", ",,");
}

/** A BIOS has no network of its own: there iPXE is also the PXE that loads a file. UEFI has one, without any ROM. */
function cardRom({ firmware, loader }: Machine): string {
  if (firmware === "bios") return isLocal(loader) ? "" : ipxeRom;
  return loader.kind === "ipxe" ? ipxeEfiRom : "";
}

/** The card is the first boot device, unless the loader is on another one. */
function cardOptions(machine: Machine): string {
  // Without its legacy half the card has the PCI id for which the ROM was built; QEMU mends only ROMs of its choice.
  const options = `mac=${machine.mac},romfile=${cardRom(machine)},disable-legacy=on`;
  return isLocal(machine.loader) ? options : `${options},bootindex=0`;
}

/** The machine starts its loader from something else than the network, and that has a driver for the card. */
function isLocal(loader: Loader): boolean {
  return loader.kind === "medium" || (loader.kind === "lan" && typeof loader.by === "object");
}

function accelerators(firmware: Firmware, wanted: Accelerator): readonly string[] {
  if (firmware === "uefi-arm64") return ["tcg"];
  if (wanted !== "auto") return [wanted];
  // Not offered at all without permission: QEMU would complain before it falls back.
  return isUsable("/dev/kvm") && hasHardwareVirtualization() ? ["kvm", "tcg"] : ["tcg"];
}

/**
 * Some clouds give their machines a KVM made of software. It runs Linux, but stops in the 16-bit code of a BIOS, and
 * QEMU cannot say beforehand.
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
