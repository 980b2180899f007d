/**
 * Checks the text of each config part and turns it into an answer. A new part needs a row here and one in
 * `model/objects/profile.ts`.
 */

import {
  type GenericFormat,
  isGenericPart,
  type TemplateField,
  type TemplatePart,
} from "../../model/objects/profile.ts";
import { RenderError } from "../core/render-error.ts";
import { jsonText, plainText, type Rendered } from "../core/rendered.ts";
import { isMeantAsJson, renderIgnition } from "./ignition.ts";
import { findJsonFault } from "./json-fault.ts";
import { parseYaml } from "./yaml.ts";

/** The settings of a template that decide how its text is checked. */
interface Making {
  readonly raw: boolean;
  readonly format?: GenericFormat | undefined;
}

/**
 * Checks a template's result, or a raw document, and returns the answer.
 * @throws {RenderError} for a config that cannot be served: its endpoint answers 500.
 */
export type ConfigCheck = (text: string) => Rendered;

interface ConfigRules {
  /** Returns the check. Equal rules return the same function, so that results can be cached by function and text. */
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

/**
 * Checks a cloud-config, rendered or raw. A cloud-config is the user data of cloud-init. A script (`#!`) is served
 * unchecked. The endpoint `/cloud`, which serves these texts, is deprecated.
 */
export function renderCloudConfig(text: string): Rendered {
  if (!text.startsWith("#!")) {
    if (!/^#cloud-config[ \t]*(?:\r?\n|$)/.test(text)) throw new RenderError("noCloudConfigLine");
    // Repeated keys are allowed: cloud-init uses the last value.
    parseYaml(text, "notYaml", false);
  }
  return { body: text, contentType: plainText };
}

/**
 * Returns a text with its content type: JSON if the whole text parses as JSON, else plain text. Without a format, the
 * text may be empty.
 * @param format the format that the Profile promises; undefined for any text.
 * @throws {RenderError} for a text that is not of the promised format.
 */
export function renderGeneric(text: string, format: GenericFormat | undefined): Rendered {
  const isWhole = isJson(text);
  if (format === "json" && !isWhole) throw new RenderError("notGenericJson", findJsonFault(text));
  return { body: text, contentType: isWhole ? jsonText : plainText };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
