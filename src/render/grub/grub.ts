/**
 * GRUB configs, in a shape that boots every GRUB tried (2.06 and 2.12, BIOS and UEFI). The documented entry comes
 * first. Then come functions for commands that a build may lack, and a line that resolves plain paths on the requested
 * server. GRUB uses a function only if the command is missing, and runs an entry after it has read the whole file.
 *
 * Every word is quoted. Data never becomes syntax, and one value is never two words.
 */

import { unreachable } from "../../lib/errors.ts";
import type { Labels } from "../../model/labels.ts";
import type { LocalBoot } from "../../model/profile.ts";
import type { FilledBoot, FilledKernel } from "../boot/boot.ts";
import { parseInitrd } from "../boot/initrd.ts";
import { wordsOf } from "../boot/kernel-words.ts";
import { textOf } from "../boot/pieces.ts";
import { plainText, type Rendered } from "../core/rendered.ts";
import { type GrubGuard, guardedLines } from "./guard.ts";
import { fillTokens, kernelWord, quote } from "./words.ts";

/** Between device and address: only one old fork reads the documented semicolon, every GRUB reads the comma. */
export type GrubSeparator = "auto" | "semicolon" | "comma";
/** The command pair: `linuxefi` and `initrdefi`, or `linux` and `initrd`. */
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
  /** `host:port` of davit for machines, from the configuration: GRUB's own Host header lacks the port. */
  readonly authority: string;
  readonly separator: GrubSeparator;
  readonly commands: GrubCommands;
  readonly isGrubClient: boolean;
  /** The machine that may boot it; undefined for every machine. */
  readonly guard?: GrubGuard | undefined;
}

/**
 * Writes the config of a boot section.
 * @returns undefined for local boot by `notFound`: that means to answer no config.
 * @throws {RenderError} for a value in an argument that GRUB cannot hand to the kernel unchanged.
 */
export function renderGrub(input: GrubInput): Rendered | undefined {
  const { boot } = input;
  if (boot.kind === "kernel") return rendered([...entry(kernelLines(boot, input), input), ...recipe(input)]);
  const lines = localLines(boot.local);
  return lines && rendered(entry(lines, input));
}

/**
 * GRUB has no command like sanboot, so the script does the same: it starts the disk itself where the firmware would
 * not.
 */
function localLines(local: LocalBoot): readonly string[] | undefined {
  switch (local) {
    case "exit":
      return ["exit"];
    case "sanboot":
      return [...startDisk, "exit"];
    case "notFound":
      return undefined;
    default:
      return unreachable(local);
  }
}

// When GRUB exits, UEFI sees success, and some firmware then shows its setup and waits. A BIOS continues. The files are
// where every firmware looks for a loader on a disk, the first for x86-64 and the second for arm64: a loader of the
// wrong processor does not load.
const startDisk = [
  `if [ "$grub_platform" = "efi" ]; then`,
  "for loader in /EFI/BOOT/BOOTX64.EFI /EFI/BOOT/BOOTAA64.EFI; do",
  `if search --no-floppy --set=root --file "$loader"; then`,
  `if chainloader "$loader"; then`,
  "boot",
  "fi",
  "fi",
  "done",
  "fi",
] as const;

function rendered(lines: readonly string[]): Rendered {
  return { body: `${lines.join("\n")}\n`, contentType: plainText };
}

function entry(lines: readonly string[], { title, guard }: GrubInput): readonly string[] {
  const whole = [`menuentry ${quote(title)} {`, ...lines, "}"];
  return ["default=0", "timeout=1", ...(guard === undefined ? whole : guardedLines(whole, guard))];
}

function kernelLines({ kernel, initrd, args }: FilledKernel, input: GrubInput): readonly string[] {
  const usesEfi = usesEfiCommands(input);
  const location = (text: string) =>
    quote(textOf(fillTokens(locationOf(parseInitrd(text).location, input), input.labels)));
  const words = args.flatMap(wordsOf).map(({ bare }) => quote(kernelWord(fillTokens(bare, input.labels))));
  const lines = [`echo "Loading kernel"`, [usesEfi ? "linuxefi" : "linux", location(kernel), ...words].join(" ")];
  // Without an initrd there is no line: GRUB refuses the bare command.
  if (initrd.length === 0) return lines;
  return [...lines, `echo "Loading initrd"`, [usesEfi ? "initrdefi" : "initrd", ...initrd.map(location)].join(" ")];
}

function usesEfiCommands({ commands, labels }: GrubInput): boolean {
  switch (commands) {
    case "efi":
      return true;
    case "plain":
      return false;
    case "auto":
      // GRUB for arm64 never had the efi names.
      return !["arm64", "aarch64"].includes(labels.get("arch") ?? "");
    default:
      return unreachable(commands);
  }
}

/** A location in GRUB's spelling. It stays unchanged if it has a device, or is neither a path nor an HTTP URL. */
function locationOf(text: string, input: GrubInput): string {
  if (text.startsWith("/")) return isPlain(input) ? text : `${deviceOf(input.authority, input)}${text}`;
  const [, host, path = ""] = /^http:\/\/([^/]+)(.*)$/is.exec(text) ?? [];
  return host === undefined ? text : `${deviceOf(host, input)}${path === "" ? "/" : path}`;
}

/** True for plain paths: the recipe's last line resolves them on the requested server, so no address is wrong. */
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
