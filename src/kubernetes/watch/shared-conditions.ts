/**
 * Lets the statuses of objects share equal conditions. Of 10,000 healthy objects nearly all have the same conditions,
 * and those written in the same second have the same time. Separate copies would take more memory than the objects.
 */

import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";

// A first sync makes a few new conditions each second, and the objects with equal conditions arrive together. So few
// conditions must be kept at a time.
const maxKept = 1_024;
// Longer conditions report mistakes. Each object has different ones.
const maxLength = 512;

export class SharedConditions {
  readonly #kept = new Map<string, JsonValue>();

  /** Returns an equal status that shares its conditions with the statuses before. */
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
