/**
 * Small files that change while davit runs: keys, certificates, tokens. They are read together, as one value, and read
 * again when their directories change; without a watch a slow rescan finds the change. A file that cannot be read or
 * used never replaces a good value: the last one stays, and the reason is logged.
 *
 * It watches directories, not files: replacing a file, or moving the link of a Kubernetes volume, puts another file
 * under the same name.
 */

import { watch } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "./clock.ts";
import { codeOf } from "./errors.ts";
import type { Log } from "./log.ts";
import { publicProblem } from "./private-path.ts";
import { StartError } from "./start-error.ts";

/**
 * Why the content of a file cannot be used, worded to follow the file's name and a colon; it quotes nothing of the
 * content.
 */
export class FileError extends Error {
  override readonly name = "FileProblem";
}

export interface WatchedFilesOptions<Value> {
  /** Follows them in messages, too. */
  readonly paths: readonly string[];
  /**
   * Makes the value from the files' texts, in the order of `paths`.
   * @throws {FileError}
   */
  readonly parse: (texts: readonly string[]) => Value | Promise<Value>;
  /** Those that only their user and group may read or write. */
  readonly secretPaths?: readonly string[];
  /** `latin1` reads a byte as a character, for files that need not be text; else they are UTF-8. */
  readonly encoding?: "utf8" | "latin1";
  /** Called with each value after the first one. */
  readonly changed: (value: Value) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** How long a change may take: a certificate and its key are two writes. */
const settleMs = 200;
/** How often files are read without a change notice. */
const rescanMs = 30_000;
/** No key, certificate or list of tokens is larger; a wrong path may lead to anything. */
const maxFileBytes = 1024 * 1024;

export class WatchedFiles<Value> {
  readonly #options: WatchedFilesOptions<Value>;
  readonly #stopping = new AbortController();
  #stirred = new AbortController();
  #texts: readonly string[] = [];
  #problem = "";

  constructor(options: WatchedFilesOptions<Value>) {
    this.#options = options;
  }

  /**
   * Reads the files and follows them from now on.
   * @throws {StartError} when they cannot be read or used.
   */
  async start(): Promise<Value> {
    // The watch comes first, so that no change is missed.
    this.#watch();
    try {
      this.#texts = await this.#read();
      const value = await this.#options.parse(this.#texts);
      void this.#follow();
      return value;
    } catch (error) {
      this.stop();
      throw new StartError(this.#describe(error), { cause: error });
    }
  }

  /** Why the files cannot be used now, as a sentence; empty while they can. The last good value stays. */
  get problem(): string {
    return this.#problem;
  }

  /** Idempotent. */
  stop(): void {
    this.#stopping.abort();
  }

  #watch(): void {
    for (const directory of new Set(this.#options.paths.map(dirname))) {
      try {
        const watcher = watch(directory, { persistent: false, signal: this.#stopping.signal }, () =>
          this.#stirred.abort(),
        );
        watcher.on("error", () => watcher.close());
      } catch (error) {
        this.#options.log.warn({ path: directory, code: codeOf(error) }, "cannot watch, changes are found by rescans");
      }
    }
  }

  async #follow(): Promise<void> {
    const { clock } = this.#options;
    const stop = this.#stopping.signal;
    while (!stop.aborted) {
      await clock.sleep(rescanMs, AbortSignal.any([stop, this.#stirred.signal]));
      this.#stirred = new AbortController();
      await clock.sleep(settleMs, stop);
      if (!stop.aborted) await this.#look();
    }
  }

  async #look(): Promise<void> {
    const { parse, changed, log, paths } = this.#options;
    try {
      const texts = await this.#read();
      const isNew = texts.some((text, at) => text !== this.#texts[at]);
      const value = isNew ? await parse(texts) : undefined;
      this.#problem = "";
      if (value === undefined) return;
      this.#texts = texts;
      log.info({ paths }, "files read again");
      changed(value);
    } catch (error) {
      const problem = this.#describe(error);
      if (problem !== this.#problem) log.error({ problem }, "changed files cannot be used, the last good ones stay");
      this.#problem = problem;
    }
  }

  async #read(): Promise<readonly string[]> {
    const { paths, secretPaths = [], encoding } = this.#options;
    for (const path of secretPaths) {
      const problem = await publicProblem(path);
      if (problem !== undefined) throw new FileError(problem);
    }
    return await Promise.all(paths.map((path) => readSmallFile(path, encoding)));
  }

  #describe(error: unknown): string {
    const names = this.#options.paths.map((path) => `"${path}"`).join(", ");
    if (error instanceof FileError) return `Cannot use ${names}: ${error.message}`;
    const code = codeOf(error);
    if (code === undefined) throw error;
    return `Cannot read ${names}: ${code}`;
  }
}

/**
 * Reads a file of at most 1 MiB as text.
 * @throws {FileError} when it is larger or no file; a system error when it cannot be read.
 */
export async function readSmallFile(path: string, encoding: "utf8" | "latin1" = "utf8"): Promise<string> {
  const handle = await open(path);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new FileError("it is not a file");
    if (stat.size > maxFileBytes) throw new FileError(`it is larger than ${maxFileBytes} bytes`);
    return await handle.readFile(encoding);
  } finally {
    await handle.close();
  }
}
