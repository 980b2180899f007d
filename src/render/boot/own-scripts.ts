/**
 * Renders a Profile's own scripts: one for iPXE, instead of kernel, initrds and arguments, and one for GRUB. Their
 * variables are those of kernel and arguments, so nothing from a request gets into a script. davit serves the scripts
 * as rendered. Their authors are responsible for the commands, but no value in a script can contain a line break.
 */

import { RenderError } from "../core/render-error.ts";
import { plainText, type Rendered } from "../core/rendered.ts";
import { utf8Exceeds } from "../template/limits.ts";
import type { Template, Variables } from "../template/template.ts";
import type { FilledBoot } from "./boot.ts";
import { type Filled, piecesOf, textOf, valueMatches } from "./pieces.ts";

/** The source of a GRUB config: a boot section, or the Profile's own config. */
export type GrubSource = FilledBoot | { readonly kind: "config"; readonly config: Rendered };

/** The first line that iPXE requires of a script. */
const ipxeLine = "#!ipxe";
// No script in use is nearly as long. iPXE holds the script in memory together with kernel and initrds.
const maxScriptBytes = 1024 * 1024;

/**
 * Renders a script for iPXE.
 * @param compile makes a template of a text; the caller may cache templates.
 * @throws {RenderError} for a broken template, a first line other than `#!ipxe`, any control character in a value, a
 * control character other than line feed and tab elsewhere, or more than 1 MiB.
 */
export function renderIpxeScript(text: string, variables: Variables, compile: (text: string) => Template): Rendered {
  const script = renderGrubScript(text, variables, compile);
  if (script.body !== ipxeLine && !script.body.startsWith(`${ipxeLine}\n`)) throw new RenderError("noIpxeLine");
  return script;
}

/**
 * Renders a config for GRUB.
 * @throws {RenderError} as `renderIpxeScript`, but any first line is allowed.
 */
export function renderGrubScript(text: string, variables: Variables, compile: (text: string) => Template): Rendered {
  const filled: Filled = text.includes("{{") ? compile(text).pieces(variables) : text;
  const body = textOf(filled);
  if (valueMatches(piecesOf(filled), /\p{Cc}/u)) throw new RenderError("scriptValue");
  if (/(?![\n\t])\p{Cc}/u.test(body)) throw new RenderError("scriptControl");
  if (utf8Exceeds(body, maxScriptBytes)) throw new RenderError("scriptTooLarge");
  return { body, contentType: plainText, isShared: true };
}
