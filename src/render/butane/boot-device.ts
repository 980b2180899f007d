/** What `boot_device` and `grub` of Fedora CoreOS become. The sizes and types are those of its disk image. */

import { isJsonObject, type JsonObject, type JsonValue, objectOf } from "../../model/json.ts";
import { isList, textOf } from "../core/values.ts";

const gptTypes = {
  reserved: "8DA63339-0007-60C0-C436-083AC8230908",
  bios: "21686148-6449-6E6F-744E-656564454649",
  prep: "9E1A2D38-C612-4316-AA26-8B49521E5A8B",
  esp: "C12A7328-F81F-11D2-BA4B-00A0C93EC93B",
} as const;

type BootPartition = keyof typeof gptTypes;

const sizesMiB: Readonly<Record<BootPartition, number>> = { reserved: 1, bios: 1, prep: 4, esp: 127 };
const bootSizeMiB = 384;

/** A layout: the two partitions before those of /boot and of the root, and how LUKS finds the root's partition. */
interface DiskLayout {
  readonly first: readonly [BootPartition, BootPartition];
  /** What follows the name of `luks.device`; undefined if the device is not given. */
  readonly suffix?: string;
  readonly device?: RegExp;
}

const layouts: ReadonlyMap<string, DiskLayout> = new Map<string, DiskLayout>([
  ["x86_64", { first: ["bios", "esp"] }],
  ["aarch64", { first: ["reserved", "esp"] }],
  ["ppc64le", { first: ["prep", "reserved"] }],
  ["s390x-eckd", { first: ["reserved", "reserved"], suffix: "2", device: /\/dev\/dasd[a-z]$/ }],
  ["s390x-zfcp", { first: ["reserved", "reserved"], suffix: "4", device: /\/dev\/sd[a-z]$/ }],
  ["s390x-virt", { first: ["reserved", "reserved"] }],
]);

/** The member of `boot_device` with a mistake, and the reason. */
export interface BootDeviceFault {
  readonly member: "layout" | "mirror" | "luks";
  readonly reason: "butaneLayout" | "butaneMirror" | "butaneLuks";
}

/** Returns the mistake in a `boot_device`. @param hasMainframes true if the version has the layouts of s390x. */
export function bootDeviceFault(bootDevice: JsonObject, hasMainframes: boolean): BootDeviceFault | undefined {
  const { layout: name, devices, luks, isCex } = read(bootDevice);
  const layout = layouts.get(name);
  const isMainframe = name.startsWith("s390x");
  if (layout === undefined || (isMainframe && !hasMainframes)) return { member: "layout", reason: "butaneLayout" };
  if (devices.length === 1 || (isMainframe && devices.length > 0)) return { member: "mirror", reason: "butaneMirror" };
  const device = textOf(luks.device);
  const isFound = layout.device === undefined || layout.device.test(device);
  const isClevis = luks.tpm2 === true || isList(luks.tang);
  if (!isFound || (isCex && (!isMainframe || isClevis))) return { member: "luks", reason: "butaneLuks" };
  return undefined;
}

/** Returns what a `boot_device` without a mistake adds to the config. */
export function bootDeviceConfig(bootDevice: JsonObject): JsonObject {
  const { layout: name, devices, luks, isCex } = read(bootDevice);
  const isLuks = luks.tpm2 === true || isList(luks.tang) || isCex;
  const layout = layouts.get(name);
  if (layout === undefined || (!isLuks && devices.length === 0)) return {};
  const isMirror = devices.length > 0;
  const partOfRoot = isMirror ? "/dev/md/md-root" : "/dev/disk/by-partlabel/root";
  const device = layout.suffix === undefined ? partOfRoot : `${textOf(luks.device)}${layout.suffix}`;
  return {
    storage: {
      ...(isMirror && mirror(devices, layout)),
      ...(isLuks && { luks: [luksOfRoot(luks, device, isCex)] }),
      filesystems: [
        ...(isMirror ? filesystemsOfMirror(devices, layout) : []),
        filesystem(isLuks ? "/dev/mapper/root" : partOfRoot, "xfs", "root"),
      ],
    },
  };
}

function read(bootDevice: JsonObject) {
  const { devices } = objectOf(bootDevice.mirror);
  const luks = objectOf(bootDevice.luks);
  return {
    layout: textOf(bootDevice.layout ?? "x86_64"),
    devices: isList(devices) ? devices : [],
    luks,
    isCex: isJsonObject(luks.cex) && luks.cex.enabled === true,
  };
}

function mirror(devices: readonly JsonValue[], { first }: DiskLayout): JsonObject {
  const disks = devices.map((device, at) => ({ device, partitions: partitions(first, at + 1), wipeTable: true }));
  // The superblock is at the end of the partition, because the BIOS version of GRUB reads no RAID.
  const boot = { ...raid("boot", devices), options: ["--metadata=1.0"] };
  return { disks, raid: [boot, raid("root", devices)] };
}

function partitions(first: DiskLayout["first"], disk: number): readonly JsonObject[] {
  return [
    ...first.map((part) => ({ label: `${part}-${disk}`, sizeMiB: sizesMiB[part], typeGuid: gptTypes[part] })),
    { label: `boot-${disk}`, sizeMiB: bootSizeMiB },
    { label: `root-${disk}` },
  ];
}

function raid(name: string, devices: readonly JsonValue[]): JsonObject {
  return { name: `md-${name}`, level: "raid1", devices: devices.map((_, at) => partition(name, at)) };
}

function filesystemsOfMirror(devices: readonly JsonValue[], { first }: DiskLayout): readonly JsonObject[] {
  const esps = first.includes("esp") ? devices : [];
  return [
    ...esps.map((_, at) => filesystem(partition("esp", at), "vfat", `esp-${at + 1}`)),
    filesystem("/dev/md/md-boot", "ext4", "boot"),
  ];
}

function partition(name: string, at: number): string {
  return `/dev/disk/by-partlabel/${name}-${at + 1}`;
}

function filesystem(device: string, format: string, label: string): JsonObject {
  return { device, format, label, wipeFilesystem: true };
}

function luksOfRoot(luks: JsonObject, device: string, isCex: boolean): JsonObject {
  const { tang, threshold, tpm2, discard, cex } = luks;
  const clevis = {
    ...(tang !== undefined && { tang }),
    ...(threshold !== undefined && { threshold }),
    ...(tpm2 !== undefined && { tpm2 }),
  };
  return {
    name: "root",
    label: "luks-root",
    device,
    ...(isCex ? { cex: cex ?? {} } : { clevis }),
    ...(discard !== undefined && { discard }),
    wipeVolume: true,
  };
}

/** Returns the config of GRUB that knows these users by `name` and `passwordHash`. */
export function grubText(users: readonly JsonObject[]): string {
  const passwords = users.map(({ name, passwordHash }) => `password_pbkdf2 ${textOf(name)} ${textOf(passwordHash)}`);
  const names = users.map(({ name }) => textOf(name)).join(" ");
  return `${["# Generated by davit", "", `set superusers="${names}"`, ...passwords].join("\n")}\n`;
}

/** Returns what a `grub` with users adds to the config. @param contents the resource with `grubText`. */
export function grubConfig(contents: JsonObject): JsonObject {
  return {
    storage: {
      filesystems: [{ device: "/dev/disk/by-label/boot", format: "ext4", path: "/boot" }],
      files: [{ path: "/boot/grub2/user.cfg", append: [contents] }],
    },
  };
}
