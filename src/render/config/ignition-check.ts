/**
 * Predicts which errors Ignition will report for the structure of a config. The result is only advice for the author.
 * davit serves the config anyway, because the machine's Ignition may know newer versions of the specification. Messages
 * name only fields of the specification: anything else in a config may be secret.
 */

import { unreachable } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import {
  type Field,
  type IgnitionFields,
  ignitionConfig,
  newestMinor,
  newestMinorOf2,
  type Shape,
} from "../core/ignition-fields.ts";
import { sourceMistake } from "../core/ignition-source.ts";
import { isList } from "../core/values.ts";

/** A fault in a config. */
interface IgnitionFinding {
  /** True if Ignition refuses the config. False if it ignores the fault, or only some releases refuse it. */
  readonly isRefused: boolean;
  readonly text: string;
  /** The path to the value with the fault: field names and list positions. */
  readonly path: readonly string[];
  /**
   * The member with the fault, if the value at `path` is an object. `text` never contains the name of an unknown field:
   * the user chose it, and it may be secret.
   */
  readonly member?: string;
}

// Further findings usually repeat the first ones.
const maxFindings = 5;

/** Checks a config that has a string at `ignition.version`. Returns at most five findings, in the config's order. */
export function checkIgnition(config: JsonObject): readonly IgnitionFinding[] {
  const version = isJsonObject(config.ignition) ? config.ignition.version : undefined;
  const { finding, minor } = readVersion(typeof version === "string" ? version : "");
  const check = new IgnitionCheck(minor ?? newestMinor);
  if (finding !== undefined) check.add(finding);
  if (minor !== undefined) check.value(config, ignitionConfig, []);
  return check.findings;
}

/** Reads the version. Returns `minor` only for specification 3: fields of other specifications are not checked. */
function readVersion(version: string): { readonly finding?: IgnitionFinding; readonly minor?: number } {
  const [, major = "", minorText = "", experimental] = /^([23])\.(\d|[1-9]\d)\.0(-experimental)?$/.exec(version) ?? [];
  const minor = Number(minorText);
  const versions = `2.0.0 to 2.${newestMinorOf2}.0 and 3.0.0 to 3.${newestMinor}.0`;
  if (major === "") return { finding: ofVersion(true, `is no version of the specification, which are ${versions}`) };
  const known = major === "2" ? {} : { minor };
  if (experimental !== undefined) {
    return { ...known, finding: ofVersion(false, "is experimental: most releases of Ignition refuse it") };
  }
  if (minor <= (major === "2" ? newestMinorOf2 : newestMinor)) return known;
  return { ...known, finding: ofVersion(false, `is not known to this version of davit, which knows ${versions}`) };
}

function ofVersion(isRefused: boolean, text: string): IgnitionFinding {
  return { isRefused, path: ["ignition", "version"], text: `ignition.version ${text}` };
}

class IgnitionCheck {
  readonly #minor: number;
  readonly #findings: IgnitionFinding[] = [];

  constructor(minor: number) {
    this.#minor = minor;
  }

  get findings(): readonly IgnitionFinding[] {
    return this.#findings;
  }

  add(finding: IgnitionFinding): void {
    if (this.#findings.length < maxFindings) this.#findings.push(finding);
  }

  /** Checks a value and everything in it. Null counts as absent, as in Ignition. */
  value(value: JsonValue, shape: Shape, path: readonly string[]): void {
    if (value === null || this.#findings.length === maxFindings) return;
    const mistake = mistakeOf(value, shape);
    const ofSource =
      path.at(-1) === "source" && typeof value === "string" ? sourceMistake(value, this.#minor) : undefined;
    const found = mistake ?? ofSource;
    if (found !== undefined) this.add({ isRefused: true, path, text: `${nameOf(path)} ${found}` });
    else if (typeof shape !== "string" && shape.kind === "fields") this.#object(value, shape, path);
    else if (typeof shape !== "string" && isList(value)) this.#list(value, shape.of, path);
  }

  #list(values: readonly JsonValue[], shape: Shape, path: readonly string[]): void {
    for (const [at, value] of values.entries()) {
      const isObject = typeof shape !== "string" && shape.kind === "fields";
      // Ignition reads a null in a list of objects as an empty object.
      this.value(value === null && isObject ? {} : value, shape, [...path, String(at)]);
    }
  }

  #object(value: JsonValue, { fields }: IgnitionFields, path: readonly string[]): void {
    if (!isJsonObject(value)) return;
    for (const [name, member] of Object.entries(value)) this.#member(name, member, { field: fields.get(name), path });
    for (const [name, field] of fields) {
      if ((value[name] ?? null) === null || value[name] === "") this.#missing(name, field, path);
    }
  }

  #member(
    name: string,
    value: JsonValue,
    at: { readonly field: Field | undefined; readonly path: readonly string[] },
  ): void {
    const { field, path } = at;
    const place = { isRefused: false, path, member: name };
    if (field === undefined) {
      const where = path.length === 0 ? "the config" : nameOf(path);
      this.add({ ...place, text: `${where} has a field that the specification has not: Ignition passes over it` });
    } else if (field.since > this.#minor) {
      const text = `${nameOf([...path, name])} came with 3.${field.since}.0: older configs cannot have it`;
      this.add({ ...place, text });
    } else {
      this.value(value, field.shape, [...path, name]);
    }
  }

  #missing(name: string, { needed }: Field, path: readonly string[]): void {
    if (needed === undefined || (needed !== "asked" && needed > this.#minor)) return;
    this.add({ isRefused: needed !== "asked", path, text: `${nameOf([...path, name])} is missing` });
  }
}

/**
 * Returns the mistake in the type or form of a value; undefined if there is none. It does not check members or
 * elements.
 */
function mistakeOf(value: JsonValue, shape: Shape): string | undefined {
  switch (shape) {
    case "text":
      return typeof value === "string" ? undefined : "must be a text";
    case "integer":
      return Number.isInteger(value) ? undefined : "must be a whole number";
    case "boolean":
      return typeof value === "boolean" ? undefined : "must be true or false";
    case "path":
      if (value === "") return undefined;
      return typeof value === "string" && value.startsWith("/") ? undefined : "must be a path that begins with a slash";
    default:
      return mistakeOfMany(value, shape);
  }
}

function mistakeOfMany(value: JsonValue, shape: Exclude<Shape, string>): string | undefined {
  switch (shape.kind) {
    case "list":
      return isList(value) ? undefined : "must be a list";
    case "fields":
      return isJsonObject(value) ? undefined : "must be an object";
    default:
      return unreachable(shape);
  }
}

/** Writes a path as `storage.files[0].path`. All its names come from the specification, so none is secret. */
function nameOf(path: readonly string[]): string {
  return path.map((step, at) => (/^\d/.test(step) ? `[${step}]` : `${at === 0 ? "" : "."}${step}`)).join("");
}
