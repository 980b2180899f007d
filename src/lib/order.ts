/** An order of texts that does not depend on the locale or on UTF-16, so that it is the same everywhere. */

/**
 * Compares two strings by the bytes of their UTF-8 form, as etcd and matchbox do.
 * JavaScript's own `<` compares UTF-16 units, and so puts U+1F600 before U+FFFD.
 * @returns a negative number, zero or a positive number.
 */
export function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const unitA = a.charCodeAt(at);
    const unitB = b.charCodeAt(at);
    if (unitA !== unitB) return rank(unitA) - rank(unitB);
  }
  return a.length - b.length;
}

// Surrogates encode code points above U+FFFF, so they come after every other unit.
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
