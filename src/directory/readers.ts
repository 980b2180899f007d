/**
 * Two threads that read files. One reads small files at once. The other reads large files, and those that are too many
 * for the first, smallest first. So a hold in one file never waits for another file. The second thread ends when idle.
 */

import type { ParsedFile, ParseRequest } from "./parse-worker.ts";
import { ManifestParser } from "./parser.ts";

/** The result of one request. */
export interface ParseAnswer {
  readonly request: ParseRequest;
  readonly parsed: ParsedFile;
}

// The parser takes some tenths of a second for this.
const maxQuickBytes = 256 * 1024;
// The size of a message: large enough to need few, small enough that newer and smaller files are soon next.
const maxSliceBytes = 1024 * 1024;
const maxSliceFiles = 256;

export class Readers {
  readonly #quick: ManifestParser;
  readonly #slow: ManifestParser;
  readonly #answered: () => void;
  #waiting: ParseRequest[] = [];
  #answers: ParseAnswer[] = [];
  #running: Promise<void> | undefined;
  #isStopped = false;

  /**
   * @param crds texts of the CRD files.
   * @param answered called when `read` has answers that it did not wait for.
   */
  constructor(crds: readonly string[], answered: () => void) {
    this.#quick = new ManifestParser(crds);
    this.#slow = new ManifestParser(crds);
    this.#answered = answered;
  }

  /**
   * Reads files; one call at a time.
   * @returns answers to these requests and to those of former calls; a later call returns the missing ones.
   * @throws {Error} when a thread cannot be started at all.
   */
  async read(requests: readonly ParseRequest[]): Promise<readonly ParseAnswer[]> {
    const sorted = requests.toSorted((a, b) => a.sizeBytes - b.sizeBytes);
    const quick = takeSlice(sorted, maxQuickBytes);
    this.#waiting = [...this.#waiting, ...sorted].toSorted((a, b) => a.sizeBytes - b.sizeBytes);
    this.#running ??= this.#waiting.length > 0 ? this.#run() : undefined;
    const answers = answersOf(quick, await this.#quick.parse(quick));
    const late = this.#answers;
    this.#answers = [];
    return [...late, ...answers];
  }

  /** Ends both threads; idempotent. Later requests get no answer. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([this.#quick.stop(), this.#slow.stop()]);
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#isStopped) {
      const slice = takeSlice(this.#waiting, Math.max(maxSliceBytes, this.#waiting[0]?.sizeBytes ?? 0));
      const answers = answersOf(slice, await this.#slow.parse(slice));
      if (this.#isStopped) return;
      this.#answers.push(...answers);
      this.#answered();
    }
    await this.#slow.rest();
    this.#running = undefined;
    if (this.#waiting.length > 0 && !this.#isStopped) this.#running = this.#run();
  }
}

/** Takes as many requests from the front of a list as fit. */
function takeSlice(from: ParseRequest[], maxBytes: number): readonly ParseRequest[] {
  let bytes = 0;
  const end = from.findIndex(({ sizeBytes }, at) => {
    bytes += sizeBytes;
    return at === maxSliceFiles || bytes > maxBytes;
  });
  return from.splice(0, end < 0 ? from.length : end);
}

function answersOf(requests: readonly ParseRequest[], parsed: readonly ParsedFile[]): readonly ParseAnswer[] {
  return requests.flatMap((request, at) => {
    const file = parsed[at];
    return file === undefined ? [] : [{ request, parsed: file }];
  });
}
