/** The data directory of a store that is moved to another place. */

import { join } from "node:path";
import type { Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import { WalError } from "../core/log-port.ts";
import { movedName } from "../core/moved.ts";
import { readDirectory } from "../inspect/read-directory.ts";
import type { DirectoryLock, LockDirectory } from "../wal/lock.ts";
import { refuseMoved } from "../wal/moved-mark.ts";
import { listSegments } from "../wal/recover.ts";
import { startFailure } from "../wal/start-failure.ts";
import type { OldPlace, StoppedStore } from "./move-store.ts";

export interface OldDirectoryOptions {
  readonly files: Files;
  readonly directory: string;
  readonly lock: LockDirectory;
  /** Called before the mark is written. */
  readonly leaving?: () => Promise<void>;
}

export class OldDirectory implements OldPlace {
  readonly #options: OldDirectoryOptions;
  #held: DirectoryLock | undefined;

  constructor(options: OldDirectoryOptions) {
    this.#options = options;
  }

  async read(agelessRoot: string): Promise<StoppedStore> {
    const { files, directory, lock } = this.#options;
    return await this.#translated(async () => {
      if ((await listSegments(files, directory)).length === 0) {
        throw new WalError("unusable", `Moving "${directory}": no store is in it`);
      }
      this.#held = lock(directory, { mends: false });
      await refuseMoved(files, directory);
      const { machine, end } = await readDirectory(files, directory, agelessRoot);
      const clusterId = end.head.clusterId.toString(16);
      return { machine, clusterId, sequence: end.lastSequence, term: end.term };
    });
  }

  async mark(to: string): Promise<void> {
    const { files, directory, leaving } = this.#options;
    if (this.#held?.isHeld() !== true) {
      throw new WalError("locked", `Moving "${directory}": its lock was removed; is a davit using it?`);
    }
    await this.#translated(async () => {
      await leaving?.();
      await writeWholeFile(files, directory, movedName, [Buffer.from(`${to}\n`)]);
    });
  }

  async unmark(): Promise<void> {
    const { files, directory } = this.#options;
    await this.#translated(async () => {
      if ((await files.list(directory)).includes(movedName)) await files.remove(join(directory, movedName));
      await files.syncDirectory(directory);
    });
  }

  release(): Promise<void> {
    this.#held?.release();
    return Promise.resolve();
  }

  async #translated<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw startFailure("Moving", this.#options.directory, error);
    }
  }
}
