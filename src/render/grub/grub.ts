/**
 * Writes GRUB configs in a form that boots every tested GRUB (2.06 and 2.12, BIOS and UEFI). A config begins with the
 * menu entry. Functions follow for the commands `linuxefi` and `initrdefi`, which a build of GRUB may lack. GRUB uses a
 * function only if it lacks the command. The last line makes GRUB read paths without a device from the server that sent
 * the config. GRUB runs the entry only after it has read the whole file, so all of this may follow the entry.
 *
 * Every word is quoted. So data never becomes syntax, and a value is never split into two words.
 */

import { unreachable } from "../../lib/errors.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { BootFromDisk } from "../../model/objects/profile.ts";
import type { DiskLoaders } from "../../model/permits/permit.ts";
import type { FilledBoot, FilledKernel } from "../boot/boot.ts";
import { firstDrive, usualLoaders } from "../boot/disk-loaders.ts";
import { parseInitrd } from "../boot/initrd.ts";
import { wordsOf } from "../boot/kernel-words.ts";
import { textOf } from "../boot/pieces.ts";
import { RenderError } from "../core/render-error.ts";
import { plainText, type Rendered } from "../core/rendered.ts";
import { type GrubGuard, guardedLines, rebooting } from "./guard.ts";
import { grubFile } from "./locations.ts";
import { fillTokens, kernelWord, quote } from "./words.ts";

/**
 * The character between `http` and the address. Every GRUB reads the comma, and only one old fork reads the semicolon.
 * `auto` writes the comma for GRUB itself, and the semicolon for other clients (docs/reference/api-boot.md).
 */
export type GrubSeparator = "auto" | "semicolon" | "comma";
/** The pair of commands: `linuxefi` and `initrdefi`, or `linux` and `initrd`. */
export type GrubCommands = "auto" | "efi" | "plain";

/** True for GRUB's own User-Agent. */
export function isGrub(userAgent = ""): boolean {
  return userAgent.startsWith("GRUB ");
}

export interface GrubInput {
  readonly title: string;
  /** A boot section that `renderBoot` has filled in. */
  readonly boot: FilledBoot;
  readonly labels: Labels;
  /**
   * `host:port` at which machines reach davit. It comes from the configuration, because GRUB's own Host header lacks
   * the port.
   */
  readonly authority: string;
  readonly separator: GrubSeparator;
  readonly commands: GrubCommands;
  /** True if GRUB itself asks: see `isGrub`. */
  readonly isGrubClient: boolean;
  /** Allows only one machine to boot the config; undefined if every machine may boot it. */
  readonly guard?: GrubGuard | undefined;
}

/**
 * Writes the config of a boot section.
 * @returns undefined for local boot by `notFound`: the client then gets no config.
 * @throws {RenderError} for a value in an argument that GRUB cannot hand to the kernel unchanged, for a token or a
 * location that only iPXE knows, and for words after an initrd.
 */
export function renderGrub(input: GrubInput): Rendered | undefined {
  const { boot } = input;
  if (boot.kind === "kernel") return rendered([...entry(kernelLines(boot, input), input), ...recipe(input)]);
  const lines = localLines(boot);
  return lines && rendered(entry(lines, input));
}

/**
 * Returns the lines for local boot; undefined for `notFound`. GRUB has no command like sanboot, so a script replaces
 * it. On UEFI the script starts the disk itself, because after `exit` the firmware may not do so.
 */
function localLines({ local, disk }: BootFromDisk): readonly string[] | undefined {
  switch (local) {
    case "exit":
      return ["exit"];
    case "sanboot":
      return [...(disk === undefined ? startDisk : startFoundDisk(disk)), "exit"];
    case "notFound":
      return undefined;
    default:
      return unreachable(local);
  }
}

// When GRUB exits, UEFI sees success. Some UEFI firmware then shows its setup and waits, while a BIOS continues with
// the next device. Every firmware looks for a loader on a disk at these paths: the first is for x86-64, the second for
// arm64. A loader for another processor does not load.
const everyDisk = ["/EFI/BOOT/BOOTX64.EFI", "/EFI/BOOT/BOOTAA64.EFI"];
const startDisk = [ifEfi(), ...startLoaders(everyDisk), "fi"];

function ifEfi(): string {
  return `if [ "$grub_platform" = "efi" ]; then`;
}

/** @param words paths of loaders, as words of GRUB's language. */
function startLoaders(words: readonly string[]): readonly string[] {
  return [
    `for loader in ${words.join(" ")}; do`,
    `if search --no-floppy --set=root --file "$loader"; then`,
    `if chainloader "$loader"; then`,
    "boot",
    "fi",
    "fi",
    "done",
  ];
}

/**
 * Starts a disk by its loader on UEFI, and by its number on a BIOS, where GRUB counts disks from 0. A GRUB from the
 * network reads partitions and the disks of a BIOS only with these modules, and loads none of them by itself.
 */
function startFoundDisk({ efi, bios = firstDrive }: DiskLoaders): readonly string[] {
  const usual = usualLoaders(`\${${cpuName}}`).map((path) => `"${path}"`);
  const loaders = efi === undefined ? [...usual, ...everyDisk] : efi.map(quote);
  const cpu = [`if [ "$grub_cpu" = "arm64" ]; then`, `set ${cpuName}=aa64`, "else", `set ${cpuName}=x64`, "fi"];
  return [
    ifEfi(),
    ...["part_gpt", "part_msdos", "fat"].map((name) => `insmod ${name}`),
    ...(efi === undefined ? cpu : []),
    ...startLoaders(loaders),
    "else",
    "insmod biosdisk",
    `set root=hd${bios - firstDrive}`,
    "if chainloader +1; then",
    "boot",
    "fi",
    "fi",
  ];
}

const cpuName = "davit_cpu";

function rendered(lines: readonly string[]): Rendered {
  return { body: `${lines.join("\n")}\n`, contentType: plainText };
}

function entry(lines: readonly string[], { title, guard }: GrubInput): readonly string[] {
  const whole = [`menuentry ${quote(title)} {`, ...lines, "}"];
  return ["default=0", "timeout=1", ...(guard === undefined ? whole : guardedLines(whole, guard))];
}

function kernelLines({ kernel, initrd, args }: FilledKernel, input: GrubInput): readonly string[] {
  const usesEfi = usesEfiCommands(input);
  const filled = (location: string) => quote(textOf(fillTokens(locationOf(location, input), input.labels)));
  const { location, rest } = parseInitrd(kernel);
  const words = [rest, ...args].flatMap(wordsOf).map(({ bare }) => quote(kernelWord(fillTokens(bare, input.labels))));
  const lines = [
    `echo "Loading kernel"`,
    [usesEfi ? "linuxefi" : "linux", filled(location), ...words].join(" "),
    ...unlessLoaded("kernel", input),
  ];
  // Without an initrd, the line is left out: GRUB refuses the command without a file.
  if (initrd.length === 0) return lines;
  return [
    ...lines,
    `echo "Loading initrd"`,
    [usesEfi ? "initrdefi" : "initrd", ...initrd.map(initrdLocation).map(filled)].join(" "),
    ...unlessLoaded("initrd", input),
  ];
}

// GRUB continues after a command that failed. If it refused the kernel, as under Secure Boot, `initrdefi` of 2.06
// corrupts its memory, and the machine waits for a key. Without its initrd, the kernel would start, and find another
// root or none. A GRUB without `test` or `reboot` passes these lines.
function unlessLoaded(what: "kernel" | "initrd", { isGrubClient }: GrubInput): readonly string[] {
  if (!isGrubClient) return [];
  return ['if [ "$?" != 0 ]; then', `echo "davit: GRUB did not load the ${what}."`, ...rebooting, "fi"];
}

function usesEfiCommands({ commands, labels }: GrubInput): boolean {
  switch (commands) {
    case "efi":
      return true;
    case "plain":
      return false;
    case "auto":
      // No GRUB for arm64 ever had the commands with `efi` in their names.
      return !["arm64", "aarch64"].includes(labels.get("arch") ?? "");
    default:
      return unreachable(commands);
  }
}

function initrdLocation(text: string): string {
  const { location, rest } = parseInitrd(text);
  if (rest !== "") throw new RenderError("grubInitrdWords");
  return location;
}

/**
 * Writes a location as GRUB reads it. A path or an HTTP URL gets a device such as `(http,192.0.2.1:8080)`. A path gets
 * none if `isPlain`.
 * @throws {RenderError} for a location that GRUB cannot load.
 */
function locationOf(text: string, input: GrubInput): string {
  const file = grubFile(text);
  switch (file?.kind) {
    case undefined:
      throw new RenderError("grubLocation");
    case "own":
      return isPlain(input) ? file.path : `${deviceOf(input.authority, input)}${file.path}`;
    case "http":
      return `${deviceOf(file.host, input)}${file.path}`;
    case "device":
      return file.text;
    default:
      return unreachable(file);
  }
}

/**
 * True if paths stay without a device. The last line of the config then resolves them on the server that GRUB asked, so
 * no address can be wrong.
 */
function isPlain({ separator, isGrubClient }: GrubInput): boolean {
  return separator === "auto" && isGrubClient;
}

function deviceOf(address: string, { separator, isGrubClient }: GrubInput): string {
  const usesComma = separator === "auto" ? isGrubClient : separator === "comma";
  return `(http${usesComma ? "," : ";"}${address})`;
}

function recipe(input: GrubInput): readonly string[] {
  const functions = usesEfiCommands(input)
    ? ["function linuxefi {", `linux "$@"`, "}", "function initrdefi {", `initrd "$@"`, "}"]
    : [];
  return [...functions, String.raw`regexp --set=1:root '^\((http.*)\)$' "$config_directory"`];
}
