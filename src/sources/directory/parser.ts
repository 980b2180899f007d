/**
 * The main thread's side of the parser. It sends files to the worker thread in batches, and starts a new thread when
 * one dies. If a file kills the thread, the batch is read again, file by file. A file that kills the thread again then
 * counts as a file that cannot be parsed.
 */

import { Worker } from "node:worker_threads";
import { threadLimits } from "../../lib/memory-limit.ts";
import type { ParsedFile, ParseRequest, WorkerAnswer } from "./parse-worker.ts";
import { unusableFile } from "./read-file.ts";

// Few enough that one message stays small, enough that 10,000 files need few messages.
const maxFilesPerBatch = 256;

// About four times what a file with the most marks needs (read-file.ts). If the heap of the first thread has a lower
// limit, this thread has that limit. At its limit V8 ends the thread. But if memory runs out between two of its checks,
// V8 ends the whole process, so files must not get near the limit.
const maxHeapMegabytes = 2_048;

// Node runs the TypeScript sources directly. In a build the same file is JavaScript.
const workerUrl = new URL(`./parse-worker${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

export class ManifestParser {
  readonly #crds: readonly string[];
  readonly #workerUrl: URL;
  #worker: Worker | undefined;
  #isStopped = false;

  /**
   * @param crds texts of the CRD files.
   * @param options.worker what the thread runs.
   */
  constructor(crds: readonly string[], { worker = workerUrl } = {}) {
    this.#crds = crds;
    this.#workerUrl = worker;
  }

  /**
   * Parses files, and returns the answers in the same order. Only one call may run at a time.
   * @param progress receives the count of parsed files now and then.
   * @throws {Error} when the worker thread cannot be started at all.
   */
  async parse(files: readonly ParseRequest[], progress?: (count: number) => void): Promise<readonly ParsedFile[]> {
    const parsed: ParsedFile[] = [];
    for (let at = 0; at < files.length; at += maxFilesPerBatch) {
      parsed.push(...(await this.#parseBatch(files.slice(at, at + maxFilesPerBatch))));
      progress?.(parsed.length);
    }
    return parsed;
  }

  /**
   * Ends the thread, because an idle thread keeps its memory. The next `parse` starts a new one. Do not call `rest`
   * during `parse`.
   */
  async rest(): Promise<void> {
    await this.#worker?.terminate();
  }

  /** Ends the thread; idempotent. A `parse` under way returns its files as if they could not be parsed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#worker?.terminate();
  }

  async #parseBatch(batch: readonly ParseRequest[]): Promise<readonly ParsedFile[]> {
    if (this.#isStopped) return batch.map(unparsable);
    this.#worker ??= await this.#startWorker();
    // `stop` may have been called meanwhile. The thread has ended then and would never answer.
    if (this.#isStopped) return batch.map(unparsable);
    const answer = await ask(this.#worker, batch);
    if (answer !== undefined) return answer;
    if (batch.length <= 1) return batch.map(unparsable);
    const parsed: ParsedFile[] = [];
    for (const file of batch) parsed.push(...(await this.#parseBatch([file])));
    return parsed;
  }

  async #startWorker(): Promise<Worker> {
    const worker = await startWorker(this.#workerUrl, this.#crds);
    worker.on("exit", () => {
      this.#worker = undefined;
    });
    if (this.#isStopped) await worker.terminate();
    return worker;
  }
}

function unparsable({ label, signature }: ParseRequest): ParsedFile {
  const text = "The file cannot be parsed: it needs more memory than a manifest may, split it";
  return { ...unusableFile(label, "too-large", text), signature, digest: "" };
}

function startWorker(url: URL, crds: readonly string[]): Promise<Worker> {
  const worker = new Worker(url, {
    workerData: crds,
    resourceLimits: threadLimits({ maxOldGenerationSizeMb: maxHeapMegabytes }),
  });
  return new Promise((resolve, reject) => {
    let cause: unknown;
    // Without this listener an error would end the process. The event `exit` follows and reports the thread's death.
    worker.on("error", (error) => {
      cause = error;
    });
    const died = () => reject(new Error("Start the parser's thread: it ended at once", { cause }));
    worker.once("exit", died);
    worker.once("message", () => {
      worker.off("exit", died);
      resolve(worker);
    });
  });
}

/** Sends one request and returns its answer; undefined if the thread died before it answered. */
function ask(worker: Worker, batch: readonly ParseRequest[]): Promise<readonly ParsedFile[] | undefined> {
  return new Promise((resolve) => {
    const died = () => resolve(undefined);
    worker.once("exit", died);
    worker.once("message", (answer: WorkerAnswer) => {
      worker.off("exit", died);
      resolve(answer.kind === "parsed" ? answer.files : undefined);
    });
    worker.postMessage(batch);
  });
}
