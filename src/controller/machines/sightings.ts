/**
 * The port for what machines ask at the boot listener: the newest request of each machine. It is kept in memory only,
 * and the oldest is dropped first. Nothing that a machine sends opens anything: sightings are shown in statuses, and
 * make davit enroll unknown machines.
 */

import { type MachineSighting, withScriptOf } from "../../model/sighting.ts";

// As many machines as the ledger has room for, with two identities each.
const mostIdentities = 2 * 65_536;

/** @param isOwn false for a request that a follower has answered: it is only shown. */
type SightingListener = (sighting: MachineSighting, isOwn: boolean) => void;

export class Sightings {
  /** By identity; the oldest is first. */
  readonly #newest = new Map<string, MachineSighting>();
  readonly #most: number;
  readonly #listeners = new Set<SightingListener>();

  constructor(most = mostIdentities) {
    this.#most = most;
  }

  /** Records a request. */
  saw(sighting: MachineSighting): void {
    this.#record(sighting, true);
  }

  /** Records a request that a follower has answered, unless a newer one is known. */
  heard(sighting: MachineSighting): void {
    const known = this.of(sighting.identities);
    if (known === undefined || known.atMs < sighting.atMs) this.#record(sighting, false);
  }

  #record(newest: MachineSighting, isOwn: boolean): void {
    const sighting = withScriptOf(newest, this.of(newest.identities));
    for (const identity of sighting.identities) {
      this.#newest.delete(identity);
      this.#newest.set(identity, sighting);
    }
    for (const oldest of this.#newest.keys()) {
      if (this.#newest.size <= this.#most) break;
      this.#newest.delete(oldest);
    }
    if (sighting.identities.length === 0) return;
    for (const listener of this.#listeners) listener(sighting, isOwn);
  }

  /** Returns the newest sighting with one of these identities. */
  of(identities: readonly string[]): MachineSighting | undefined {
    const found = identities.flatMap((identity) => this.#newest.get(identity) ?? []);
    return found.toSorted((a, b) => b.atMs - a.atMs)[0];
  }

  /** Calls `listener` with each sighting. @returns a function that ends the calls. */
  follow(listener: SightingListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
