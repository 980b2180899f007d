/**
 * The directory source: it follows Profiles, Groups, ConfigMaps and Secrets in files. A look lists the files, parses
 * the changed ones in worker threads, and takes over their definitions. The next look begins when a watch reports a
 * change, or after `rescanMs` at the latest.
 *
 * A mistake in one file does not affect objects of other files. While the view is incomplete, no object is removed
 * (holdings.ts). A file that may be half written can only make machines wait (known-files.ts). No problem and no log
 * line quotes a file. The source never writes a file and never uses the store.
 */

import { type FSWatcher, watch } from "node:fs";
import { codeOf, messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Ports } from "../../lib/ports.ts";
import type {
  ObjectName,
  ObjectWriter,
  OwnName,
  Source,
  SourceListener,
  SourceObject,
  SourceProblem,
  SourceView,
} from "../../model/objects/source.ts";
import { readCrds } from "../admission/crds.ts";
import { Holdings } from "./holdings.ts";
import { type ClockReading, KnownFiles, pauseMs } from "./known-files.ts";
import { type DirectoryListing, listFiles } from "./list-files.ts";
import type { FileContent, IgnoredDocument } from "./read-file.ts";
import { Readers } from "./readers.ts";

interface DirectorySourceOptions extends Pick<Ports, "clock" | "log"> {
  /** If a directory vanishes or loses its last manifest, its objects stay, because the directory may return. */
  readonly directories: readonly string[];
  /** Where the CRD files are; the package's own by default. */
  readonly crdsDirectory?: string;
  /**
   * The longest time between two looks, 1 or more. davit notices a change after this time even if no watch reports it,
   * as on some network file systems.
   */
  readonly rescanMs: number;
  /** For this time after `start` davit waits for the first list before it answers a machine. 0 by default. */
  readonly idleMs?: number;
}

// The longest time between two looks while the view is empty or incomplete.
const anxiousRescanMs = 5_000;
// After this time davit reports its first list even if a file keeps changing. A file that no longer changes is at rest
// earlier. The first read of a file has no limit: the file may be large, or on a volume that hangs, and it may hold a
// hold, or the own Group of any machine. Until then machines get what the store has, or wait.
const maxFirstWaitMs = 15_000;

export class DirectorySource implements Source {
  readonly kind = "directory";
  /** Always true: an unreadable directory makes the view incomplete, which is enough to keep every object. */
  readonly isFollowed = true;
  readonly #options: DirectorySourceOptions;
  readonly #holdings = new Holdings();
  readonly #files = new KnownFiles();
  readonly #watches: FileWatches;
  readonly #lookLog: LookLog;
  /** Of the versions of files that were read last, by the files' labels. */
  readonly #digests = new Map<string, string>();
  readonly #ended = new AbortController();
  #looks = 0;
  /** Monotonic start time of the last look that found every file at rest. */
  #provenAtMs: number | undefined;
  #isStirred = false;
  #pause = new AbortController();
  #readers: Readers | undefined;
  #running: Promise<void> | undefined;

  constructor(options: DirectorySourceOptions) {
    this.#options = options;
    this.#lookLog = new LookLog(options.log);
    this.#watches = new FileWatches(options.log, () => this.#stir());
  }

  get view(): SourceView {
    return this.#holdings;
  }

  get provenAtMs(): number | undefined {
    return this.#provenAtMs;
  }

  writerOf({ kind, namespace, name }: OwnName): ObjectWriter | undefined {
    const object = this.view.get(kind, namespace, name) ?? this.view.refusalOf({ kind, namespace, name });
    if (object === undefined) return undefined;
    const { generation, origin: file } = object;
    // Without the place in the file, which is after the label.
    const sha256 = this.#digests.get(file.replace(/, document \d+ \(line \d+\)$/, ""));
    return { generation, file, ...(sha256 !== undefined && { sha256 }) };
  }

  /** @throws {Error} when the CRD files cannot be read. */
  async start(listener: SourceListener): Promise<void> {
    const { clock, crdsDirectory, idleMs = 0 } = this.#options;
    const endMs = clock.monotonicMs() + idleMs;
    const isIdle = () => clock.monotonicMs() < endMs;
    this.#readers = new Readers(await readCrds(crdsDirectory), () => this.#stir(), { isIdle });
    this.#running = this.#run(this.#readers, listener);
  }

  async stop(): Promise<void> {
    this.#ended.abort();
    this.#pause.abort();
    this.#watches.stop();
    await this.#readers?.stop();
    await this.#running;
    this.#watches.stop();
  }

  async #run(readers: Readers, listener: SourceListener): Promise<void> {
    const { clock, directories } = this.#options;
    // A file may be half written when davit starts. The first look compares its own listing with this one, and so finds
    // the files that still change.
    this.#files.see(await listFiles(directories), this.#moment());
    const startedMs = clock.monotonicMs();
    await clock.sleep(pauseMs, this.#ended.signal);
    while (!this.#ended.signal.aborted) {
      this.#isStirred = false;
      const mayWait =
        this.#looks === 0 && (this.#files.isReadingNew || clock.monotonicMs() - startedMs < maxFirstWaitMs);
      const nextMs = await this.#look(readers, listener, mayWait);
      await this.#wait(nextMs);
    }
  }

  /**
   * Waits for this time. If a watch reports a change, it waits only `pauseMs` longer: one change makes several events,
   * and one look is enough for them.
   */
  async #wait(durationMs: number): Promise<void> {
    const { clock } = this.#options;
    if (!this.#isStirred) await clock.sleep(durationMs, this.#pause.signal);
    if (this.#isStirred) await clock.sleep(pauseMs, this.#ended.signal);
    if (!this.#ended.signal.aborted) this.#pause = new AbortController();
  }

  #stir(): void {
    this.#isStirred = true;
    this.#pause.abort();
  }

  #moment(): ClockReading {
    const { clock } = this.#options;
    return { nowMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
  }

  /**
   * Looks at all files once.
   * @param mayWait true to delay the first list while a file is not at rest.
   * @returns the number of milliseconds until the next look.
   */
  async #look(readers: Readers, listener: SourceListener, mayWait: boolean): Promise<number> {
    const { directories, rescanMs } = this.#options;
    const began = this.#moment();
    const listing = await listFiles(directories);
    this.#files.see(listing, this.#moment());
    if (this.#digests.size > listing.files.length) this.#forgetDigests(listing);
    const parsedCount = await this.#read(readers);
    if (this.#ended.signal.aborted) return 0;
    this.#watches.follow(listing.directories);
    const waitMs = this.#files.waitMs(this.#moment());
    const isHeldBack = mayWait && waitMs !== undefined;
    const changed = isHeldBack ? [] : this.#take(listing.problems, waitMs === undefined, listener);
    const { length: files } = listing.files;
    this.#options.log.debug({ files, parsed: parsedCount, changed: changed.length }, "directories read");
    if (waitMs !== undefined) return waitMs;
    this.#provenAtMs = began.monotonicMs;
    return this.#holdings.size === 0 || !this.#holdings.complete ? Math.min(anxiousRescanMs, rescanMs) : rescanMs;
  }

  /** Forgets the digests of files that are gone. */
  #forgetDigests({ files }: DirectoryListing): void {
    const labels = new Set(files.map(({ label }) => label));
    for (const label of this.#digests.keys()) if (!labels.has(label)) this.#digests.delete(label);
  }

  /** Requests changed files and takes in all answers that are ready. Returns how many files were parsed. */
  async #read(readers: Readers): Promise<number> {
    const answers = await readers.read(this.#files.due(this.#moment()));
    const ignoring: IgnoringFile[] = [];
    const lacking: string[] = [];
    for (const { request, parsed } of answers) {
      const { label } = request;
      const taken = this.#files.take(request, parsed, this.#moment());
      if (taken === undefined) continue;
      if (parsed.digest !== "") this.#digests.set(label, parsed.digest);
      if (ignoresOthers(parsed, taken.before)) ignoring.push({ label, ignored: parsed.ignored });
      if (taken.lacksObjects) lacking.push(label);
    }
    this.#lookLog.restless(this.#files.settle(this.#moment()));
    this.#lookLog.ignored(ignoring);
    this.#lookLog.lacking(lacking);
    return answers.filter(({ parsed }) => parsed.digest !== "" && parsed.isUnchanged !== true).length;
  }

  /** Updates the view from the files, and reports the changes. Returns the names of changed objects. */
  #take(problems: DirectoryListing["problems"], isAtRest: boolean, listener: SourceListener): readonly ObjectName[] {
    const { problems: before, isChanging: wasChanging } = this.#holdings;
    const change = this.#holdings.take({ files: this.#files.looked, problems, isAtRest });
    this.#looks++;
    this.#lookLog.problems(before, this.#holdings.problems);
    this.#lookLog.removed(change.removed);
    if (change.names.length > 0) listener.changed(change.names);
    if (change.differs || this.#looks <= 2 || this.#holdings.size === 0) listener.listed();
    if (this.#holdings.isChanging !== wasChanging) listener.stirred?.();
    return change.names;
  }
}

/** True if a file has ignored documents that differ from those of its previous version. */
function ignoresOthers({ ignored }: FileContent, before: FileContent | undefined): boolean {
  const known = new Set(before?.ignored.map(({ key }) => key));
  const keys = new Set(ignored.map(({ key }) => key));
  return keys.size > 0 && (keys.size !== known.size || [...keys].some((key) => !known.has(key)));
}

/** A file whose ignored documents changed. */
interface IgnoringFile {
  /** The file's name in messages. */
  readonly label: string;
  readonly ignored: readonly IgnoredDocument[];
}

// Enough to see what happened. The view still has every problem.
const maxLines = 20;

/**
 * Logs a look: new problems, removed objects, ignored documents, and files that lack objects or never rest. One mistake
 * can affect thousands of objects, so each of these kinds gets a few lines. The lines quote nothing of a file except
 * names of accepted objects.
 */
class LookLog {
  readonly #log: Log;
  #restless: readonly string[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  /** Logs new problems, and logs when there are no problems any more. */
  problems(before: readonly SourceProblem[], now: readonly SourceProblem[]): void {
    const known = new Set(before.map(problemText));
    const fresh = now.filter((problem) => !known.has(problemText(problem)));
    for (const { origin, message } of fresh.slice(0, maxLines)) {
      this.#log.warn({ origin, problem: message }, "part of the manifests cannot be used");
    }
    if (fresh.length > maxLines) this.#log.warn({ count: fresh.length }, "many parts of the manifests cannot be used");
    if (before.length > 0 && now.length === 0) this.#log.info({}, "all manifests can be used again");
  }

  /** Logs objects that were removed because no file defines them. */
  removed(objects: readonly SourceObject[]): void {
    for (const { kind, namespace, name, origin } of objects.slice(0, maxLines)) {
      this.#log.info({ kind, namespace, name, origin }, "object left the manifests");
    }
    if (objects.length > maxLines) this.#log.info({ count: objects.length }, "many objects left the manifests");
  }

  /** Logs files that lack objects, and so count in full later than usual. */
  lacking(labels: readonly string[]): void {
    for (const path of labels.slice(0, maxLines)) {
      const problem = "objects are missing, as in a file that is being rewritten: replace it with mv";
      this.#log.warn({ path, problem }, "file counts 10 s after its last change");
    }
    if (labels.length > maxLines)
      this.#log.warn({ count: labels.length }, "many files count 10 s after their last change");
  }

  /** Logs files that change again and again. */
  restless(labels: readonly string[]): void {
    const fresh = labels.filter((label) => !this.#restless.includes(label));
    this.#restless = labels.length === 0 ? [] : [...this.#restless, ...fresh];
    for (const path of fresh.slice(0, maxLines)) {
      const problem = "it is written again and again, and no Install is answered until it rests: replace it with mv";
      this.#log.warn({ path, problem }, "file changes all the time, other files count without it");
    }
  }

  /** Logs documents of other projects. They can explain a missing object: its `apiVersion` or `kind` may be wrong. */
  ignored(files: readonly IgnoringFile[]): void {
    for (const { label, ignored } of files.slice(0, maxLines)) {
      const documents = ignored.slice(0, maxLines).map(({ place }) => place);
      this.#log.info({ path: label, documents, count: ignored.length }, "documents of other groups ignored");
    }
    if (files.length > maxLines)
      this.#log.info({ count: files.length }, "documents of other groups ignored in many files");
  }
}

function problemText({ origin, message }: SourceProblem): string {
  return `${origin}\n${message}`;
}

// All programs of a user share a limit on watches (fs.inotify.max_user_watches: 8192 on small computers).
const maxWatches = 4096;

interface Watched {
  readonly identity: string;
  readonly watcher: FSWatcher;
}

/**
 * Watches directories for changes, with one watch for each directory. A recursive watch would also watch every file,
 * and would not follow links. A watch only starts a look. Where a watch fails, the slow rescan finds the change.
 */
class FileWatches {
  readonly #log: Log;
  readonly #stirred: () => void;
  readonly #watched = new Map<string, Watched>();
  #isLimited = false;

  /** @param stirred called whenever something may have changed, often several times for one change. */
  constructor(log: Log, stirred: () => void) {
    this.#log = log;
    this.#stirred = stirred;
  }

  /**
   * Watches these directories, and no others.
   * @param directories identities by path; an identity changes when another directory appears at the same path.
   */
  follow(directories: ReadonlyMap<string, string>): void {
    for (const [path, { identity }] of this.#watched) {
      if (directories.get(path) !== identity) this.#end(path);
    }
    for (const [path, identity] of directories) {
      if (!this.#watched.has(path)) this.#begin(path, identity);
    }
  }

  /** Ends every watch; idempotent. */
  stop(): void {
    for (const path of [...this.#watched.keys()]) this.#end(path);
  }

  #begin(path: string, identity: string): void {
    try {
      if (this.#watched.size >= maxWatches) throw new Error(`The limit of ${maxWatches} watches is reached`);
      const watcher = watch(path, { persistent: false }, () => this.#stirred());
      watcher.on("error", () => {
        // The directory is gone, or the system ended its watch. The next look watches the directory that it finds at
        // this path.
        this.#end(path);
        this.#stirred();
      });
      this.#watched.set(path, { identity, watcher });
    } catch (error) {
      this.#logLimit(codeOf(error) ?? messageOf(error));
    }
  }

  #end(path: string): void {
    this.#watched.get(path)?.watcher.close();
    this.#watched.delete(path);
  }

  #logLimit(code: string): void {
    if (this.#isLimited) return;
    this.#isLimited = true;
    this.#log.warn({ code }, "cannot watch every directory, changes are found by the slow rescan");
  }
}
