/** Machines that ask for their boot script, one every ten milliseconds, and what they were answered. */

import { systemClock } from "../../src/lib/clock.ts";
import type { Rack } from "./rack.ts";

const pauseMs = 10;

export type BootAnswer = Awaited<ReturnType<Rack["boots"]>>;

export class Roll {
  readonly #rack: Rack;
  readonly #machines: readonly number[];
  readonly #answers = new Set<BootAnswer>();
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  private constructor(rack: Rack, machines: readonly number[]) {
    this.#rack = rack;
    this.#machines = machines;
    this.#running = this.#run();
  }

  /** Has these machines ask one after the other, over and over. */
  static call(rack: Rack, machines: readonly number[]): Roll {
    return new Roll(rack, machines);
  }

  /** Every answer that any of them got since the call. */
  answers(): ReadonlySet<BootAnswer> {
    return this.#answers;
  }

  /** Has each of these ask once, now; their answers count like the others. */
  async answersOf(machines: readonly number[]): Promise<ReadonlySet<BootAnswer>> {
    const answers = new Set<BootAnswer>();
    for (const machine of machines) answers.add(await this.#ask(machine));
    return answers;
  }

  /** @throws what a request failed with: every machine is to get an answer. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (let at = 0; !signal.aborted; at++) {
      // A stride of its own, so that those that are removed just now and those of long ago take turns.
      await this.#ask(this.#machines[(at * 7) % this.#machines.length] ?? 0);
      await systemClock.sleep(pauseMs, signal);
    }
  }

  async #ask(machine: number): Promise<BootAnswer> {
    const answer = await this.#rack.boots(machine);
    this.#answers.add(answer);
    return answer;
  }
}
