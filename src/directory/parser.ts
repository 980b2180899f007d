/**
 * The main thread's side of the parser: it sends files to the worker thread in batches, and starts a new thread when
 * one dies. A file that kills the thread counts as a file that cannot be parsed; the others of its batch are read
 * again.
 */

import { Worker } from "node:worker_threads";
import type { ParsedFile, ParseRequest, WorkerAnswer } from "./parse-worker.ts";
import { unusableFile } from "./read-file.ts";

// Few enough that one message stays small, enough that 10,000 files need few messages.
const maxFilesPerBatch = 256;

// Several times the need of a file with the most marks (read-file.ts). V8 ends a thread at its limit where it can, but
// if memory runs out between two checks it ends the whole process.
const maxHeapMegabytes = 2_048;

// Node's type stripping runs the sources as they are; a build has the same file compiled.
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
   * Parses files; the answers are in their order. One call at a time.
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

  /** Ends the thread until the next call, because a thread that parsed much keeps its memory. Not during a call. */
  async rest(): Promise<void> {
    await this.#worker?.terminate();
  }

  /** Ends the thread; idempotent. A running call is answered as if its files could not be parsed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#worker?.terminate();
  }

  async #parseBatch(batch: readonly ParseRequest[]): Promise<readonly ParsedFile[]> {
    if (this.#isStopped) return batch.map(unparsable);
    this.#worker ??= await this.#startWorker();
    // A thread that was ended meanwhile sends nothing more.
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
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes },
  });
  return new Promise((resolve, reject) => {
    let cause: unknown;
    // `exit` reports its death, later, to the waiting caller; an error without a listener ends the process.
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

/** One request's answer; undefined when the thread died over it. */
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
