/** Reads a Butane document by the tables of `spec.ts`. The result has the names and types of Ignition. */

import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Node,
  type Scalar,
  visit,
  type YAMLMap,
} from "yaml";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { type IgnitionFields, ignitionConfig, type Shape } from "../core/ignition-fields.ts";
import { sourceMistake } from "../core/ignition-source.ts";
import { RenderError, type RenderReason } from "../core/render-error.ts";
import { positionAt } from "../core/text-position.ts";
import { faultOfForm, isPath } from "./forms.ts";
import { keyOf } from "./merge.ts";
import { booleanOf, integerOf, isNothing, textOfScalar } from "./scalars.ts";
import { type ButaneSpec, butaneFields, isOfVersion } from "./spec.ts";

/** As many as the package yaml allows for the other texts. */
const maxUsesOfAnchor = 100;

/** In characters. A text without aliases cannot reach it: a document has 1 MiB. */
const maxLength = 8 * 1024 * 1024;
/** Counted for each value, besides the text of a scalar. Empty mappings have no text. */
const valueLength = 6;

const reasonsOfScalars = {
  text: "butaneText",
  path: "butaneText",
  integer: "butaneInteger",
  boolean: "butaneBoolean",
} as const;

/** A mapping of the document, and the path of Ignition's fields to it, without the positions of lists. */
export interface ButaneMap {
  readonly node: YAMLMap;
  readonly path: readonly string[];
}

interface ButaneReaderOptions {
  /** The source of the document. */
  readonly text: string;
  readonly spec: ButaneSpec;
  /** Returns the members of a mapping without those that Ignition lacks. */
  readonly finish: (members: JsonObject, map: ButaneMap) => JsonObject;
}

export class ButaneReader {
  readonly #options: ButaneReaderOptions;
  readonly #anchored = new Map<Node, Node>();
  readonly #uses = new Map<Node, number>();
  #length = 0;

  constructor(options: ButaneReaderOptions) {
    this.#options = options;
  }

  /** @throws {RenderError} with the place of the first mistake. */
  read(document: Document.Parsed): JsonObject {
    this.#readAnchors(document);
    const { contents } = document;
    return isMap(contents) ? this.#members(contents, ignitionConfig, []) : this.refuse("butaneMapping", contents);
  }

  /** @throws {RenderError} with the place of a node. */
  refuse(reason: RenderReason, node: unknown): never {
    const offset = (isNode(node) && node.range?.[0]) || 0;
    throw new RenderError(reason, positionAt(this.#options.text, offset));
  }

  #readAnchors(document: Document.Parsed): void {
    const latest = new Map<string, Node>();
    visit(document, {
      Node: (_key, node) => {
        if (!isAlias(node)) {
          if (node.anchor !== undefined) latest.set(node.anchor, node);
          return;
        }
        this.#anchored.set(node, latest.get(node.source) ?? this.refuse("butaneAlias", node));
      },
    });
  }

  /** Returns the node of an alias, and every other node as it is. An alias of its own parent reaches the limit. */
  #resolved(node: unknown): unknown {
    const anchored = isAlias(node) ? this.#anchored.get(node) : undefined;
    if (anchored === undefined) return node;
    const uses = (this.#uses.get(anchored) ?? 0) + 1;
    this.#uses.set(anchored, uses);
    return uses > maxUsesOfAnchor ? this.refuse("butaneAlias", node) : anchored;
  }

  /** Returns a value as Ignition has it; undefined for an empty value, mapping or list. */
  #value(given: unknown, shape: Shape, path: readonly string[]): JsonValue | undefined {
    const node = this.#resolved(given);
    if (isNothing(node)) return undefined;
    const value = this.#given(node, shape, path);
    return typeof value === "object" && Object.keys(value).length === 0 ? undefined : value;
  }

  #given(node: unknown, shape: Shape, path: readonly string[]): Exclude<JsonValue, null> {
    if (typeof shape === "string") {
      return isScalar(node) ? this.#scalar(node, shape, path) : this.refuse(reasonsOfScalars[shape], node);
    }
    this.#count(0, node);
    if (shape.kind === "list") {
      return isSeq(node) ? this.#list(node.items, shape.of, path) : this.refuse("butaneList", node);
    }
    return isMap(node) ? this.#members(node, shape, path) : this.refuse("butaneMapping", node);
  }

  #count(length: number, node: unknown): void {
    this.#length += length + valueLength;
    if (this.#length > maxLength) this.refuse("butaneTooLarge", node);
  }

  #scalar(node: Scalar, shape: keyof typeof reasonsOfScalars, path: readonly string[]) {
    if (shape === "boolean") return booleanOf(node) ?? this.refuse("butaneBoolean", node);
    const isInteger = shape === "integer";
    const value = isInteger
      ? (integerOf(node) ?? this.refuse("butaneInteger", node))
      : textOfScalar(node).toWellFormed();
    this.#count(String(value).length, node);
    const { minor } = this.#options.spec;
    const fault = faultOfForm(value, path, minor);
    if (fault !== undefined) this.refuse(fault, node);
    if (shape === "path" && (value === "" || !isPath(value))) this.refuse("butanePath", node);
    const isBadSource = path.at(-1) === "source" && sourceMistake(String(value), minor) !== undefined;
    return isBadSource ? this.refuse("butaneSource", node) : value;
  }

  #list(items: readonly unknown[], shape: Shape, path: readonly string[]): readonly JsonValue[] {
    const values = items.map((item) => {
      const node = this.#resolved(item);
      if (isNothing(node)) this.refuse(typeof shape === "string" ? "butaneText" : "butaneMapping", item);
      return this.#given(node, shape, path);
    });
    const [name = ""] = path.slice(-1);
    const repeated = firstRepeated(values.map((value) => keyOf(name, value)));
    return repeated === -1 ? values : this.refuse("butaneDuplicate", items[repeated]);
  }

  #members(node: YAMLMap, shape: IgnitionFields, path: readonly string[]): JsonObject {
    const { spec, finish } = this.#options;
    const known = butaneFields(shape);
    const entries = node.items.flatMap(({ key, value }): [string, JsonValue][] => {
      const found = isScalar(key) ? known.get(textOfScalar(key)) : undefined;
      if (found === undefined || !isOfVersion(found, spec)) return this.refuse("butaneUnknown", key);
      const decoded = this.#value(value, found.field.shape, [...path, found.name]);
      return decoded === undefined ? [] : [[found.name, decoded]];
    });
    const members = finish(Object.fromEntries(entries), { node, path });
    for (const { name, field } of known.values()) {
      const isNeeded = field.needed === "asked" || (field.needed ?? Number.POSITIVE_INFINITY) <= spec.minor;
      const isGiven = members[name] !== undefined && members[name] !== "";
      if (isNeeded && !isGiven && path.length > 0) this.refuse("butaneMissing", node);
    }
    return members;
  }
}

/** Returns the position of the first key that an earlier one equals; -1 for none. Undefined keys are no keys. */
export function firstRepeated(keys: readonly (JsonValue | undefined)[]): number {
  const seen = new Set<JsonValue>();
  return keys.findIndex((key) => {
    if (key === undefined || key === "") return false;
    const isRepeated = seen.has(key);
    seen.add(key);
    return isRepeated;
  });
}
