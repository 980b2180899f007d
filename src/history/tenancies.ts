/**
 * Which machines named themselves at one network address, and when: what tells whose a request is that names nobody.
 * Bounded: of an address that many machines share it is only known that they do.
 */

interface Tenancy {
  /** The machine's, see `records.ts`. */
  readonly key: string;
  readonly fromMs: number;
  untilMs: number;
}

/** An address of a boot network has one machine at a time; more than these is a gateway's. */
const maxTenancies = 8;

export class Tenancies {
  readonly #gapMs: number;
  readonly #tenancies: Tenancy[] = [];
  /**
   * Of times before this nothing is known. It lies ahead while there are more machines than are counted: then nothing is
   * counted at all, until it is over and they are counted anew.
   */
  #unknownUntilMs = Number.NEGATIVE_INFINITY;

  /** @param gapMs a machine that names itself twice within it was there all the time between. */
  constructor(gapMs: number) {
    this.#gapMs = gapMs;
  }

  /** A machine names itself. */
  note(key: string, atMs: number): void {
    if (atMs < this.#unknownUntilMs) return;
    // A loop, since this is part of each request; mostly there is one.
    for (const known of this.#tenancies) {
      if (known.key !== key || atMs - known.untilMs > this.#gapMs) continue;
      known.untilMs = Math.max(known.untilMs, atMs);
      return;
    }
    this.#begin(key, atMs);
  }

  /** Who named itself so shortly before or after a time that a request of then may be its own; undefined for too many. */
  at(timeMs: number): readonly string[] | undefined {
    if (this.#unknownUntilMs >= timeMs - this.#gapMs) return undefined;
    const near = this.#tenancies.filter(
      ({ fromMs, untilMs }) => fromMs - this.#gapMs <= timeMs && timeMs <= untilMs + this.#gapMs,
    );
    return [...new Set(near.map(({ key }) => key))];
  }

  /** All that are known, whenever it was; the latest one first. */
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
