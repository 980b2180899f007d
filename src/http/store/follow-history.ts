/**
 * Holds what the store's followers are sent: every document below `/davit` as it is now, and the latest steps. The
 * steps have a limit in number and in bytes. A follower whose next step was dropped gets all documents again.
 */

import type { DocumentChange } from "../../model/feed.ts";
import { encodeFollowLine, type FollowPlace } from "../../model/follow-line.ts";

export interface FollowHistoryOptions {
  /** The most steps to keep. The default is enough for a follower that was away for a minute during an upgrade. */
  readonly maxSteps?: number;
  /** The most bytes of all steps and their lines. A single step with more bytes is not kept. */
  readonly maxBytes?: number;
}

interface HistoryStep extends FollowPlace {
  /** The changes, until the first follower gets their lines. The lines then take their place. */
  content: readonly DocumentChange[] | string;
  sizeBytes: number;
}

/** The members of a dump's first line, besides its kind. */
interface Greeting {
  readonly cluster: string;
  readonly nowMs?: number;
}

const presetMaxSteps = 1_000;
const presetMaxBytes = 16 * 1024 * 1024;

/** The length of a dump's chunk in characters: at most a few milliseconds of work. */
const chunkLength = 64 * 1024;

export class FollowHistory {
  readonly #maxSteps: number;
  readonly #maxBytes: number;
  #documents = new Map<string, string>();
  #steps: HistoryStep[] = [];
  #sizeBytes = 0;
  /** How many steps were dropped. This is also the position of the first kept step. */
  #dropped = 0;
  #isFilled = false;
  /** The place of the store when this history began. */
  #start: FollowPlace;
  /** The kept steps contain every change after this index. */
  #knownAfter: number;

  /** @param start the current place of the store. */
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

  /**
   * Takes all documents. After the first call, the history begins anew: it does not have the changes between the old
   * and the new documents, so no position of before is valid any more.
   * @param place the present place of the store.
   */
  replaced(documents: Iterable<readonly [path: string, text: string]>, place: FollowPlace): void {
    if (this.#isFilled) {
      this.#dropped = this.end + 1;
      this.#steps = [];
      this.#sizeBytes = 0;
    }
    this.#isFilled = true;
    this.#documents = new Map(documents);
    this.#start = place;
    this.#knownAfter = place.index;
  }

  changed(changes: readonly DocumentChange[], { index, run }: FollowPlace): void {
    for (const { path, text } of changes) {
      if (text === undefined) this.#documents.delete(path);
      else this.#documents.set(path, text);
    }
    const step = { index, run, content: changes, sizeBytes: 0 };
    this.#steps.push(step);
    this.#resize(
      step,
      changes.reduce((sum, { path, text = "" }) => sum + bytesOf(path, text), 0),
    );
  }

  /**
   * Returns the position of the first step that a follower lacks, if it has everything up to `after`. Undefined if that
   * step was dropped, or if the follower has documents of another history.
   * @param now the current place of the store.
   */
  positionAfter(after: FollowPlace, now: FollowPlace): number | undefined {
    if (after.index < this.#knownAfter || after.index > now.index) return undefined;
    // A change after the start was made by the present run. The change at the start can be of an earlier run.
    const { run } = after.index === this.#start.index ? this.#start : now;
    if (run === undefined || after.run !== run) return undefined;
    const at = this.#steps.findIndex(({ index }) => index > after.index);
    return at < 0 ? this.end : this.#dropped + at;
  }

  /** True if the step at this position was dropped. */
  isGone(position: number): boolean {
    return position < this.#dropped;
  }

  /**
   * Returns the lines of the step at a position; undefined for `end`. Lines can take more bytes than their changes. So
   * this call can drop the oldest steps, even the one at this position.
   */
  linesAt(position: number): string | undefined {
    const step = this.#steps[position - this.#dropped];
    if (step === undefined) return undefined;
    const { index, run, content } = step;
    if (typeof content === "string") return content;
    const lines = content.map(changeLine).join("") + encodeFollowLine({ kind: "commit", index, run });
    step.content = lines;
    this.#resize(step, bytesOf(lines));
    return lines;
  }

  /**
   * Returns the lines of a dump, in chunks. The dump has the documents as they are at this call: later changes do not
   * show.
   */
  dump(greeting: Greeting, now: FollowPlace): Iterator<string> {
    return dumpLines([...this.#documents], greeting, now);
  }

  /** Counts a step's new size, then drops the oldest steps until the limits hold. */
  #resize(step: HistoryStep, sizeBytes: number): void {
    this.#sizeBytes += sizeBytes - step.sizeBytes;
    step.sizeBytes = sizeBytes;
    while (this.#steps.length > this.#maxSteps || this.#sizeBytes > this.#maxBytes) this.#drop();
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

/** The memory of a change beside its texts. */
const changeBytes = 64;

/**
 * Returns the most memory that these texts can take together. V8 takes one byte for each unit of a Latin-1 text, and
 * two for other texts.
 */
function bytesOf(...texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length * 2, changeBytes);
}
