/** The moments at which a crash loop kills. */

import { watch } from "node:fs";
import type { Pick } from "../helpers/fault-files.ts";

/**
 * Some time after so many writes were acknowledged or a file was begun; or at a start, when so much of the time that
 * the last one took has passed.
 */
export type Moment =
  | { readonly kind: "write"; readonly writes: number; readonly delayMs: number }
  | { readonly kind: "snapshot" | "segment"; readonly delayMs: number }
  | { readonly kind: "start"; readonly share: number };

export type WritingMoment = Exclude<Moment, { kind: "start" }>;

const unfinished = { snapshot: /\.snapshot\.tmp$/, segment: /\.log\.tmp$/ } as const;

export function anyMoment(pick: Pick): Moment {
  const kind = pick(6);
  if (kind < 3) return { kind: "write", writes: pick(1_200), delayMs: pick(20) };
  if (kind === 3) return { kind: "start", share: 0.3 + pick(80) / 100 };
  return { kind: kind === 4 ? "snapshot" : "segment", delayMs: pick(6) };
}

/** Waits for the occasion of a moment in one life of davit; its delay comes on top. */
export class Occasion {
  readonly #reached = Promise.withResolvers<void>();
  readonly #watching: { close(): void } | undefined;
  #writesLeft: number;

  constructor(moment: WritingMoment, dataDir: string) {
    this.#writesLeft = moment.kind === "write" ? moment.writes : Number.POSITIVE_INFINITY;
    if (moment.kind === "write") return;
    this.#watching = watch(dataDir, (_event, name) => {
      if (unfinished[moment.kind].test(name ?? "")) this.#reached.resolve();
    });
  }

  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  /** Is told of every write that was acknowledged. */
  noteWrite(): void {
    this.#writesLeft -= 1;
    if (this.#writesLeft < 0) this.#reached.resolve();
  }

  close(): void {
    this.#watching?.close();
  }
}
