/**
 * Writes iPXE scripts. Each line is a command, so a text with a line break would add a command. `renderBoot` refuses
 * such texts.
 */

import { assert, unreachable } from "../../lib/errors.ts";
import { identityLabels, type LabelPair, type Labels } from "../../model/labels/labels.ts";
import type { LocalBoot } from "../../model/permits/permit.ts";
import type { FilledBoot, FilledKernel } from "../boot/boot.ts";
import { parseInitrd } from "../boot/initrd.ts";
import { type Filled, textOf } from "../boot/pieces.ts";
import { plainText, type Rendered } from "../core/rendered.ts";
import { ipxeArguments } from "./arguments.ts";

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
  const commands = boot.kind === "local" ? localCommands(boot.local) : kernelCommands(boot);
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

function localCommands(local: LocalBoot): readonly string[] | undefined {
  switch (local) {
    case "exit":
      return ["exit"];
    case "sanboot":
      // 0x80 is the first disk of the BIOS. Without one, the firmware continues with its next device.
      return ["sanboot --no-describe --drive 0x80 || exit"];
    case "notFound":
      return undefined;
    default:
      return unreachable(local);
  }
}

function script(commands: readonly string[]): string {
  const lines = ["#!ipxe", ...commands];
  assert(
    lines.every((line) => !/[\r\n]/.test(line)),
    "A boot section with a line break reached the iPXE renderer",
  );
  return `${lines.join("\n")}\n`;
}
