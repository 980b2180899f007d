/**
 * Reads files in two threads. The quick thread reads small files immediately. The slow thread reads large files, and
 * small ones if there are too many for the quick thread. So a hold in a small file does not wait for a large file. The
 * slow thread ends when it has nothing to do. If davit answers no machine yet, the first read of a few small files
 * needs no thread.
 */

import { parseInPlace } from "./parse-in-place.ts";
import type { ParsedFile, ParseRequest } from "./parse-worker.ts";
import { ManifestParser } from "./parser.ts";

/** The result of one request. */
interface ParseAnswer {
  readonly request: ParseRequest;
  readonly parsed: ParsedFile;
}

// The most that the quick thread gets at a time. The thread parses this in a few tenths of a second.
const maxQuickBytes = 256 * 1024;
// The most that the slow thread gets in one message, unless one file is larger. It is large enough that few messages
// are needed, and small enough that newer, smaller files do not wait long.
const maxSliceBytes = 1024 * 1024;
const maxSliceFiles = 256;

export class Readers {
  readonly #crds: readonly string[];
  readonly #quick: ManifestParser;
  readonly #slow: ManifestParser;
  readonly #answered: () => void;
  #waiting: ParseRequest[] = [];
  #answers: ParseAnswer[] = [];
  #running: Promise<void> | undefined;
  #isIdle: () => boolean;
  #isStopped = false;

  /**
   * @param crds texts of the CRD files.
   * @param answered called when the slow thread has answered, so that another `read` can return these answers.
   * @param options.isIdle true while davit answers machines only after the first `read`. Then this thread may parse the
   *   files of that `read`.
   */
  constructor(
    crds: readonly string[],
    answered: () => void,
    { isIdle = () => false }: { readonly isIdle?: () => boolean } = {},
  ) {
    this.#isIdle = isIdle;
    this.#crds = crds;
    this.#quick = new ManifestParser(crds);
    this.#slow = new ManifestParser(crds);
    this.#answered = answered;
  }

  /**
   * Reads files. Only one call may run at a time. A request that still waits gets no answer if a later call asks for
   * the same file.
   * @returns all answers of the quick thread to this call. Also the slow thread's answers that are ready, to this call
   *   and to earlier ones. Later calls return the missing answers.
   * @throws {Error} when a thread cannot be started at all.
   */
  async read(requests: readonly ParseRequest[]): Promise<readonly ParseAnswer[]> {
    const sorted = requests.toSorted((a, b) => a.sizeBytes - b.sizeBytes);
    const quick = takeSlice(sorted, maxQuickBytes);
    const asked = new Set(requests.map(({ path }) => path));
    const others = this.#waiting.filter(({ path }) => !asked.has(path));
    this.#waiting = [...others, ...sorted].toSorted((a, b) => a.sizeBytes - b.sizeBytes);
    this.#running ??= this.#waiting.length > 0 ? this.#run() : undefined;
    const small = await parseInPlace(this.#crds, quick, this.#isIdle);
    this.#isIdle = () => false;
    const answers = answersOf(quick, small ?? (await this.#quick.parse(quick)));
    const late = this.#answers;
    this.#answers = [];
    return [...late, ...answers];
  }

  /** Ends both threads; idempotent. Requests that wait get no answer, or count as files that cannot be parsed. */
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

/** Removes as many requests from the front of a list as fit into `maxBytes`, and returns them. */
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
