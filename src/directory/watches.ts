/**
 * Follows changes below directories with one watch each: a recursive watch would also watch every file, and follows no
 * links. A watch only triggers a look; where a watch fails, the slow rescan finds the change.
 */

import { type FSWatcher, watch } from "node:fs";
import { codeOf, messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";

// Watches are a resource of the whole machine (fs.inotify.max_user_watches is 8192 on small ones).
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

  /** Watches exactly these directories. The identity shows when another directory took a directory's place. */
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
        // The directory is gone or lost its watch: look, and begin again with what is there then.
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
