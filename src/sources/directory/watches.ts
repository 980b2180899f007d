/**
 * Watches directories for changes, with one watch for each directory. A recursive watch would also watch every file,
 * and would not follow links. A watch only starts a look. Where a watch fails, the slow rescan finds the change.
 */

import { type FSWatcher, watch } from "node:fs";
import { codeOf, messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";

// All programs of a user share a limit on watches (fs.inotify.max_user_watches: 8192 on small computers).
const maxWatches = 4096;

interface Watched {
  readonly identity: string;
  readonly watcher: FSWatcher;
}

export class FileWatches {
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
