/**
 * Writes audit lines to a file, in the background. A full file is renamed to `FILE.1`, and so on up to `FILE.4`, which
 * is the oldest. While the disk fails or does not answer, lines wait in bounded memory. Further lines are counted and
 * dropped.
 */

import { realpath, stat } from "node:fs/promises";
import type { Clock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/errors.ts";
import { diskSentence } from "../../lib/files/disk-sentence.ts";
import { type Files, ignoreMissing } from "../../lib/files/files.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { StartError } from "../../lib/start-error.ts";

interface AuditFileLimits {
  /** The size from which a file is renamed. */
  readonly maxBytes: number;
  /** How many renamed files stay. */
  readonly maxOldFiles: number;
  /** Limits the memory of lines that wait for the disk. */
  readonly maxWaitingBytes: number;
}

export interface AuditFileOptions {
  readonly path: string;
  readonly files: Files;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "auditLost" | "auditWritable">;
  readonly limits?: Partial<AuditFileLimits>;
  /** Returns a line that reports dropped lines. */
  readonly lostLine: (count: number) => string;
}

const defaults: AuditFileLimits = {
  maxBytes: 16 * 1024 * 1024,
  maxOldFiles: 4,
  maxWaitingBytes: 4 * 1024 * 1024,
};

/** The wait before a retry. On a full disk, the logs of the store and the ledger need the room more. */
const retryMs = 5_000;
/** If the disk does not answer for so long, the start and the stop go on, and davit logs the failure. */
const patienceMs = 4_000;
const newline = 10;

export class AuditFile {
  readonly #options: AuditFileOptions;
  readonly #limits: AuditFileLimits;
  readonly #stopping = new AbortController();
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #isFailing = false;
  /** True if the file may end in the middle of a line: of an earlier run, or of a write that failed. */
  #mayBeTorn = true;
  /** The size from which the file is renamed: `maxBytes`, or more after a rename that failed. */
  #renameAtBytes: number;
  #writing: Promise<void> | undefined;

  private constructor(options: AuditFileOptions) {
    this.#options = options;
    this.#limits = { ...defaults, ...options.limits };
    this.#renameAtBytes = this.#limits.maxBytes;
  }

  /** @throws {StartError} if only a person can make the file writable. A full disk may have room later. */
  static async open(options: AuditFileOptions): Promise<AuditFile> {
    options.metrics.auditWritable.set(1);
    const file = new AuditFile(options);
    await file.#patiently(file.#probe());
    return file;
  }

  /** @throws {StartError} as `open`. */
  async #probe(): Promise<void> {
    const { path, files } = this.#options;
    try {
      // Opening a named pipe could wait for ever.
      const isSpecial = await stat(path).then((stats) => !stats.isFile() && !stats.isDirectory(), ignoreMissing);
      if (isSpecial === true) throw cannotWrite(path, "it is a device or a pipe: give the path of a file");
      await (await files.openAppend(path)).close();
      this.#allWritten();
    } catch (error) {
      if (error instanceof StartError) throw error;
      const cure = cures.get(codeOf(error) ?? "");
      if (cure !== undefined) throw cannotWrite(path, cure);
    }
  }

  /** Waits for work with the disk, at most `patienceMs`. After that the work goes on. */
  async #patiently(work: Promise<void>): Promise<void> {
    const ended = new AbortController();
    const done = work.finally(() => ended.abort());
    const late = this.#options.clock.sleep(patienceMs, ended.signal).then(() => {
      if (!ended.signal.aborted) this.#fail();
    });
    await Promise.race([done, late]);
    if (ended.signal.aborted) await done;
  }

  /** Adds a line without its newline; never waits. */
  write(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    if (this.#waitingBytes + bytes.length > this.#limits.maxWaitingBytes) {
      this.#lost++;
      this.#options.metrics.auditLost.inc();
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#writing ??= this.#write();
  }

  /** Writes the waiting lines, also if the disk failed before, and ends. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#patiently((this.#writing ?? Promise.resolve()).then(() => this.#writeWaiting()));
    const { log, path } = this.#options;
    const lines = this.#waiting.length + this.#lost;
    if (lines > 0)
      log.warn({ path, lines }, "lines of the audit log are lost: davit stopped before it could write them");
  }

  async #write(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#waiting.length > 0 && !signal.aborted) {
      if (this.#isFailing) await this.#options.clock.sleep(retryMs, signal);
      const written = this.#writeWaiting();
      await this.#patiently(written);
      await written;
    }
    this.#writing = undefined;
  }

  async #writeWaiting(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        await this.#writeSome();
        if (this.#waiting.length === 0) this.#allWritten();
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Writes lines up to the size of a file. */
  async #writeSome(): Promise<void> {
    const isTorn = this.#mayBeTorn && (await this.#isTorn());
    let sizeBytes = await this.#makeRoom(isTorn ? 1 : 0);
    const lines: Buffer[] = isTorn && sizeBytes > 0 ? [Buffer.from("\n")] : [];
    let count = 0;
    for (const line of this.#waiting) {
      if (count > 0 && sizeBytes + line.length > this.#renameAtBytes) break;
      sizeBytes += line.length;
      lines.push(line);
      count++;
    }
    this.#mayBeTorn = true;
    await this.#append(Buffer.concat(lines));
    this.#mayBeTorn = false;
    for (const line of this.#waiting.splice(0, count)) this.#waitingBytes -= line.length;
  }

  /**
   * Renames the file if the next line makes it too large.
   * @param added bytes that come before this line.
   * @returns the size of the file with these bytes; 0 for a new file.
   */
  async #makeRoom(added: number): Promise<number> {
    const { maxBytes } = this.#limits;
    const sizeBytes = (await sizeOf(this.#options.files, this.#options.path)) + added;
    if (sizeBytes < maxBytes) this.#renameAtBytes = maxBytes;
    const [first] = this.#waiting;
    if (first === undefined || sizeBytes === 0 || sizeBytes + first.length <= this.#renameAtBytes) return sizeBytes;
    const newSize = (await this.#rotate()) ? 0 : sizeBytes;
    this.#renameAtBytes = newSize + maxBytes;
    return newSize;
  }

  /** Appends all bytes, or none if the file can be cut to its former size. @throws a system error. */
  async #append(bytes: Buffer): Promise<void> {
    const { path, files } = this.#options;
    const file = await files.openAppend(path);
    try {
      const before = await files.sizeOf(path);
      await file.append(bytes).catch(async (error: unknown) => {
        await file.truncate(before);
        throw error;
      });
    } finally {
      await file.close();
    }
  }

  /** @returns false if the file cannot be renamed, as one that is mounted by itself: then it grows. */
  async #rotate(): Promise<boolean> {
    const { path, files, log } = this.#options;
    try {
      // Beside a link, it would be the link that is renamed.
      const real = (await realpath(path).catch(ignoreMissing)) ?? path;
      await this.#renumber(real);
      await files.rename(real, `${real}.0`).catch(ignoreMissing);
      await this.#renumber(real);
      return true;
    } catch (error) {
      const isKnown = this.#renameAtBytes > this.#limits.maxBytes;
      const why = diskSentence(error) ?? "the disk fails";
      if (!isKnown) log.warn({ path }, `audit log cannot be renamed, so it grows: ${why}`);
      return false;
    }
  }

  /** Makes `FILE.0`, if it exists, to `FILE.1` and so on. Only then: else failures would remove the old files. */
  async #renumber(path: string): Promise<void> {
    const { files } = this.#options;
    if ((await sizeOf(files, `${path}.0`)) === 0) return;
    for (let number = this.#limits.maxOldFiles; number > 0; number--)
      await files.rename(`${path}.${number - 1}`, `${path}.${number}`).catch(ignoreMissing);
  }

  async #isTorn(): Promise<boolean> {
    const { path, files } = this.#options;
    let last: number = newline;
    try {
      for await (const piece of files.readPieces(path)) last = piece.at(-1) ?? last;
    } catch (error) {
      ignoreMissing(error);
    }
    return last !== newline;
  }

  /** @param error undefined if the disk does not answer. */
  #fail(error?: unknown): void {
    const { log, path, metrics } = this.#options;
    if (this.#isFailing) return;
    this.#isFailing = true;
    metrics.auditWritable.set(0);
    const why = error === undefined ? "the disk does not answer" : (diskSentence(error) ?? "the disk fails");
    log.warn({ path }, `audit log cannot be written, its lines wait: ${why}`);
  }

  /** Lines can also be lost without a failure: more than `maxWaitingBytes` at once. */
  #allWritten(): void {
    const { log, path, lostLine, metrics } = this.#options;
    if (!this.#isFailing && this.#lost === 0) return;
    this.#isFailing = false;
    metrics.auditWritable.set(1);
    log.info({ path, lost: this.#lost }, "audit log is written again");
    if (this.#lost > 0) this.write(lostLine(this.#lost));
    this.#lost = 0;
  }
}

function cannotWrite(path: string, cure: string): StartError {
  return new StartError(`Cannot write "${path}" for --audit-log: ${cure}`);
}

/** What to do about an error that does not pass by itself. */
const cures: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "its directory does not exist: create the directory"],
  ["ENOTDIR", "its directory is a file: give another path"],
  ["EISDIR", "it is a directory: give the path of a file in it"],
  ["EACCES", "davit may not write there: change the owner or the mode"],
]);

async function sizeOf(files: Files, path: string): Promise<number> {
  try {
    return await files.sizeOf(path);
  } catch (error) {
    ignoreMissing(error);
    return 0;
  }
}
