/**
 * Writes iPXE scripts. Each line is a command, so a text with a line break would add a command. `renderBoot` refuses
 * such texts.
 */

import { assert, unreachable } from "../../lib/errors.ts";
import type { LocalBoot } from "../../model/local-boot.ts";
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
