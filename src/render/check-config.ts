/** Checks a finished config by the rules of its kind, as its endpoint does before it answers. */

import type { GenericFormat, TemplatePart } from "../model/profile.ts";
import { renderCloudConfig } from "./cloud-config.ts";
import { renderGeneric } from "./generic.ts";
import { renderIgnition } from "./ignition.ts";

/** How a text becomes a config. */
interface Making {
  readonly raw: boolean;
  readonly format?: GenericFormat | undefined;
}

/**
 * Checks a template's result, or a finished document.
 * @throws {RenderError} for a config that its endpoint answers with 500.
 */
export function checkConfig(part: TemplatePart, text: string, { raw, format }: Making): void {
  if (part === "ignition") renderIgnition({ text, raw });
  else if (part === "cloudConfig") renderCloudConfig(text);
  else renderGeneric(text, format);
}
