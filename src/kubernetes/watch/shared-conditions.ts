/**
 * Conditions of statuses, each kept once: of 10,000 healthy objects nearly all say the same, and objects written in one
 * second carry the same time. Separate copies would take more memory than the objects themselves.
 */

import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";

// A first sync makes a handful of new conditions each second, and the objects of that second come together.
const maxKept = 1_024;
// Conditions that report a mistake are longer, and unique to their object.
const maxLength = 512;

export class SharedConditions {
  readonly #kept = new Map<string, JsonValue>();

  /** The same status, its conditions shared with those that were seen before. */
  of(status: JsonObject): JsonObject {
    const { conditions } = status;
    if (!Array.isArray(conditions)) return status;
    return { ...status, conditions: conditions.map((condition: JsonValue) => this.#share(condition)) };
  }

  #share(condition: JsonValue): JsonValue {
    if (!isJsonObject(condition)) return condition;
    const text = JSON.stringify(condition);
    if (text.length > maxLength) return condition;
    const known = this.#kept.get(text);
    if (known !== undefined) return known;
    if (this.#kept.size >= maxKept) this.#kept.clear();
    this.#kept.set(text, condition);
    return condition;
  }
}
