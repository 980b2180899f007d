/**
 * Reads the fields of a matchbox JSON file as Go's encoding/json reads them into a struct. Names can have any letter
 * case, null means absent, and one value of a wrong type makes the whole file unusable.
 */

import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/model/json.ts";
import { findJsonFault } from "../../../src/render/config/json-fault.ts";
import { findInYaml } from "../../../src/render/config/yaml.ts";
import { type TextPosition, textStart } from "../../../src/render/core/text-position.ts";
import { type ImportFindings, shown } from "./findings.ts";

export interface JsonFile {
  /** The file's path below the matchbox directory. */
  readonly path: string;
  readonly text: string;
}

/** Names in lower case, each with a text such as `before 0.3.0: name it selector`. */
type FormerNames = Readonly<Record<string, string>>;

/** Thrown for a file that matchbox would not load. A finding has already reported why. */
export class UnusableFile extends Error {}

export class JsonFields {
  readonly #file: JsonFile;
  readonly #findings: ImportFindings;
  readonly #parents: readonly string[];
  readonly #fields = new Map<string, { readonly name: string; readonly value: JsonValue }>();

  /**
   * Reads a file.
   * @param known every name that matchbox knows, in lower case. Other names are reported.
   * @param former names that only older versions of matchbox knew, each with which ones and what to do.
   * @throws {UnusableFile} if the file is not a JSON object, which is reported.
   */
  static of(file: JsonFile, findings: ImportFindings, known: readonly string[], former: FormerNames = {}): JsonFields {
    const fields = new JsonFields(file, findings, []);
    fields.#add(parsed(file, fields), known, former);
    return fields;
  }

  private constructor(file: JsonFile, findings: ImportFindings, parents: readonly string[]) {
    this.#file = file;
    this.#findings = findings;
    this.#parents = parents;
  }

  /** Returns the members of an object in a field. @throws {UnusableFile} if the value is not an object. */
  inner(field: string, known: readonly string[], former: FormerNames): JsonFields {
    const fields = new JsonFields(this.#file, this.#findings, [...this.#parents, this.#nameOf(field)]);
    fields.#add(this.object(field), known, former);
    return fields;
  }

  #add(object: JsonObject, known: readonly string[], former: FormerNames): void {
    for (const [name, value] of Object.entries(object)) {
      const field = known.find((each) => each === name.toLowerCase());
      if (field !== undefined) this.#fields.set(field, { name, value });
      else this.#reportUnknown(name, former);
    }
  }

  #reportUnknown(name: string, former: FormerNames): void {
    const { path, text } = this.#file;
    const at = findInYaml(text, this.#parents, name) ?? textStart;
    const since = new Map(Object.entries(former)).get(name.toLowerCase());
    if (since !== undefined) this.#findings.warn(path, `matchbox reads ${shown(name)} only in versions ${since}`, at);
    else this.#findings.error(path, `no version of matchbox has a field ${shown(name)}: correct or remove it`, at);
  }

  /** True for a field that is present and not null. */
  has(field: string): boolean {
    return (this.#fields.get(field)?.value ?? null) !== null;
  }

  /** Returns a text; empty if it is absent. @throws {UnusableFile} if the value is not a string. */
  text(field: string): string {
    const value = this.#value(field, "");
    return typeof value === "string" ? value : this.fail(`must be text, matchbox does not load the file`, field);
  }

  /** Returns a list of texts; empty if it is absent. @throws {UnusableFile} if the value is not a list of strings. */
  texts(field: string): readonly string[] {
    const value = this.#value(field, []);
    const texts = Array.isArray(value) ? value.map((each: JsonValue) => each ?? "") : [null];
    if (texts.every((each) => typeof each === "string")) return texts;
    return this.fail("must be a list of texts, matchbox does not load the file", field);
  }

  /** Returns an object; empty if it is absent. @throws {UnusableFile} if the value is not an object. */
  object(field: string): JsonObject {
    const value = this.#value(field, {});
    return isJsonObject(value) ? value : this.fail("must be an object, matchbox does not load the file", field);
  }

  /** Returns an object with only strings as values; empty if it is absent. @throws {UnusableFile} for anything else. */
  textObject(field: string): Readonly<Record<string, string>> {
    const entries = Object.entries(this.object(field)).map(([name, value]): [string, string] => {
      const text = value ?? "";
      if (typeof text === "string") return [name, text];
      return this.fail("must be text, matchbox does not load the file: write it in quotes", field, name);
    });
    return Object.fromEntries(entries);
  }

  /** Returns the place of a field, or of one of its members. */
  at(field: string, member?: string): TextPosition {
    const path = [...this.#parents, ...(member === undefined ? [] : [this.#nameOf(field)])];
    return findInYaml(this.#file.text, path, member ?? this.#nameOf(field)) ?? textStart;
  }

  /**
   * Reports why the file cannot be used.
   * @throws {UnusableFile}
   */
  fail(text: string, field: string, member?: string): never {
    const name = [...this.#parents, this.#nameOf(field), ...(member === undefined ? [] : [member])].join(".");
    this.#findings.error(this.#file.path, `${shown(name)} ${text}`, this.at(field, member));
    throw new UnusableFile();
  }

  /** Reports that the file is not a JSON object. @throws {UnusableFile} */
  failWhole(text: string, at: TextPosition): never {
    this.#findings.error(this.#file.path, text, at);
    throw new UnusableFile();
  }

  #value(field: string, absent: JsonValue): JsonValue {
    return this.#fields.get(field)?.value ?? absent;
  }

  #nameOf(field: string): string {
    return this.#fields.get(field)?.name ?? field;
  }
}

function parsed({ text }: JsonFile, fields: JsonFields): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isJsonObject(value)) return value;
    return fields.failWhole("must be a JSON object, matchbox does not load it", textStart);
  } catch (error) {
    // The message of the JavaScript engine quotes the text, so it is not used.
    if (!(error instanceof SyntaxError)) throw error;
    return fields.failWhole("is not JSON, matchbox does not load it: mend it here", findJsonFault(text) ?? textStart);
  }
}
