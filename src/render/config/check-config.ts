/** How the text of each config part is checked and served. A new part has a row here, and one in `model/profile.ts`. */

import { type GenericFormat, isGenericPart, type TemplateField, type TemplatePart } from "../../model/profile.ts";
import type { Rendered } from "../core/rendered.ts";
import { renderCloudConfig } from "./cloud-config.ts";
import { renderGeneric } from "./generic.ts";
import { isMeantAsJson, renderIgnition } from "./ignition.ts";

/** How a text becomes a config. */
interface Making {
  readonly raw: boolean;
  readonly format?: GenericFormat | undefined;
}

/**
 * Checks a template's result, or a finished document, and makes it an answer.
 * @throws {RenderError} for a config that its endpoint answers with 500.
 */
export type ConfigCheck = (text: string) => Rendered;

interface ConfigRules {
  /** The same function for the same rules, so that results may be kept by function and text. */
  readonly check: (making: Making) => ConfigCheck;
  /** True for a text whose check parses YAML, which takes long. */
  readonly isYaml: (text: string) => boolean;
}

const ignition: ConfigCheck = (text) => renderIgnition({ text, raw: false });
const rawIgnition: ConfigCheck = (text) => renderIgnition({ text, raw: true });
const anyText: ConfigCheck = (text) => renderGeneric(text, undefined);
const json: ConfigCheck = (text) => renderGeneric(text, "json");

const rules: Readonly<Record<TemplateField, ConfigRules>> = {
  ignition: { check: ({ raw }) => (raw ? rawIgnition : ignition), isYaml: (text) => !isMeantAsJson(text) },
  cloudConfig: { check: () => renderCloudConfig, isYaml: (text) => !text.startsWith("#!") },
  generic: { check: ({ format }) => (format === "json" ? json : anyText), isYaml: () => false },
};

export function rulesOf(part: TemplatePart): ConfigRules {
  return rules[isGenericPart(part) ? "generic" : part];
}
