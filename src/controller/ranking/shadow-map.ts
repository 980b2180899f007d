/** Which Group was told to lose to which other one, by their ids. */

export class ShadowMap {
  readonly #winners = new Map<string, string>();
  readonly #losers = new Map<string, Set<string>>();

  /** Replaces what is known of a Group; undefined for one that loses to nobody, or is gone. */
  set(loser: string, winner: string | undefined): void {
    const before = this.#winners.get(loser);
    if (before === winner) return;
    if (before !== undefined) this.#forget(loser, before);
    if (winner === undefined) return;
    this.#winners.set(loser, winner);
    const losers = this.#losers.get(winner) ?? new Set<string>();
    this.#losers.set(winner, losers.add(loser));
  }

  /** Who loses to this one. */
  to(winner: string): Iterable<string> {
    return this.#losers.get(winner) ?? [];
  }

  #forget(loser: string, winner: string): void {
    this.#winners.delete(loser);
    const losers = this.#losers.get(winner);
    losers?.delete(loser);
    if (losers?.size === 0) this.#losers.delete(winner);
  }
}
