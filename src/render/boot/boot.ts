/** Renders the boot section of a Profile for one Group. Kernel, initrds and arguments are templates, too. */

import type { BootFromDisk, KernelBoot } from "../../model/objects/profile.ts";
import { RenderError } from "../core/render-error.ts";
import type { Template, Variables } from "../template/template.ts";
import { wordsOf } from "./kernel-words.ts";
import { type Filled, hasValue, type Pieces, textOf, valueMatches } from "./pieces.ts";

/**
 * In characters. Linux takes only 2 to 4 KiB of arguments. Longer texts than this would make each request of GRUB slow,
 * because davit fills in the `${...}` tokens for each of these requests.
 */
const maxLength = 64 * 1024;

/**
 * A kernel section whose templates are rendered. In arguments, the parts that a tag printed stay marked, because davit
 * quotes them in another way for iPXE than for GRUB.
 */
export interface FilledKernel extends Omit<KernelBoot, "args"> {
  readonly kind: "kernel";
  readonly args: readonly Filled[];
}

export type FilledBoot = FilledKernel | ({ readonly kind: "local" } & BootFromDisk);

/**
 * Renders every text of a boot section. `${...}` stays as it is, for the client. An initrd or argument whose result is
 * empty is left out, so that a condition can enclose its whole text.
 * @param compile makes a template of a text; the caller may cache templates.
 * @throws {RenderError} for a broken template, an empty kernel, more than 64 KiB of text, a control character (a line
 * break would end the line of a script), or a value in kernel or initrd that a client would misread.
 */
export function renderBoot(boot: KernelBoot, variables: Variables, compile: (text: string) => Template): FilledKernel {
  const render = (text: string) => renderBootText(text, variables, compile);
  const location = (text: string) => locationText(render(text));
  const kernel = within("kernel", location, boot.kernel);
  if (isBlank(kernel)) throw new RenderError("emptyKernel").within("kernel");
  const initrd = boot.initrd
    .map((text, at) => within(`initrd[${at}]`, location, text))
    .filter((text) => !isBlank(text));
  const args = boot.args.map((text, at) => within(`args[${at}]`, render, text)).filter((text) => !isBlank(text));
  const length = [kernel, ...initrd, ...args].reduce((sum, filled) => sum + textOf(filled).length, 0);
  if (length > maxLength) throw new RenderError("bootTooLarge");
  return { kind: "kernel", kernel, initrd, args, efiInitrd: boot.efiInitrd };
}

/**
 * Renders one text of a boot section.
 * @throws {RenderError} for a broken template or a control character.
 */
export function renderBootText(text: string, variables: Variables, compile: (text: string) => Template): Filled {
  if (!text.includes("{{")) return oneLine(text);
  const pieces = compile(text).pieces(variables);
  const whole = oneLine(textOf(pieces));
  return hasValue(pieces) ? pieces : whole;
}

/** Renders the text of a field. Its errors name the field. */
function within<Result>(field: string, render: (text: string) => Result, text: string): Result {
  try {
    return render(text);
  } catch (error) {
    throw error instanceof RenderError ? error.within(field) : error;
  }
}

function oneLine(text: string): string {
  if (/\p{Cc}/u.test(text)) throw new RenderError("controlCharacter");
  return text;
}

/**
 * Returns the text of a location.
 * @throws {RenderError} for a value that could be more than a part of the location, such as a second word, an option or
 * a command.
 */
function locationText(filled: Filled): string {
  if (typeof filled !== "string" && isMisread(filled)) throw new RenderError("valueInLocation");
  return textOf(filled);
}

function isMisread(location: Pieces): boolean {
  if (valueMatches(location, /[\s"'\\${}]/)) return true;
  return wordsOf(location).some(({ source }) => {
    const [first] = source;
    const isCommandEnd = source.length > 0 && /^(?:\|\||&&|;)$/.test(textOf(source));
    return isCommandEnd || (first?.isValue === true && /^[#-]/.test(first.text));
  });
}

function isBlank(filled: Filled): boolean {
  return textOf(filled).trim() === "";
}
