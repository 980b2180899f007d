/** Which parts of a text come from the request. */

/** A part of a text, in UTF-16 units. */
export interface TextPart {
  readonly from: number;
  readonly to: number;
}

export class RequestParts {
  /** In order. None is empty. */
  readonly list: readonly TextPart[];

  /** @param offsets the start and end of each part, in order. */
  constructor(offsets: readonly number[]) {
    const all = offsets.flatMap((from, at) => (at % 2 === 0 ? [{ from, to: offsets[at + 1] ?? from }] : []));
    this.list = all.filter(({ from, to }) => from < to);
  }

  /** The end of the last part; 0 without parts. */
  get end(): number {
    return this.list.at(-1)?.to ?? 0;
  }

  /** Returns the part with a character; undefined if the request did not write it. */
  at(offset: number): TextPart | undefined {
    const part = this.#endingAfter(offset);
    return part !== undefined && part.from <= offset ? part : undefined;
  }

  /** True if the request wrote any of these characters. */
  isIn(from: number, to: number): boolean {
    const part = this.#endingAfter(from);
    return part !== undefined && part.from < to;
  }

  /** Returns the offsets of the parts in the text without a character. */
  without(character: string, text: string): readonly number[] {
    const moved = (offset: number) => offset - (text.slice(0, offset).split(character).length - 1);
    return this.list.flatMap(({ from, to }) => [moved(from), moved(to)]);
  }

  #endingAfter(offset: number): TextPart | undefined {
    let [low, high] = [0, this.list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.list[middle]?.to ?? 0) > offset) high = middle;
      else low = middle + 1;
    }
    return this.list[low];
  }
}
