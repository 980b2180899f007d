/**
 * Keeps the copy on disk, so that a follower can answer machines after a restart even if the store is away. The copy
 * is one file, which is always replaced as a whole. Only the file's owner can read it, because it has texts of Secrets:
 *
 * {"kind":"copy","version":1,"cluster":"<id>","index":N,"run":"<id>","savedAtMs":N}
 * {"kind":"put","path":"…","text":"…"}        for each document
 * {"kind":"end","sha256":"<of all bytes before this line>"}
 *
 * A follower can do without the copy: an unreadable file counts as missing. A failed write is retried, because a
 * restart would serve the earlier copy.
 */

import { createHash, hash } from "node:crypto";
import { basename, dirname } from "node:path";
import { backoffMs } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { codeOf, messageOf } from "../lib/errors.ts";
import type { Files } from "../lib/files/files.ts";
import { writeWholeFile } from "../lib/files/whole-file.ts";
import type { Log } from "../lib/log.ts";
import { lenient, number, object, oneOf, parsed, text, where } from "../lib/shape.ts";
import { decodeFollowLine, encodeFollowLine } from "../model/follow-line.ts";
import type { Copy } from "./copy.ts";

interface CopyFileOptions {
  readonly path: string;
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
}

interface SavedCopy extends Copy {
  /** When the copy was given to `keep`, by the wall clock: Unix milliseconds. */
  readonly savedAtMs: number;
}

const formatVersion = 1;
const newline = 0x0a;

/**
 * The pause after a write. Changes that are not urgent gather meanwhile, so that a sync of thousands of objects makes
 * few writes.
 */
const pauseMs = 5_000;
/** The pauses after failed writes. */
const retries = { firstMs: 1_000, capMs: 30_000 };
/** The characters in one piece of the file. Requests are answered between two pieces. */
const pieceLength = 64 * 1024;

export class CopyFile {
  readonly #options: CopyFileOptions;
  readonly #stopping = new AbortController();
  /** Ends the pause after a write. */
  #hurry = new AbortController();
  #wanted: SavedCopy | undefined;
  #writing: Promise<void> | undefined;
  #problem = "";

  constructor(options: CopyFileOptions) {
    this.#options = options;
  }

  /** Reads the copy that an earlier process saved; undefined if there is no usable copy. */
  async load(): Promise<SavedCopy | undefined> {
    const { files, path, log } = this.#options;
    try {
      const copy = decodeCopy(await files.read(path));
      if (copy === undefined)
        log.error({ path }, "the copy on disk is damaged or of a newer version, going on without");
      return copy;
    } catch (error) {
      if (codeOf(error) !== "ENOENT") log.error({ path, code: codeOf(error) }, "cannot read the copy on disk");
      return undefined;
    }
  }

  /**
   * Saves a copy soon, unless a later copy replaces it before that. The documents may change until they are written.
   * The file always holds one state.
   * @param isUrgent true saves the copy without a pause, because a restart must not serve the earlier state.
   */
  keep(copy: Copy, isUrgent = false): void {
    this.#wanted = { ...copy, savedAtMs: this.#options.clock.nowMs() };
    this.#writing ??= this.#writeAll();
    if (isUrgent) this.#hurry.abort();
  }

  /** Tries once to write what is not saved yet, without a pause. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    const { clock } = this.#options;
    let failures = 0;
    for (let copy = this.#wanted; copy !== undefined; copy = this.#wanted) {
      const isLast = this.#stopping.signal.aborted;
      this.#wanted = undefined;
      this.#hurry = new AbortController();
      const isWritten = await this.#write(copy);
      if (!isWritten && !isLast) this.#wanted ??= copy;
      const waitMs = isWritten ? pauseMs : backoffMs(failures, retries);
      failures = isWritten ? 0 : failures + 1;
      await clock.sleep(waitMs, AbortSignal.any([this.#stopping.signal, this.#hurry.signal]));
    }
    this.#writing = undefined;
  }

  /** @returns false after a failure. It logs the failure, unless the last write failed with the same error. */
  async #write(copy: SavedCopy): Promise<boolean> {
    const { files, path, log } = this.#options;
    try {
      await writeWholeFile(files, dirname(path), basename(path), encodeCopy(copy));
      this.#problem = "";
      return true;
    } catch (error) {
      const problem = codeOf(error) ?? messageOf(error);
      if (problem !== this.#problem) log.error({ path, code: problem }, "cannot write the copy to disk");
      this.#problem = problem;
      return false;
    }
  }
}

/** The bytes of a copy file, in pieces, with the documents that the copy has at the time of the call. */
export function encodeCopy({ cluster, index, run, savedAtMs, documents }: SavedCopy): Iterable<Buffer> {
  const head = `${JSON.stringify({ kind: "copy", version: formatVersion, cluster, index, run, savedAtMs })}\n`;
  return pieces(head, [...documents]);
}

function* pieces(head: string, documents: readonly (readonly [path: string, text: string])[]): Iterable<Buffer> {
  const sum = createHash("sha256");
  const summed = (text: string) => {
    const bytes = Buffer.from(text);
    sum.update(bytes);
    return bytes;
  };
  let piece = head;
  for (const [path, text] of documents) {
    piece += encodeFollowLine({ kind: "put", path, text });
    if (piece.length < pieceLength) continue;
    yield summed(piece);
    piece = "";
  }
  yield summed(piece);
  yield Buffer.from(`${JSON.stringify({ kind: "end", sha256: sum.digest("hex") })}\n`);
}

const headShape = object({
  kind: oneOf(["copy"]),
  version: where((value) => value === formatVersion, "is another version"),
  cluster: text,
  index: number,
  run: lenient(text),
  savedAtMs: number,
});
const endShape = object({ kind: oneOf(["end"]), sha256: text });

/** Reads the bytes of a copy file; undefined unless they are whole and their version is known. */
export function decodeCopy(bytes: Buffer): SavedCopy | undefined {
  if (bytes.at(-1) !== newline) return undefined;
  const endsAt = bytes.lastIndexOf("\n", -2) + 1;
  const end = parsed(endShape, bytes.toString("utf8", endsAt));
  if (end === undefined || end.sha256 !== hash("sha256", bytes.subarray(0, endsAt), "hex")) return undefined;
  const [head, ...lines] = bytes.toString("utf8", 0, endsAt).trimEnd().split("\n");
  const documents = new Map<string, string>();
  for (const each of lines) {
    const line = decodeFollowLine(each);
    if (line?.kind !== "put") return undefined;
    documents.set(line.path, line.text);
  }
  const found = parsed(headShape, head ?? "");
  if (found === undefined) return undefined;
  const { cluster, index, run, savedAtMs } = found;
  return { cluster, index, ...(run !== undefined && { run }), savedAtMs, documents };
}
