/**
 * A Profile's own scripts: for iPXE instead of kernel, initrds and arguments, and for GRUB. They are templates over the
 * same variables as those, so that nothing of the request gets into them, and they are served as rendered. Their author
 * is responsible for the commands, but a value in a script never begins a line.
 */

import { RenderError } from "../core/render-error.ts";
import { plainText, type Rendered } from "../core/rendered.ts";
import { utf8Exceeds } from "../template/limits.ts";
import type { Template, Variables } from "../template/template.ts";
import type { FilledBoot } from "./boot.ts";
import { type Filled, piecesOf, textOf, valueMatches } from "./pieces.ts";

/** The source of a GRUB config: a boot section, or the Profile's own config. */
export type GrubSource = FilledBoot | { readonly kind: "config"; readonly config: Rendered };

/** The required first line of a script for iPXE. */
const ipxeLine = "#!ipxe";
// Far above the longest scripts in use. iPXE holds the script in memory together with kernel and initrds.
const maxScriptBytes = 1024 * 1024;

/**
 * Renders a script for iPXE.
 * @param compile makes a template of a text; the caller may cache.
 * @throws {RenderError} for a broken template, another first line, a control character other than line feed and tab, any
 * of them in a value, or more than 1 MiB.
 */
export function renderIpxeScript(text: string, variables: Variables, compile: (text: string) => Template): Rendered {
  const script = renderGrubScript(text, variables, compile);
  if (script.body !== ipxeLine && !script.body.startsWith(`${ipxeLine}\n`)) throw new RenderError("noIpxeLine");
  return script;
}

/**
 * Renders a config for GRUB.
 * @throws {RenderError} as `renderIpxeScript`, the first line aside.
 */
export function renderGrubScript(text: string, variables: Variables, compile: (text: string) => Template): Rendered {
  const filled: Filled = text.includes("{{") ? compile(text).pieces(variables) : text;
  const body = textOf(filled);
  if (valueMatches(piecesOf(filled), /\p{Cc}/u)) throw new RenderError("scriptValue");
  if (/(?![\n\t])\p{Cc}/u.test(body)) throw new RenderError("scriptControl");
  if (utf8Exceeds(body, maxScriptBytes)) throw new RenderError("scriptTooLarge");
  return { body, contentType: plainText, isShared: true };
}
