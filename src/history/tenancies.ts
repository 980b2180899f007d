/**
 * Which machines named themselves at one network address, and when. This assigns requests that name no machine.
 * Bounded: if an address has too many machines, it only records that fact.
 */

interface Tenancy {
  /** The machine's, see `records.ts`. */
  readonly key: string;
  readonly fromMs: number;
  untilMs: number;
}

/** In a boot network, an address has one machine at a time. An address with more machines than this is a gateway. */
const maxTenancies = 8;

export class Tenancies {
  readonly #gapMs: number;
  readonly #tenancies: Tenancy[] = [];
  /**
   * Nothing is known of times before this. Too many machines set it to a future time: nothing is recorded until then,
   * and recording begins anew.
   */
  #unknownUntilMs = Number.NEGATIVE_INFINITY;

  /** @param gapMs a machine that names itself twice within this time counts as present in between. */
  constructor(gapMs: number) {
    this.#gapMs = gapMs;
  }

  /** A machine names itself. */
  note(key: string, atMs: number): void {
    if (atMs < this.#unknownUntilMs) return;
    // A plain loop, because every request runs this; usually there is one tenancy.
    for (const known of this.#tenancies) {
      if (known.key !== key || atMs - known.untilMs > this.#gapMs) continue;
      known.untilMs = Math.max(known.untilMs, atMs);
      return;
    }
    this.#begin(key, atMs);
  }

  /**
   * Machines that named themselves shortly before or after a time, so that a request at that time could be theirs;
   * undefined for too many.
   */
  at(timeMs: number): readonly string[] | undefined {
    if (this.#unknownUntilMs >= timeMs - this.#gapMs) return undefined;
    const near = this.#tenancies.filter(
      ({ fromMs, untilMs }) => fromMs - this.#gapMs <= timeMs && timeMs <= untilMs + this.#gapMs,
    );
    return [...new Set(near.map(({ key }) => key))];
  }

  /** All known machines, at any time; the latest one first. */
  get keys(): readonly string[] {
    const latestFirst = this.#tenancies.toSorted((one, other) => other.untilMs - one.untilMs);
    return [...new Set(latestFirst.map(({ key }) => key))];
  }

  #begin(key: string, atMs: number): void {
    if (this.#tenancies.length >= maxTenancies) this.#makeRoom(atMs);
    if (atMs >= this.#unknownUntilMs) this.#tenancies.push({ key, fromMs: atMs, untilMs: atMs });
  }

  #makeRoom(atMs: number): void {
    const earliest = this.#tenancies.reduce((one, other) => (other.untilMs < one.untilMs ? other : one));
    if (earliest.untilMs + this.#gapMs >= atMs) {
      this.#tenancies.length = 0;
      this.#unknownUntilMs = atMs + this.#gapMs;
    } else {
      this.#tenancies.splice(this.#tenancies.indexOf(earliest), 1);
      this.#unknownUntilMs = Math.max(this.#unknownUntilMs, earliest.untilMs);
    }
  }
}
