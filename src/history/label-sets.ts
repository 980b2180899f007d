/**
 * The labels of machines as the history keeps them: the reserved ones. A machine sends the same set with each request,
 * or one of two (its firmware sends more than its system), so a set is kept once for all its requests.
 */

import { type Labels, reservedLabels } from "../model/labels.ts";
import { CountedValues } from "./counted-values.ts";
import { ownCopy } from "./shared-texts.ts";

const names = [...reservedLabels];

/** The longest value of a selector: a longer one selects nothing, and is not recorded. */
const maxValueLength = 253;

/** Values in the order of `names`. */
type LabelSet = readonly (string | undefined)[];

/** What a set takes beside its letters: its array, and a head for each text. */
const setBytes = 200;

export class LabelSets {
  readonly #sets = new CountedValues<LabelSet>();
  #sizeBytes = 0;

  /** Memory of all sets, estimated. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Takes a machine's labels in, used once. */
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

  /** True when a set is what would be kept of these labels. */
  is(id: number, labels: Labels): boolean {
    const set = this.#sets.get(id);
    if (set === undefined) return false;
    // A loop, since every request runs this.
    for (let at = 0; at < names.length; at++) if (set[at] !== keptValue(labels, names[at] ?? "")) return false;
    return true;
  }

  /** True when a set has this value of a label. */
  has(id: number, name: string, value: string): boolean {
    const set = this.#sets.get(id);
    return set !== undefined && set[names.indexOf(name)] === value;
  }

  /** The labels of a set; none for number 0. */
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

/** A label's value if the history keeps it; an empty one is not kept. */
export function keptValue(labels: Labels, name: string): string | undefined {
  const value = labels.get(name);
  return value === undefined || value === "" || value.length > maxValueLength ? undefined : value;
}

function sizeOf(set: LabelSet): number {
  return set.reduce((sum, value) => sum + (value === undefined ? 0 : value.length * 2 + 24), setBytes);
}
