/**
 * The port for what machines ask at the boot listener: the newest request of each machine. It is kept in memory only,
 * and the oldest is dropped first. Nothing that a machine sends opens anything: sightings are shown in statuses, and
 * make davit enroll unknown machines.
 */

/** An answered request of a machine. */
export interface MachineSighting {
  /** Of the request, as `identitiesOf` returns them. A request without any is no sighting. */
  readonly identities: readonly string[];
  /** Unix milliseconds. */
  readonly atMs: number;
  readonly address?: string;
  /** `namespace/name`; absent if no Group took the machine. */
  readonly group?: string;
  readonly profile?: string;
  /** What the machine asked for, such as `ipxe`, `ignition` or `report`. */
  readonly stage: string;
  /** `served`, or why the machine did not get it, such as `unapproved`. */
  readonly result: string;
  /** SHA-256 of the boot script. */
  readonly rendered?: string;
}

// As many machines as the ledger has room for, with two identities each.
const mostIdentities = 2 * 65_536;

export class Sightings {
  /** By identity; the oldest is first. */
  readonly #newest = new Map<string, MachineSighting>();
  readonly #most: number;
  readonly #listeners = new Set<(sighting: MachineSighting) => void>();

  constructor(most = mostIdentities) {
    this.#most = most;
  }

  /** Records a request. */
  saw(sighting: MachineSighting): void {
    for (const identity of sighting.identities) {
      this.#newest.delete(identity);
      this.#newest.set(identity, sighting);
    }
    for (const oldest of this.#newest.keys()) {
      if (this.#newest.size <= this.#most) break;
      this.#newest.delete(oldest);
    }
    if (sighting.identities.length === 0) return;
    for (const listener of this.#listeners) listener(sighting);
  }

  /** Returns the newest sighting with one of these identities. */
  of(identities: readonly string[]): MachineSighting | undefined {
    const found = identities.flatMap((identity) => this.#newest.get(identity) ?? []);
    return found.toSorted((a, b) => b.atMs - a.atMs)[0];
  }

  /** Calls `listener` with each sighting. @returns a function that ends the calls. */
  follow(listener: (sighting: MachineSighting) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
