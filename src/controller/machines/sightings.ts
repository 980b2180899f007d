/**
 * The port for what machines ask at the boot listener: the newest request of each machine. It is kept in memory only,
 * and the oldest is dropped first. Nothing that a machine sends opens anything: sightings are shown in statuses, and
 * make davit enroll unknown machines.
 */

import { LRUCache } from "lru-cache";
import { type MachineSighting, mayBeSightingOf, withLaterScript } from "../../model/sighting.ts";

// As many machines as the ledger has room for, with two identities each.
const mostIdentities = 2 * 65_536;

/** @param isOwn false for a request that a follower has answered: it is only shown. */
type SightingListener = (sighting: MachineSighting, isOwn: boolean) => void;

export class Sightings {
  /** By identity. */
  readonly #newest: LRUCache<string, MachineSighting>;
  readonly #listeners = new Set<SightingListener>();

  constructor(most = mostIdentities) {
    this.#newest = new LRUCache({ max: most });
  }

  /**
   * Records a request. It comes late, so a newer one may be known, and its script may still be the newest. A script
   * stays with its identity: a request can have the identities of two Machines.
   * @param isOwn false for a request that a follower has answered.
   */
  saw(sighting: MachineSighting, isOwn = true): void {
    let isNews = isOwn;
    for (const identity of sighting.identities) {
      const known = this.#newest.peek(identity);
      const isNewest = known === undefined || known.atMs < sighting.atMs || (isOwn && known.atMs === sighting.atMs);
      const shown = isNewest ? withLaterScript(sighting, known?.script) : withLaterScript(known, sighting.script);
      if (shown === known) continue;
      this.#newest.set(identity, shown);
      isNews = true;
    }
    if (!isNews || sighting.identities.length === 0) return;
    for (const listener of this.#listeners) listener(sighting, isOwn);
  }

  /**
   * Returns the newest sighting of a machine with these identities, and the newest script of any of them. A request
   * that contradicts the identities is another machine's.
   */
  of(identities: readonly string[]): MachineSighting | undefined {
    const found = this.#with(identities).filter((sighting) => mayBeSightingOf(sighting, identities));
    const [newest] = found;
    return newest && found.reduce((shown, { script }) => withLaterScript(shown, script), newest);
  }

  /** Returns the newest sighting with one of these identities, whichever machine it was. */
  newestWith(identities: readonly string[]): MachineSighting | undefined {
    return this.#with(identities)[0];
  }

  /** The newest one is first. */
  #with(identities: readonly string[]): readonly MachineSighting[] {
    const found = identities.flatMap((identity) => this.#newest.peek(identity) ?? []);
    return found.toSorted((a, b) => b.atMs - a.atMs);
  }

  /** Calls `listener` with each sighting. @returns a function that ends the calls. */
  follow(listener: SightingListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
