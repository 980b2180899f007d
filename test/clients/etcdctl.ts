/** Debian's etcdctl, with its v2 commands. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";

/** @param words as a shell reads them, after the client's name. */
export class Etcdctl {
  readonly #process: ChildProcessByStdio<null, Readable, null>;
  readonly #closed: Promise<unknown>;
  #output = "";

  constructor(words: string) {
    // Both kinds of output in the order in which they were written.
    this.#process = spawn("sh", ["-c", `exec etcdctl ${words} 2>&1`], {
      env: { PATH: process.env.PATH, ETCDCTL_API: "2" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#closed = once(this.#process, "close");
    this.#process.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.#output += text;
    });
  }

  /** What it has printed so far. */
  get output(): string {
    return this.#output;
  }

  /** Resolves with its exit code once it has ended. */
  async ended(): Promise<number | null> {
    await this.#closed;
    return this.#process.exitCode;
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#closed;
  }
}
