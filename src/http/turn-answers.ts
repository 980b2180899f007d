/**
 * Sends the answers that become ready in one turn of the event loop together, at its end.
 *
 * A write to a client that waits on the same computer, such as a proxy, wakes it. To wake a process takes longer than
 * the write. Between single answers, such a client falls asleep again. If several answers are sent together, only the
 * first one wakes it.
 */

import { type Answer, send } from "./exchange.ts";
import type { WireResponse } from "./response-headers.ts";

/** This many answers are sent at once, so that with many requests in a turn none waits for all the others. */
const maxWaiting = 32;

interface Waiting {
  readonly response: WireResponse;
  readonly answer: Answer;
  readonly fail: (error: unknown) => void;
}

export class TurnAnswers {
  readonly #waiting: Waiting[] = [];

  /** Sends an answer at the end of this turn, or earlier. @param fail gets what `send` throws. */
  add(response: WireResponse, answer: Answer, fail: (error: unknown) => void): void {
    const count = this.#waiting.push({ response, answer, fail });
    if (count === 1) setImmediate(() => this.#sendAll());
    else if (count === maxWaiting) this.#sendAll();
  }

  #sendAll(): void {
    for (const { response, answer, fail } of this.#waiting.splice(0)) {
      try {
        send(response, answer);
      } catch (error) {
        fail(error);
      }
    }
  }
}
