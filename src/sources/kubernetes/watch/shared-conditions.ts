/**
 * Lets the statuses of objects share equal conditions. Of 10,000 healthy objects, nearly all have the same conditions.
 * Their times are equal, too, if davit wrote them in the same second. Separate copies of the conditions would take more
 * memory than the objects themselves.
 */

import { isJsonObject, type JsonObject, type JsonValue } from "../../../model/json.ts";

// When the map is full, it is cleared. Little sharing is lost: a first sync makes only a few new conditions each
// second, and objects with the same time arrive together.
const maxKept = 1_024;
// Longer conditions report mistakes, and are different for each object. Sharing them would save nothing.
const maxLength = 512;

export class SharedConditions {
  readonly #kept = new Map<string, JsonValue>();

  /** Returns an equal status. If an earlier status had an equal condition, both share one object. */
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
