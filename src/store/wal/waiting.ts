/** The proposals that wait for the disk, in their order. */

import type { WalError } from "../core/log-port.ts";

export interface Proposal {
  readonly bytes: Uint8Array;
  /** See `ProposeOptions`. */
  readonly frees: boolean;
  readonly resolve: (sequence: number) => void;
  readonly reject: (error: WalError) => void;
}

// The most bytes of one write, unless a single proposal is larger. A larger write would delay its first proposal.
const maxBatchBytes = 8 * 1024 * 1024;

export class WaitingProposals {
  #proposals: Proposal[] = [];
  /** The bytes of all waiting proposals. */
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#proposals.length === 0;
  }

  /** True if a proposal of this size would bring the waiting bytes above `maxBytes`. False while nothing waits. */
  isOver(bytes: number, maxBytes: number): boolean {
    return this.#bytes > 0 && this.#bytes + bytes > maxBytes;
  }

  add(proposal: Proposal): void {
    this.#proposals.push(proposal);
    this.#bytes += proposal.bytes.length;
  }

  /** Removes the first proposals, as many as one write may have, and returns them. */
  take(): readonly Proposal[] {
    let bytes = 0;
    let count = 0;
    for (const proposal of this.#proposals) {
      if (count > 0 && bytes + proposal.bytes.length > maxBatchBytes) break;
      bytes += proposal.bytes.length;
      count += 1;
    }
    this.#bytes -= bytes;
    return this.#proposals.splice(0, count);
  }

  /**
   * Puts `first` in front, and removes the waiting proposals. If `keepsFreeing`, those that free room stay.
   * @returns the removed proposals.
   */
  keepOnly(first: readonly Proposal[], keepsFreeing: boolean): readonly Proposal[] {
    const isKept = ({ frees }: Proposal) => keepsFreeing && frees;
    const others = this.#proposals.filter((proposal) => !isKept(proposal));
    this.#proposals = [...first, ...this.#proposals.filter(isKept)];
    this.#bytes = this.#proposals.reduce((sum, { bytes }) => sum + bytes.length, 0);
    return others;
  }
}
