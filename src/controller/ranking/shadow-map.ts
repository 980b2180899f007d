/** A map from each Group that loses all of its machines to the Group that wins them, and back. */

/** By the ids of the Groups. */
export class ShadowMap {
  readonly #winners = new Map<string, string>();
  readonly #losers = new Map<string, Set<string>>();

  /** Replaces a Group's winner; undefined for a Group that loses to no other, or is gone. */
  set(loser: string, winner: string | undefined): void {
    const before = this.#winners.get(loser);
    if (before === winner) return;
    if (before !== undefined) removeFrom(this.#losers, before, loser);
    this.#winners.delete(loser);
    if (winner === undefined) return;
    this.#winners.set(loser, winner);
    addTo(this.#losers, winner, loser);
  }

  /** The Groups that lose to this one. */
  to(winner: string): Iterable<string> {
    return this.#losers.get(winner) ?? [];
  }
}

export function addTo<Value>(sets: Map<string, Set<Value>>, key: string, value: Value): void {
  const set = sets.get(key) ?? new Set<Value>();
  sets.set(key, set.add(value));
}

export function removeFrom<Value>(sets: Map<string, Set<Value>>, key: string, value: Value): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}
