/**
 * A directory in which a log goes on from an image.
 *
 * The segment is written first, and the snapshot last. A start refuses a segment whose snapshot is missing, so an
 * interrupted write leaves no store that looks whole.
 */

import { join } from "node:path";
import { type NewPlace, type StoreImage, WalError } from "../core/log-port.ts";
import { type BeginLogOptions, beginLog } from "./begin-log.ts";
import { type LockDirectory, lockName } from "./lock.ts";
import { segmentHeadBytes } from "./record.ts";
import { firstSequenceOf, listSegments } from "./recover.ts";
import { listSnapshots, SnapshotFiles } from "./snapshots.ts";
import { startFailure } from "./start-failure.ts";

export interface NewDirectoryOptions extends BeginLogOptions {
  readonly lock: LockDirectory;
  /** Begins the sentences about the directory, such as "Restoring to". */
  readonly doing: string;
}

// These names do not count: a new file system has `lost+found`, and a refused start leaves `lock.db`.
const emptyNames = new Set(["lost+found", lockName]);
const unfinishedName = /^\d{16}\.(log|snapshot)\.tmp$/;

export class NewDirectory implements NewPlace {
  readonly #options: NewDirectoryOptions;

  /** @param options its directory is made if it is missing. */
  constructor(options: NewDirectoryOptions) {
    this.#options = options;
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
    const { files, directory, lock, doing } = this.#options;
    try {
      await files.makeDirectory(directory);
      const held = lock(directory);
      try {
        await this.refuseUnlessEmpty();
        for (const name of await this.#unfinished()) await files.remove(join(directory, name));
        await this.#write(image);
      } finally {
        held.release();
      }
    } catch (error) {
      throw startFailure(doing, directory, error);
    }
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
}
