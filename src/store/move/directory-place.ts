/** A data directory as the place of a whole store, which is moved away, or begins there. */

import { join } from "node:path";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import { movedName, WalError } from "../core/log-port.ts";
import { readDirectory } from "../inspect/inspect.ts";
import { type BeginLogOptions, beginLog, refuseMoved } from "../wal/begin-log.ts";
import { startFailure } from "../wal/failures.ts";
import { type DirectoryLock, type LockDirectory, lockName } from "../wal/lock.ts";
import { segmentHeadBytes } from "../wal/record.ts";
import { firstSequenceOf, listSegments } from "../wal/recover.ts";
import { listSnapshots, SnapshotFiles } from "../wal/snapshots.ts";
import type { NewPlace, OldPlace, StoppedStore, StoreImage } from "./places.ts";

export interface DirectoryPlaceOptions extends BeginLogOptions {
  readonly lock: LockDirectory;
  /** Begins the sentences about the directory, such as "Restoring to". */
  readonly doing: string;
  /** Called before the mark of a moved store is written. */
  readonly leaving?: () => Promise<void>;
}

// These names do not count: a new file system has `lost+found`, and a refused start leaves `lock.db`.
const emptyNames = new Set(["lost+found", lockName]);
const unfinishedName = /^\d{16}\.(log|snapshot)\.tmp$/;

/**
 * For a new store, the segment is written first, and the snapshot last. A start refuses a segment whose snapshot is
 * missing, so an interrupted write leaves no store that looks whole.
 */
export class DirectoryPlace implements OldPlace, NewPlace {
  readonly #options: DirectoryPlaceOptions;
  #held: DirectoryLock | undefined;

  /** @param options its directory is made if it is missing, by `begin`. */
  constructor(options: DirectoryPlaceOptions) {
    this.#options = options;
  }

  async read(agelessRoot: string): Promise<StoppedStore> {
    const { files, directory, lock, doing } = this.#options;
    return await this.#translated(async () => {
      if ((await listSegments(files, directory)).length === 0) {
        throw new WalError("unusable", `${doing} "${directory}": no store is in it`);
      }
      this.#held = lock(directory, { mends: false });
      await refuseMoved(files, directory);
      const { machine, end } = await readDirectory(files, directory, agelessRoot);
      const clusterId = end.head.clusterId.toString(16);
      return { machine, clusterId, sequence: end.lastSequence, term: end.term };
    });
  }

  async mark(to: string): Promise<void> {
    const { files, directory, doing, leaving } = this.#options;
    if (this.#held?.isHeld() !== true) {
      throw new WalError("locked", `${doing} "${directory}": its lock was removed; is a davit using it?`);
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

  async refuseUnlessEmpty(): Promise<void> {
    const { files, directory, doing } = this.#options;
    const left = await this.#unfinished();
    const found = (await files.list(directory)).find((name) => !emptyNames.has(name) && !left.includes(name));
    if (found === undefined) return;
    const advice = "give another --data-dir, or move away what is in it";
    throw new WalError("unusable", `${doing} "${directory}": it is not empty, "${found}" is in it; ${advice}`);
  }

  async begin(image: StoreImage): Promise<void> {
    const { files, directory, lock } = this.#options;
    await this.#translated(async () => {
      await files.makeDirectory(directory);
      const held = lock(directory);
      try {
        await this.refuseUnlessEmpty();
        for (const name of await this.#unfinished()) await files.remove(join(directory, name));
        await this.#write(image);
      } finally {
        held.release();
      }
    });
  }

  async #write({ clusterId, sequence, term, pieces }: StoreImage): Promise<void> {
    const { files, directory } = this.#options;
    const cluster = BigInt(`0x${clusterId}`);
    try {
      await beginLog(this.#options, { clusterId: cluster, term, firstSequence: sequence + 1 });
      await new SnapshotFiles(files, directory).save({ clusterId: cluster, sequence }, pieces);
    } catch (error) {
      await this.#takeBack();
      throw error;
    }
  }

  /** Removes the written files, the snapshot first: a start refuses the segment alone. */
  async #takeBack(): Promise<void> {
    const { files, directory } = this.#options;
    try {
      const names = [...(await listSnapshots(files, directory)), ...(await listSegments(files, directory))];
      for (const name of names) await files.remove(join(directory, name));
    } catch {
      // The caller reports the failure. If files remain, a start refuses them, and the next `begin` removes them.
    }
  }

  /**
   * What an interrupted `begin` left: temporary files, and a segment without records that goes on from a snapshot
   * which is not there.
   */
  async #unfinished(): Promise<readonly string[]> {
    const { files, directory } = this.#options;
    const names = await files.list(directory);
    const temporary = names.filter((name) => unfinishedName.test(name));
    const [segment, ...others] = await listSegments(files, directory);
    const isAlone = others.length === 0 && (await listSnapshots(files, directory)).length === 0;
    if (segment === undefined || !isAlone || firstSequenceOf(segment) === 1) return temporary;
    const isEmpty = (await files.sizeOf(join(directory, segment))) === segmentHeadBytes;
    return isEmpty ? [...temporary, segment] : temporary;
  }

  async #translated<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw startFailure(this.#options.doing, this.#options.directory, error);
    }
  }
}
