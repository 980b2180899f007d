/**
 * Stores the reserved labels of machines. A machine sends the same labels again and again: one set from its firmware,
 * and often a smaller one from its operating system. All requests of a machine with the same set share one stored copy.
 */

import { type Labels, reservedLabels } from "../../model/labels/labels.ts";
import { CountedValues } from "./counted-values.ts";
import { ownCopy } from "./shared-texts.ts";

const names = [...reservedLabels];

/**
 * The longest value that a selector can name. Machines can send longer values, which only expressions such as `Prefix`
 * or `Exists` can match. The history does not record them, because one request can send values of several KiB.
 */
const maxValueLength = 253;

/** Values in the order of `names`. */
type LabelSet = readonly (string | undefined)[];

/** Estimated memory of a set besides its values. */
const setBytes = 200;

export class LabelSets {
  readonly #sets = new CountedValues<LabelSet>();
  #sizeBytes = 0;

  /** Memory of all sets, estimated. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Adds a machine's labels and counts one use of them. @returns the set's number. */
  add(labels: Labels): number {
    const set = names.map((name) => {
      const value = keptValue(labels, name);
      return value === undefined ? undefined : ownCopy(value);
    });
    this.#sizeBytes += sizeOf(set);
    return this.#sets.add(set);
  }

  use(id: number): number {
    return this.#sets.use(id);
  }

  release(id: number): void {
    const set = this.#sets.release(id);
    if (set !== undefined) this.#sizeBytes -= sizeOf(set);
  }

  /** True if a set equals the recorded part of these labels. */
  is(id: number, labels: Labels): boolean {
    const set = this.#sets.get(id);
    if (set === undefined) return false;
    // A plain loop, because every request runs this.
    for (let at = 0; at < names.length; at++) if (set[at] !== keptValue(labels, names[at] ?? "")) return false;
    return true;
  }

  /** True if a set has this value of a label. */
  has(id: number, name: string, value: string): boolean {
    const set = this.#sets.get(id);
    return set !== undefined && set[names.indexOf(name)] === value;
  }

  /** Returns the labels of a set by its number. Number 0 means no set, so its result is empty. */
  get(id: number): Labels {
    const set = this.#sets.get(id) ?? [];
    return new Map(
      names.flatMap((name, at) => {
        const value = set[at];
        return value === undefined ? [] : [[name, value] as const];
      }),
    );
  }
}

/** Returns a label's value as the history records it; undefined for a missing, empty or too long value. */
export function keptValue(labels: Labels, name: string): string | undefined {
  const value = labels.get(name);
  return value === undefined || value === "" || value.length > maxValueLength ? undefined : value;
}

function sizeOf(set: LabelSet): number {
  return set.reduce((sum, value) => sum + (value === undefined ? 0 : value.length * 2 + 24), setBytes);
}
