/**
 * Follows small files that change while davit runs: keys, certificates, tokens. It reads them together, as one value,
 * and again when their directories change. Without a watch a slow rescan finds the change. If a file cannot be read or
 * used, the last good value stays, and davit logs the reason.
 *
 * It watches directories instead of files, because a replaced file or a moved link of a Kubernetes volume is another
 * file with the same name.
 */

import { watch } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf } from "../errors.ts";
import type { Ports } from "../ports.ts";
import { StartError } from "../start-error.ts";
import { readSentence } from "./disk-sentence.ts";
import { publicProblem } from "./private-path.ts";

/**
 * The reason why a file cannot be used. Messages put it after the file's name and a colon. It never quotes the content.
 */
export class FileError extends Error {
  override readonly name = "FileError";
}

export interface WatchedFilesOptions<Value> extends Pick<Ports, "clock" | "log"> {
  /** The files, in the order in which messages name them. */
  readonly paths: readonly string[];
  /**
   * Makes the value from the files' texts, in the order of `paths`.
   * @throws {FileError}
   */
  readonly parse: (texts: readonly string[]) => Value | Promise<Value>;
  /** The paths that are refused if other users than their owner and group have access. */
  readonly secretPaths?: readonly string[];
  /** `latin1` makes a character of each byte, for files that may not be text. The default is UTF-8. */
  readonly encoding?: "utf8" | "latin1";
  /** Called with each value after the first one. */
  readonly changed: (value: Value) => void;
}

/** The wait between a change and the read. A certificate and its key are two writes, and both should be done. */
const settleMs = 200;
/** How often files are read if no watch reports a change. */
const rescanMs = 30_000;
/** Larger than every key, certificate or list of tokens. A wrong path may lead to a file of any size. */
const maxFileBytes = 1024 * 1024;

export class WatchedFiles<Value> {
  readonly #options: WatchedFilesOptions<Value>;
  readonly #stopping = new AbortController();
  #stirred = new AbortController();
  #texts: readonly string[] = [];
  #value: Value | undefined;
  #problem = "";

  constructor(options: WatchedFilesOptions<Value>) {
    this.#options = options;
  }

  /**
   * Reads the files, returns their value, and follows them from then on.
   * @throws {StartError} if they cannot be read or used.
   */
  async start(): Promise<Value> {
    // Watch before the first read, so that no change between the two is missed.
    this.#watch();
    try {
      this.#texts = await this.#read();
      this.#value = await this.#options.parse(this.#texts);
      void this.#follow();
      return this.#value;
    } catch (error) {
      this.stop();
      throw new StartError(this.#describe(error), { cause: error });
    }
  }

  /** The last good value; undefined before `start`. */
  get value(): Value | undefined {
    return this.#value;
  }

  /** A sentence that says why the files cannot be used now; empty while they can. The last good value stays. */
  get problem(): string {
    return this.#problem;
  }

  /** Stops following the files. Idempotent. */
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
      this.#value = value;
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
    const why = readSentence(error) ?? codeOf(error);
    if (why === undefined) throw error;
    return `Cannot read ${names}: ${why}`;
  }
}

/**
 * Reads a file of at most 1 MiB as text.
 * @throws {FileError} if it is larger or no file; a system error if it cannot be read.
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
