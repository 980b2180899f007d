/**
 * A map by the values of a label. It finds a MAC address by its two halves, as numbers. In a map by texts, a search
 * reads the text of each entry that it compares, and with 100,000 machines it waits for memory each time. Numbers of 31
 * bits are in the map itself.
 */
export class ValueMap<Kept> {
  readonly #texts = new Map<string, Kept>();
  /** MAC addresses: by their first three bytes, then by their last three. */
  readonly #macs = new Map<number, Map<number, Kept>>();

  get isEmpty(): boolean {
    return this.#texts.size === 0 && this.#macs.size === 0;
  }

  get(value: string): Kept | undefined {
    if (!isMac(value)) return this.#texts.get(value);
    return this.#macs.get(halfOf(value, 0))?.get(halfOf(value, secondHalf));
  }

  set(value: string, kept: Kept): void {
    if (!isMac(value)) {
      this.#texts.set(value, kept);
      return;
    }
    const first = halfOf(value, 0);
    const ofFirst = this.#macs.get(first) ?? new Map<number, Kept>();
    this.#macs.set(first, ofFirst.set(halfOf(value, secondHalf), kept));
  }

  delete(value: string): void {
    if (!isMac(value)) {
      this.#texts.delete(value);
      return;
    }
    const first = halfOf(value, 0);
    const ofFirst = this.#macs.get(first);
    ofFirst?.delete(halfOf(value, secondHalf));
    if (ofFirst?.size === 0) this.#macs.delete(first);
  }

  *values(): Iterable<Kept> {
    yield* this.#texts.values();
    for (const ofFirst of this.#macs.values()) yield* ofFirst.values();
  }
}

const macLength = 17;
/** Where the last three bytes begin in `52:54:00:12:34:56`. */
const secondHalf = 9;

/** True for a MAC address of six bytes in the form of labels. Only such a text has numbers, and each its own. */
function isMac(value: string): boolean {
  return value.length === macLength && macForm.test(value);
}

const macForm = /^[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}$/;

/** Returns three bytes of a MAC address as a number. */
function halfOf(mac: string, from: number): number {
  let half = 0;
  for (let at = from; at < from + secondHalf; at += 3) {
    half = (half << 8) | (digitOf(mac.charCodeAt(at)) << 4) | digitOf(mac.charCodeAt(at + 1));
  }
  return half;
}

/** Returns the value of a lower-case hexadecimal digit: `a` is 0x61, and `0` is 0x30. */
function digitOf(code: number): number {
  return code > 0x60 ? code - 0x57 : code - 0x30;
}
