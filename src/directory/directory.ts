/**
 * The directory source: Profiles, Groups, ConfigMaps and Secrets from files, followed. A look lists the files, has the
 * changed ones parsed in a worker thread, and takes over what they define; the next look comes when a watch stirs, or
 * after a while.
 *
 * It promises that a mistake in one file touches no object of another, that nothing is removed on a half view (the
 * rules are in holdings.ts), that a changed file is read only once it has come to rest, and that neither a problem nor
 * a log line quotes a file. It never writes a file and never talks to the store.
 */

import { packagedCrdsDirectory, readCrds } from "../admission/crds.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { compareBytes } from "../lib/order.ts";
import type { Source, SourceListener, SourceView } from "../model/source.ts";
import { Holdings } from "./holdings.ts";
import { type ListedFile, type Listing, listFiles } from "./list-files.ts";
import { type IgnoringFile, LookLog } from "./look-log.ts";
import { Parser } from "./parser.ts";
import { maxFileBytes, type ReadFile } from "./read-file.ts";
import { Watches } from "./watches.ts";

export interface DirectorySourceOptions {
  /** Each one may go, or lose its last manifest, and come back: meanwhile everything in it is kept. */
  readonly directories: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** Where the CRD files are; the package's own by default. */
  readonly crdsDirectory?: string;
}

// Without a watch, as on some network file systems, this is how late a change is seen.
const rescanMs = 30_000;
// While nothing was found or something is amiss, the next look is worth more.
const anxiousRescanMs = 5_000;
// Writers need a moment: looks for one burst of events, and for files that were still changing, come this much later.
const settleMs = 100;
// Longer than it takes an editor or a tool to put a file in the place of another.
const confirmMs = 1_000;

interface KnownFile extends ReadFile {
  readonly signature: string;
}

export class DirectorySource implements Source {
  readonly kind = "directory";
  /** A directory that cannot be read makes the view incomplete, and then nothing goes. */
  readonly isFollowed = true;
  readonly #options: DirectorySourceOptions;
  readonly #holdings = new Holdings(confirmMs);
  readonly #watches: Watches;
  readonly #lookLog: LookLog;
  readonly #ended = new AbortController();
  #files = new Map<string, KnownFile>();
  /** Signatures at the last listing: a file is at rest when it has the same one again. */
  #lastSignatures: ReadonlyMap<string, string> = new Map();
  #looks = 0;
  #isStirred = false;
  #pause = new AbortController();
  #parser: Parser | undefined;
  #running: Promise<void> | undefined;

  constructor(options: DirectorySourceOptions) {
    this.#options = options;
    this.#lookLog = new LookLog(options.log);
    this.#watches = new Watches(options.log, () => this.#stir());
  }

  get view(): SourceView {
    return this.#holdings;
  }

  /** @throws {Error} when the CRD files cannot be read. */
  async start(listener: SourceListener): Promise<void> {
    this.#parser = new Parser(await readCrds(this.#options.crdsDirectory ?? packagedCrdsDirectory));
    this.#running = this.#run(this.#parser, listener);
  }

  async stop(): Promise<void> {
    this.#ended.abort();
    this.#pause.abort();
    this.#watches.stop();
    await this.#parser?.stop();
    await this.#running;
    this.#watches.stop();
  }

  async #run(parser: Parser, listener: SourceListener): Promise<void> {
    // A file may be half written when davit starts: the first look needs something to compare with, too.
    this.#sift(await listFiles(this.#options.directories));
    await this.#options.clock.sleep(settleMs, this.#ended.signal);
    while (!this.#ended.signal.aborted) {
      this.#isStirred = false;
      const nextMs = await this.#look(parser, listener);
      await this.#wait(nextMs);
    }
  }

  /** Waits for a while, or until a watch stirs and its burst of events is over. */
  async #wait(durationMs: number): Promise<void> {
    const { clock } = this.#options;
    if (!this.#isStirred) await clock.sleep(durationMs, this.#pause.signal);
    if (this.#isStirred) await clock.sleep(settleMs, this.#ended.signal);
    if (!this.#ended.signal.aborted) this.#pause = new AbortController();
  }

  #stir(): void {
    this.#isStirred = true;
    this.#pause.abort();
  }

  /** One look at everything; returns after how many milliseconds the next one is due. */
  async #look(parser: Parser, listener: SourceListener): Promise<number> {
    const { clock, directories, log } = this.#options;
    const listing = await listFiles(directories);
    const { resting, restlessCount } = this.#sift(listing);
    const { parsedCount, missedCount } = await this.#read(resting, parser);
    if (this.#ended.signal.aborted) return 0;
    this.#watches.follow(listing.directories);
    this.#dropGone(listing);
    const files = [...this.#files.keys()].toSorted(compareBytes).flatMap((path) => this.#files.get(path) ?? []);
    const before = this.#holdings.problems;
    const isAtRest = restlessCount + missedCount === 0;
    const { problems } = listing;
    const change = this.#holdings.take({ files, problems, isAtRest, atMs: clock.monotonicMs() });
    this.#looks++;
    this.#lookLog.problems(before, this.#holdings.problems);
    this.#lookLog.removed(change.removed);
    const isEmpty = this.#holdings.size === 0;
    log.debug({ files: listing.files.length, parsed: parsedCount, changed: change.names.length }, "directories read");
    if (change.names.length > 0) listener.changed(change.names);
    if (change.differs || this.#looks <= 2 || isEmpty) listener.listed();
    if (!isAtRest) return settleMs;
    if (this.#holdings.isUnconfirmed) return confirmMs + settleMs;
    return isEmpty || !this.#holdings.complete ? anxiousRescanMs : rescanMs;
  }

  /** The files that have to be read. One that changed since the last listing is still being written, perhaps. */
  #sift(listing: Listing): { readonly resting: readonly ListedFile[]; readonly restlessCount: number } {
    const last = this.#lastSignatures;
    this.#lastSignatures = new Map(listing.files.map(({ path, signature }) => [path, signature]));
    const changed = listing.files.filter(({ path, signature }) => this.#files.get(path)?.signature !== signature);
    const resting = changed.filter(({ path, signature }) => last.get(path) === signature);
    return { resting, restlessCount: changed.length - resting.length };
  }

  /** Reads files and keeps what they hold; returns how many were parsed, and how many of those in vain. */
  async #read(listed: readonly ListedFile[], parser: Parser): Promise<{ parsedCount: number; missedCount: number }> {
    const parsed = await parser.parse(listed);
    const ignoring: IgnoringFile[] = [];
    let missedCount = 0;
    for (const [position, { signature: readSignature, ...file }] of parsed.entries()) {
      const request = listed[position];
      if (request === undefined) continue;
      // Bytes of another version than the one listed: the next look sees that version, too, and reads it at rest.
      if (readSignature !== undefined && readSignature !== request.signature) {
        missedCount++;
        continue;
      }
      const { path, label } = request;
      if (ignoresOthers(file, this.#files.get(path))) ignoring.push({ label, ignored: file.ignored });
      this.#files.set(path, { ...file, signature: readSignature ?? "" });
    }
    this.#lookLog.ignored(ignoring);
    return { parsedCount: listed.filter(({ sizeBytes }) => sizeBytes <= maxFileBytes).length, missedCount };
  }

  /** Forgets files that are gone; what cannot be looked at keeps all that was known below it. */
  #dropGone(listing: Listing): void {
    const listed = new Set(listing.files.map(({ path }) => path));
    const isKept = (path: string) =>
      listed.has(path) || listing.unreadable.some((lost) => path === lost || path.startsWith(`${lost}/`));
    this.#files = new Map([...this.#files].filter(([path]) => isKept(path)));
  }
}

/** A file whose ignored documents are other ones than those of its version before; a file without any is not told. */
function ignoresOthers({ ignored }: ReadFile, before: ReadFile | undefined): boolean {
  const known = new Set(before?.ignored.map(({ key }) => key));
  const keys = new Set(ignored.map(({ key }) => key));
  return keys.size > 0 && (keys.size !== known.size || [...keys].some((key) => !known.has(key)));
}
