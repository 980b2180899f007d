/** Asks the same thing over and over, and remembers every answer. */

import { nextTurn } from "../../src/lib/slices.ts";

export class Poll<Answer> {
  readonly #answers = new Set<Answer>();
  readonly #ask: () => Promise<Answer>;
  readonly #running: Promise<void>;
  #isStopped = false;

  private constructor(ask: () => Promise<Answer>) {
    this.#ask = ask;
    this.#running = this.#run();
  }

  static of<Answer>(ask: () => Promise<Answer>): Poll<Answer> {
    return new Poll(ask);
  }

  /** Every answer since the start. */
  answers(): ReadonlySet<Answer> {
    return this.#answers;
  }

  /** @throws what a question failed with. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      this.#answers.add(await this.#ask());
      await nextTurn();
    }
  }
}
