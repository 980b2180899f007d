/** Which Group was reported as losing to which other Group, by their ids. */

export class ShadowMap {
  readonly #winners = new Map<string, string>();
  readonly #losers = new Map<string, Set<string>>();

  /** Replaces a Group's winner; undefined for a Group that loses to no other, or is gone. */
  set(loser: string, winner: string | undefined): void {
    const before = this.#winners.get(loser);
    if (before === winner) return;
    if (before !== undefined) this.#forget(loser, before);
    if (winner === undefined) return;
    this.#winners.set(loser, winner);
    const losers = this.#losers.get(winner) ?? new Set<string>();
    this.#losers.set(winner, losers.add(loser));
  }

  /** The Groups that lose to this one. */
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
