/**
 * The data for the store's followers: every document below `/davit` as it is now, and the latest steps. Count and bytes
 * bound the steps. A follower whose next step is gone gets everything again.
 */

import type { DocumentChange } from "../../model/feed.ts";
import { encodeFollowLine, type FollowPlace } from "../../model/follow-line.ts";

export interface FollowHistoryOptions {
  /** Enough for a follower that was away for a minute during an upgrade. */
  readonly maxSteps?: number;
  /** Bound for the texts of all steps; a single step beyond it is not stored. */
  readonly maxBytes?: number;
}

interface HistoryStep extends FollowPlace {
  readonly changes: readonly DocumentChange[];
  readonly sizeBytes: number;
  /** Written out once, for the first follower. */
  lines?: string;
}

/** The head of a dump. */
interface Greeting {
  readonly cluster: string;
  readonly nowMs?: number;
}

const presetMaxSteps = 1_000;
const presetMaxBytes = 16 * 1024 * 1024;

/** How much of a dump is written out at a time: some milliseconds' work. */
const chunkLength = 64 * 1024;

export class FollowHistory {
  readonly #maxSteps: number;
  readonly #maxBytes: number;
  #documents = new Map<string, string>();
  #steps: HistoryStep[] = [];
  #sizeBytes = 0;
  /** How many steps were dropped: the position of the first kept step. */
  #dropped = 0;
  /** Where the history begins. */
  readonly #start: FollowPlace;
  /** The steps contain everything after this index. */
  #knownAfter: number;

  /** @param start the place of the store now. */
  constructor(start: FollowPlace, { maxSteps = presetMaxSteps, maxBytes = presetMaxBytes }: FollowHistoryOptions = {}) {
    this.#start = start;
    this.#knownAfter = start.index;
    this.#maxSteps = maxSteps;
    this.#maxBytes = maxBytes;
  }

  /** The position after the last step. */
  get end(): number {
    return this.#dropped + this.#steps.length;
  }

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    this.#documents = new Map(documents);
  }

  changed(changes: readonly DocumentChange[], { index, run }: FollowPlace): void {
    for (const { path, text } of changes) {
      if (text === undefined) this.#documents.delete(path);
      else this.#documents.set(path, text);
    }
    const sizeBytes = changes.reduce((sum, { path, text = "" }) => sum + bytesOf(path) + bytesOf(text), 0);
    this.#steps.push({ index, run, changes, sizeBytes });
    this.#sizeBytes += sizeBytes;
    while (this.#steps.length > this.#maxSteps || this.#sizeBytes > this.#maxBytes) this.#drop();
  }

  /**
   * The position from which a follower continues that has everything up to `after`; undefined when the history no
   * longer reaches back so far, or when the follower has another history.
   * @param now the place of the store: this history has all changes of its run since the start.
   */
  positionAfter(after: FollowPlace, now: FollowPlace): number | undefined {
    if (after.index < this.#knownAfter || after.index > now.index) return undefined;
    const { run } = after.index === this.#start.index ? this.#start : now;
    if (run === undefined || after.run !== run) return undefined;
    const at = this.#steps.findIndex(({ index }) => index > after.index);
    return at < 0 ? this.end : this.#dropped + at;
  }

  /** True for a position whose step was dropped. */
  isGone(position: number): boolean {
    return position < this.#dropped;
  }

  /** The lines of the step at a position; undefined for `end`. */
  linesAt(position: number): string | undefined {
    const step = this.#steps[position - this.#dropped];
    if (step === undefined) return undefined;
    const { index, run } = step;
    step.lines ??= step.changes.map(changeLine).join("") + encodeFollowLine({ kind: "commit", index, run });
    return step.lines;
  }

  /** The lines of a dump, in pieces, of the documents as they are now: later changes do not show. */
  dump(greeting: Greeting, now: FollowPlace): Iterator<string> {
    return dumpLines([...this.#documents], greeting, now);
  }

  #drop(): void {
    const step = this.#steps.shift();
    if (step === undefined) return;
    this.#dropped += 1;
    this.#sizeBytes -= step.sizeBytes;
    this.#knownAfter = step.index;
  }
}

function* dumpLines(
  documents: readonly (readonly [path: string, text: string])[],
  greeting: Greeting,
  { index, run }: FollowPlace,
): Iterator<string> {
  let chunk = encodeFollowLine({ kind: "dump", ...greeting });
  for (const [path, text] of documents) {
    chunk += encodeFollowLine({ kind: "put", path, text });
    if (chunk.length < chunkLength) continue;
    yield chunk;
    chunk = "";
  }
  yield chunk + encodeFollowLine({ kind: "commit", index, run });
}

function changeLine({ path, text }: DocumentChange): string {
  return encodeFollowLine(text === undefined ? { kind: "delete", path } : { kind: "put", path, text });
}

/**
 * An upper bound of a text's memory: V8 uses two bytes a unit unless the text is Latin-1, and its written lines take as
 * much again.
 */
function bytesOf(text: string): number {
  return text.length * 2;
}
