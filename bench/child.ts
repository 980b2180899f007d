/** Talks between a benchmark and its processes: one question at a time, by Node's own channel. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { imageProgram } from "../test/helpers/image-program.ts";

/** A process of a benchmark that answers questions. */
export class Child {
  readonly #process: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#process = child;
  }

  /**
   * Starts a file of this folder, with the options that the image gives to Node. Its output is discarded, so writing it
   * costs little.
   */
  static start(file: string): Child {
    const path = fileURLToPath(new URL(file, import.meta.url));
    const execArgv = [...imageProgram().nodeArgs];
    return new Child(fork(path, { execArgv, stdio: ["ignore", "ignore", "inherit", "ipc"] }));
  }

  /** Asks and waits for the answer; an end of the process instead of one is an error. */
  async ask<Answer>(question: object, read: (answer: unknown) => Answer): Promise<Answer> {
    const ended = new AbortController();
    const exit = once(this.#process, "exit", { signal: ended.signal }).then(([code]) => {
      throw new Error(`a process of the benchmark ended with ${code}`);
    });
    const answer = once(this.#process, "message", { signal: ended.signal });
    this.#process.send(question);
    try {
      return read((await Promise.race([answer, exit]))[0]);
    } finally {
      ended.abort();
      await Promise.allSettled([answer, exit]);
    }
  }

  /** Asks for numbers. @returns the way to read them by name, which throws for one that the child did not report. */
  askNumbers(question: object): Promise<(name: string) => number> {
    return this.ask(question, (answer) => (name) => numberIn(answer, name));
  }

  /** Ends the process. */
  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exit = once(this.#process, "exit");
    this.#process.kill();
    await exit;
  }
}

function numberIn(answer: unknown, name: string): number {
  const value: unknown = typeof answer === "object" && answer !== null ? Reflect.get(answer, name) : undefined;
  if (typeof value !== "number") throw new Error(`a process of the benchmark did not report its ${name}`);
  return value;
}

/** In a child: answers every question by this function, until the parent goes away. */
export function answerQuestions(
  answer: (question: Readonly<Record<string, unknown>>) => Promise<object> | object,
): void {
  process.on("message", async (question: Readonly<Record<string, unknown>>) => {
    process.send?.(await answer(question));
  });
  process.once("disconnect", () => process.exit());
}

/** Processor time that this process has used, in microseconds. */
export function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
