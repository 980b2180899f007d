/**
 * Writes iPXE scripts. Each line is a command, so a text with a line break would add a command. `renderBoot` refuses
 * such texts.
 */

import { assert, unreachable } from "../../lib/errors.ts";
import { identityLabels, type LabelPair, type Labels } from "../../model/labels/labels.ts";
import type { BootFromDisk } from "../../model/objects/profile.ts";
import type { DiskLoaders } from "../../model/permits/permit.ts";
import type { FilledBoot, FilledKernel } from "../boot/boot.ts";
import { firstDrive, usualLoaders } from "../boot/disk-loaders.ts";
import { parseInitrd } from "../boot/initrd.ts";
import { hasOpenQuote, isFilled, isHarmless, isOneWord, quoted, type Word, wordsOf } from "../boot/kernel-words.ts";
import { type Filled, type Pieces, textOf, valueMatches } from "../boot/pieces.ts";
import { RenderError } from "../core/render-error.ts";
import { plainText, type Rendered } from "../core/rendered.ts";

/**
 * The answer at `/boot.ipxe`. It makes the client send its attributes and ask for its own script. The target is
 * relative, so it also works below a path prefix. The client fills in the `${...}` tokens.
 */
export const bootScript = `#!ipxe
chain ipxe?uuid=\${uuid}&mac=\${mac:hexhyp}&domain=\${domain}&hostname=\${hostname}&serial=\${serial}
`;
const bootLabels: ReadonlySet<string> = new Set(["uuid", "mac", "domain", "hostname", "serial"]);

/**
 * Returns the answer at `/chain.ipxe`: like `bootScript`, with more settings of iPXE, and with the labels of its own
 * query. `arch` is what the processor can run: `buildarch` of a BIOS build is `i386` on every machine. A build without
 * `cpuid` takes `buildarch`. An unescaped colon would make iPXE read a scheme, so MAC addresses have hyphens.
 * @param own labels of the query, which replace settings of the same name.
 * @returns undefined for a label that names a machine, because one URL is for many, and for a text that iPXE would
 * change on its way: a control character, and `&` or `+`, whose escapes some versions undo.
 */
export function chainScript(own: Labels): Rendered | undefined {
  const texts = [...own].flat();
  if (own.flaws !== undefined || identityLabels.some((name) => own.has(name))) return undefined;
  if (texts.some((text) => /[\p{Cc}&+\uFFFD]/u.test(text))) return undefined;
  const sent = chainSettings.filter(([name]) => !own.has(name)).map((pair) => pair.join("="));
  const passed = [...own].map((pair) => `&${pair.map(escapedForIpxe).join("=")}`).join("");
  const arch = `cpuid --ext 29 && set arch x86_64 || set arch \${buildarch}`;
  const before = `#!ipxe\n${arch}\nchain ipxe?${sent.join("&")}`;
  const ofRequest = [before.length, before.length + passed.length];
  return { body: `${before}${passed}\n`, contentType: plainText, ofRequest };
}

const chainSettings: readonly LabelPair[] = [
  ["uuid", `\${uuid}`],
  ["mac", `\${mac:hexhyp}`],
  ...["domain", "hostname", "serial"].map((name): LabelPair => [name, `\${${name}:uristring}`]),
  ...["arch", "buildarch", "platform"].map((name): LabelPair => [name, `\${${name}}`]),
  ...["manufacturer", "product", "asset"].map((name): LabelPair => [name, `\${${name}:uristring}`]),
  ...["net0/mac", "net1/mac", "net2/mac", "net3/mac"].map((name): LabelPair => [name, `\${${name}:hexhyp}`]),
];

/** The labels that iPXE sends after `/chain.ipxe` but not after `/boot.ipxe`. */
export const chainOnlyLabels: ReadonlySet<string> = new Set(
  chainSettings.map(([name]) => name).filter((name) => !bootLabels.has(name)),
);

function escapedForIpxe(text: string): string {
  const code = (letter: string) => `%${letter.codePointAt(0)?.toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, code);
}

/**
 * Writes the script of a boot section that `renderBoot` has filled in.
 * @returns undefined for local boot by `notFound`: the client then gets no script.
 * @throws {RenderError} for a value in an argument that iPXE cannot hand to the kernel unchanged.
 */
export function renderIpxe(boot: FilledBoot): Rendered | undefined {
  const commands = boot.kind === "local" ? localCommands(boot) : kernelCommands(boot);
  return commands && { body: script(commands), contentType: plainText };
}

function kernelCommands({ kernel, initrd, args, efiInitrd }: FilledKernel): readonly string[] {
  const extra = efiInitrd ? initrdArguments(initrd, args) : [];
  const { settings, texts } = ipxeArguments([...args, ...extra]);
  return [...settings, ["kernel", kernel, ...texts].join(" "), ...initrd.map((text) => `initrd ${text}`), "boot"];
}

/**
 * Returns an `initrd=` argument for each initrd that no argument names yet. An older UEFI iPXE hands an initrd to the
 * kernel only by this argument.
 */
function initrdArguments(initrd: readonly string[], args: readonly Filled[]): readonly Filled[] {
  const words = new Set(args.flatMap((arg) => textOf(arg).split(/\s+/)));
  const names = initrd.map((text) => parseInitrd(text).name).filter((name) => name !== "");
  return names.map((name) => `initrd=${name}`).filter((arg) => !words.has(arg));
}

function localCommands({ local, disk }: BootFromDisk): readonly string[] | undefined {
  switch (local) {
    case "exit":
      return ["exit"];
    case "sanboot":
      return disk === undefined ? [startFirstDisk] : diskCommands(disk);
    case "notFound":
      return undefined;
    default:
      return unreachable(local);
  }
}

// Without such a disk, the firmware continues with its next device.
const startFirstDisk = `${startDrive(firstDrive)} || exit`;

function startDrive(drive: number): string {
  return `sanboot --no-describe --drive 0x${drive.toString(16)}`;
}

/**
 * Starts a disk by its loader on UEFI, and by its number on a BIOS. There `--drive 0` would be the floppy disk. On UEFI
 * it is any disk since iPXE's commit b1c13cc4 of March 2024. Before, `sanboot` finds no local disk on UEFI and fails,
 * and before 2017 it does not know `--filename`. So an older iPXE reaches the last line.
 */
function diskCommands({ efi, bios = firstDrive }: DiskLoaders): readonly string[] {
  const start = (path: string) => `sanboot --no-describe --drive 0 --filename ${path.replaceAll("/", "\\")} && exit ||`;
  const ofBios = `iseq \${platform} efi || ${startDrive(bios)} || exit`;
  if (efi !== undefined) return [ofBios, ...efi.map(start), "exit"];
  const cpu = `iseq \${buildarch} arm64 && set ${cpuName} aa64 || set ${cpuName} x64`;
  return [ofBios, cpu, ...usualLoaders(`\${${cpuName}}`).map(start), startFirstDisk];
}

// The prefix `davit-` keeps this from overwriting a setting of the machine or the author.
const cpuName = "davit-cpu";

function script(commands: readonly string[]): string {
  const lines = ["#!ipxe", ...commands];
  assert(
    lines.every((line) => !/[\r\n]/.test(line)),
    "A boot section with a line break reached the iPXE renderer",
  );
  return `${lines.join("\n")}\n`;
}

interface IpxeArguments {
  /** Commands before the kernel's line: nearly always none. */
  readonly settings: readonly string[];
  /** One text for each argument. */
  readonly texts: readonly string[];
}

/**
 * Writes a kernel's arguments as iPXE reads them. iPXE splits a line at white space. A word `||`, `&&` or `;` ends a
 * command, and a word that begins with `#` ends the line. Then iPXE fills in each `${...}` of a word, until none is
 * left. It passes the words on with one blank between them. Quotes and backslashes have no meaning to iPXE. (Measured
 * with 1.0.0+ of 2019.)
 *
 * So davit quotes a value with blanks for Linux. If iPXE would misread one of its words, davit replaces each blank with
 * a `${...}` that contains a blank. iPXE fills it in after it has split the line. The author's own text stays
 * unchanged.
 * @throws {RenderError} for a value that iPXE or Linux would misread in every form that davit can write.
 */
function ipxeArguments(args: readonly Filled[]): IpxeArguments {
  if (args.every(isHarmless)) return { settings: [], texts: args.map(textOf) };
  // An open quote of the author would change the meaning of the quotes that davit puts around a value.
  if (args.some(hasOpenQuote)) throw new RenderError("openQuote");
  const texts = args.map((arg) => (typeof arg === "string" ? arg : wordsOf(arg).map(wordText).join(" ")));
  const usesBlank = texts.some((text) => text.includes(blank));
  return { settings: usesBlank ? [`set ${blankName}:hex 20`] : [], texts };
}

// The prefix `davit-` keeps this from overwriting a setting of the machine or the author.
const blankName = "davit-blank";
const blank = `\${${blankName}:string}`;

function wordText(word: Word): string {
  const { source } = word;
  if (!isFilled(word)) return textOf(source);
  if (makesToken(source)) throw new RenderError("valueIsToken");
  const shapes = [source, quoted(word)].filter(isOneWord).map(textOf);
  const written = [...shapes, ...shapes.map((text) => text.replaceAll(" ", blank))].find(isReadAsWritten);
  if (written === undefined) throw new RenderError("valueIsNoWord");
  return written;
}

/** True if a value would become part of a `${...}` that iPXE fills in. iPXE has no escape against that. */
function makesToken(word: Pieces): boolean {
  const hasOwnToken = word.some(({ text, isValue }) => !isValue && text.includes("${"));
  if (hasOwnToken) return valueMatches(word, /[${}]/);
  const text = textOf(word);
  const begin = text.indexOf("${");
  return begin >= 0 && text.indexOf("}", begin) >= 0;
}

/** True if iPXE keeps every word and every blank of a text. */
function isReadAsWritten(text: string): boolean {
  return text.split(" ").every((word) => word !== "" && !/^(?:#.*|\|\||&&|;)$/s.test(word));
}
