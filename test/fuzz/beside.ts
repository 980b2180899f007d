/** What the suites of listeners share: a machine that sends requests beside the mutants, and requests as bytes. */

import { connect } from "node:net";
import { setImmediate, setTimeout } from "node:timers/promises";
import { expect } from "vitest";
import { readToEnd } from "../http/wire.ts";

const answerLimitMs = 5_000;

/** A machine that sends requests all the time, and must always get its own answer. */
export class MachineBeside {
  readonly #check: () => Promise<void>;
  readonly #asking: Promise<void>;
  #isLeaving = false;
  #count = 0;
  #longestMs = 0;

  /** @param check sends one request. @throws {Error} for a wrong answer. */
  constructor(check: () => Promise<void>) {
    this.#check = check;
    this.#asking = this.#ask();
    // `leave` throws it.
    this.#asking.catch(() => undefined);
  }

  /** Prints the number of requests and the longest wait. @throws {Error} without a request, or for a wrong answer. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    await this.#asking;
    expect(this.#count).toBeGreaterThan(0);
    const waited = Math.round(this.#longestMs);
    process.stdout.write(`a machine beside it asked ${this.#count} times and waited ${waited} ms at most\n`);
  }

  async #ask(): Promise<void> {
    await setImmediate();
    for (; !this.#isLeaving; this.#count++) {
      const beganMs = performance.now();
      await this.#check();
      this.#longestMs = Math.max(this.#longestMs, performance.now() - beganMs);
      await setTimeout(5);
    }
  }
}

/** Sends these bytes, ends its side of the connection, and reads until davit ends or cuts the connection. */
export async function answerTo(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.setTimeout(answerLimitMs, () => socket.destroy());
  socket.end(bytes);
  return await readToEnd(socket);
}

/** Returns the memory of a davit. */
export async function residentBytes(opsUrl: string): Promise<number> {
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1]);
}
