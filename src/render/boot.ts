/** The boot section of a Profile, filled in for one Group: kernel, initrd and arguments are templates too. */

import type { KernelBoot } from "../model/profile.ts";
import { RenderError } from "./render-error.ts";
import type { Template, Variables } from "./template.ts";

/**
 * Renders every text of a boot section. `${...}` passes through: it is the client's. An initrd or argument that renders
 * to nothing is left out, so that a condition can surround it.
 * @param compile makes a template of a text; the caller may cache.
 * @throws {RenderError} for a broken template, an empty kernel, or a control character, which would end a script's line.
 */
export function renderBoot(
  boot: KernelBoot,
  variables: Variables,
  compile: (text: string) => Template,
): KernelBoot & { readonly kind: "kernel" } {
  const render = (text: string) => renderBootText(text, variables, compile);
  const kernel = render(boot.kernel);
  if (isBlank(kernel)) throw new RenderError("emptyKernel");
  return {
    kind: "kernel",
    kernel,
    initrd: boot.initrd.map(render).filter((text) => !isBlank(text)),
    args: boot.args.map(render).filter((text) => !isBlank(text)),
    efiInitrd: boot.efiInitrd,
  };
}

/**
 * Renders one text of a boot section.
 * @throws {RenderError} as `renderBoot`.
 */
export function renderBootText(text: string, variables: Variables, compile: (text: string) => Template): string {
  return oneLine(text.includes("{{") ? compile(text).render(variables) : text);
}

function oneLine(text: string): string {
  if (/\p{Cc}/u.test(text)) throw new RenderError("controlCharacter");
  return text;
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}
