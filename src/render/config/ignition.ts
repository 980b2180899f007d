/**
 * Checks Ignition configs. JSON is served byte for byte, so that signatures and diffs are predictable. YAML is served
 * as JSON, and so is Butane, after its translation. Anything that is not an Ignition object is refused: half a config
 * would install half a machine.
 */

import { isJsonObject, type JsonObject, type JsonValue, objectOf, parseJsonObject } from "../../model/json.ts";
import { isButane, translateButane } from "../butane/translate.ts";
import { RenderError, type RenderReason } from "../core/render-error.ts";
import { jsonText, type Rendered } from "../core/rendered.ts";
import type { TextPosition } from "../core/text-position.ts";
import { findJsonFault } from "./json-fault.ts";
import { documentToJson, parseYaml } from "./yaml.ts";

interface IgnitionInput {
  /** The rendered template, or the raw document. */
  readonly text: string;
  /** True for a raw document. It must be JSON, because its bytes are the answer. */
  readonly raw: boolean;
}

/**
 * Broken JSON up to this length is also read as YAML, which takes about 15 ms. Some mistakes, such as a value `0644`,
 * then get a better message.
 */
const maxTwice = 8 * 1024;

/**
 * Checks an Ignition config and returns the answer.
 * @throws {RenderError} for anything but an object with a string at `ignition.version`, or Butane without a mistake.
 */
export function renderIgnition(input: IgnitionInput): Rendered {
  const { text, raw } = input;
  const json = parseJsonObject(text);
  if (json !== undefined) return rendered(text, json);
  const reason = raw ? "notRawJson" : "notJson";
  const fault = isMeantAsJson(text) ? findJsonFault(text) : undefined;
  const value = readYaml(input, reason, fault);
  if (fault !== undefined) throw new RenderError(reason, fault);
  const converted = rendered(`${JSON.stringify(value)}\n`, value);
  if (raw) throw new RenderError(reason);
  return converted;
}

/**
 * True for a text that begins like JSON. It is never accepted as YAML, because YAML allows values whose quotes were
 * forgotten.
 */
export function isMeantAsJson(text: string): boolean {
  return /^\s*\{/.test(text);
}

/** Returns the value of a text that `renderIgnition` accepts. */
export function ignitionValue(text: string): JsonObject {
  return objectOf(parseJsonObject(text) ?? readYaml({ text, raw: false }, "notJson", undefined));
}

/**
 * Reads a text as YAML.
 * @param fault the place of the first JSON mistake, which is more precise than the place that the YAML parser finds.
 * Undefined for a text that does not begin like JSON.
 */
function readYaml(input: IgnitionInput, reason: RenderReason, fault: TextPosition | undefined): JsonValue {
  // A long text is not parsed a second time only for a better message.
  if (fault !== undefined && input.text.length > maxTwice) throw new RenderError(reason, fault);
  try {
    return yamlValue(input, reason, fault === undefined);
  } catch (error) {
    const isExplained = error instanceof RenderError && error.reason === reason && fault !== undefined;
    throw isExplained ? new RenderError(reason, fault) : error;
  }
}

function yamlValue({ text, raw }: IgnitionInput, reason: RenderReason, mayBeButane: boolean): JsonValue {
  const document = parseYaml(text, reason, true);
  if (!mayBeButane || !isButane(document)) return documentToJson(document, text, reason);
  if (raw) throw new RenderError("butane");
  if (document.warnings.length > 0) throw new RenderError(reason);
  return translateButane(document, text);
}

function rendered(body: string, value: JsonValue): Rendered {
  if (!isIgnition(value)) throw new RenderError(hasVariant(value) ? "butane" : "notIgnition");
  return { body, contentType: jsonText };
}

/**
 * True for a text without tags that seems to have a key `variant`, as Butane documents have. `renderIgnition` decides
 * for certain.
 */
export function mayBeButane(text: string): boolean {
  return !text.includes("{{") && /(?:^|[{,])[ \t]*["']?variant["']?\s*:/m.test(text);
}

function isIgnition(value: JsonValue): boolean {
  return isJsonObject(value) && isJsonObject(value.ignition) && typeof value.ignition.version === "string";
}

/** True for a Butane document, which names its dialect in `variant`. Machines cannot read such documents. */
function hasVariant(value: JsonValue): boolean {
  return isJsonObject(value) && Object.hasOwn(value, "variant");
}
