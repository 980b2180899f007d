/**
 * Records which machines named themselves at one network address, and when. With this, davit assigns requests that name
 * no machine. The memory is limited: if an address has too many machines, only this fact is recorded.
 */

/** The time in which one machine named itself at the address. */
interface Tenancy {
  /** The key of the machine, see `records.ts`. */
  readonly key: string;
  fromMs: number;
  untilMs: number;
}

/** In a boot network, an address has one machine at a time. An address with more machines than this is a gateway. */
const maxTenancies = 8;

export class Tenancies {
  readonly #gapMs: number;
  readonly #tenancies: Tenancy[] = [];
  /**
   * Nothing is known about the time before this. If the address has too many machines, this is a future time, and
   * nothing is recorded until then.
   */
  #unknownUntilMs = Number.NEGATIVE_INFINITY;

  /** @param gapMs a machine that names itself twice within this time counts as present in the time between. */
  constructor(gapMs: number) {
    this.#gapMs = gapMs;
  }

  /** Records that a machine named itself. Times may come late, because followers report them. */
  note(key: string, atMs: number): void {
    if (atMs < this.#unknownUntilMs) return;
    // A plain loop, because every request runs this; usually there is one tenancy.
    for (const known of this.#tenancies) {
      if (known.key !== key || atMs - known.untilMs > this.#gapMs || known.fromMs - atMs > this.#gapMs) continue;
      known.fromMs = Math.min(known.fromMs, atMs);
      known.untilMs = Math.max(known.untilMs, atMs);
      return;
    }
    this.#begin(key, atMs);
  }

  /**
   * Returns the machines that a request at this time may be from: those that named themselves shortly before or after.
   * Undefined if this is not known, because there were too many machines.
   */
  at(timeMs: number): readonly string[] | undefined {
    if (this.#unknownUntilMs >= timeMs - this.#gapMs) return undefined;
    const near = this.#tenancies.filter(
      ({ fromMs, untilMs }) => fromMs - this.#gapMs <= timeMs && timeMs <= untilMs + this.#gapMs,
    );
    return [...new Set(near.map(({ key }) => key))];
  }

  /** Returns the only machine of `at`: `none` if there is none, undefined if there are several, or it is unknown. */
  onlyAt(timeMs: number): { readonly key: string } | "none" | undefined {
    if (this.#unknownUntilMs >= timeMs - this.#gapMs) return undefined;
    let only: Tenancy | undefined;
    // A plain loop, because most requests run this.
    for (const known of this.#tenancies) {
      if (known.fromMs - this.#gapMs > timeMs || timeMs > known.untilMs + this.#gapMs) continue;
      if (only !== undefined && only.key !== known.key) return undefined;
      only = known;
    }
    return only ?? "none";
  }

  /** The machines of all known times, the latest one first. */
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
      const latestMs = Math.max(atMs, ...this.#tenancies.map(({ untilMs }) => untilMs));
      this.#tenancies.length = 0;
      this.#unknownUntilMs = latestMs + this.#gapMs;
    } else {
      this.#tenancies.splice(this.#tenancies.indexOf(earliest), 1);
      this.#unknownUntilMs = Math.max(this.#unknownUntilMs, earliest.untilMs);
    }
  }
}
