/** Keeps the files of two snapshots: the newest one, and the one before it, in case the newest cannot be read. */

import { join } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import type { Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import { type Snapshot, WalError } from "../core/log-port.ts";
import { startFailure } from "./failures.ts";
import { framed, type SnapshotHead, SnapshotReader } from "./snapshot-frame.ts";

const keptSnapshots = 2;

const snapshotName = /^\d{16}\.snapshot$/;

/** A snapshot that a start could not use. */
interface PassedOver {
  readonly path: string;
  /** `unreadable`: the disk failed to read it, so it may be whole. */
  readonly problem: "damaged" | "unreadable";
  /**
   * The snapshot that the start uses instead. Undefined if there is none: then the start reads the log from its
   * beginning.
   */
  readonly used: string | undefined;
}

export interface StoredSnapshot extends Snapshot, SnapshotHead {}

/** The names of the snapshots in a directory, oldest first. */
export async function listSnapshots(files: Files, directory: string): Promise<readonly string[]> {
  return (await files.list(directory)).filter((name) => snapshotName.test(name));
}

export class SnapshotFiles {
  readonly #files: Files;
  readonly #directory: string;
  /** Sequences of the newest snapshots that are known to be whole, oldest first. */
  #whole: readonly number[] = [];
  #readFailure: Error | undefined;
  #passedOver: readonly PassedOver[] = [];

  constructor(files: Files, directory: string) {
    this.#files = files;
    this.#directory = directory;
  }

  /** The disk's error if it could not read a snapshot. That snapshot may be whole. */
  get readFailure(): Error | undefined {
    return this.#readFailure;
  }

  /** The damaged or unreadable snapshots that are newer than the one that `load` returned. */
  get passedOver(): readonly PassedOver[] {
    return this.#passedOver;
  }

  /** The newest whole snapshot; undefined if there is none. @throws {WalError} newerFormat. */
  async load(): Promise<StoredSnapshot | undefined> {
    const names = await listSnapshots(this.#files, this.#directory);
    const unusable: Omit<PassedOver, "used">[] = [];
    for (const path of names.toReversed().map((name) => join(this.#directory, name))) {
      try {
        const snapshot = await wholeSnapshot(this.#files, path);
        this.#passedOver = unusable.map((each) => ({ ...each, used: path }));
        this.#whole = [snapshot.sequence];
        return snapshot;
      } catch (error) {
        unusable.push({ path, problem: this.#problemIn(error) });
      }
    }
    this.#passedOver = unusable.map((each) => ({ ...each, used: undefined }));
    return undefined;
  }

  #problemIn(error: unknown): PassedOver["problem"] {
    if (error instanceof WalError && error.reason === "damaged") return "damaged";
    if (!(error instanceof Error) || codeOf(error) !== "EIO") throw error;
    this.#readFailure = error;
    return "unreadable";
  }

  /** Saves a state. Then it removes all snapshots, even damaged ones, except the two newest that are whole. */
  async save(head: SnapshotHead, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
    await writeWholeFile(this.#files, this.#directory, nameOf(head.sequence), framed(head, pieces));
    this.#whole = [...this.#whole.filter((each) => each !== head.sequence), head.sequence].slice(-keptSnapshots);
    const kept = new Set(this.#whole.map(nameOf));
    for (const name of await listSnapshots(this.#files, this.#directory)) {
      if (!kept.has(name)) await this.#files.remove(join(this.#directory, name));
    }
  }
}

/**
 * A snapshot whose file is whole. The file is read twice: first to check it, because no state must be built from a
 * damaged snapshot.
 * @throws {WalError} damaged, with the place; newerFormat. The disk's errors.
 */
export async function wholeSnapshot(files: Files, path: string): Promise<StoredSnapshot> {
  const reader = new SnapshotReader(path);
  let size = 0;
  for await (const piece of files.readPieces(path)) {
    reader.push(piece);
    size += piece.length;
  }
  const { head, isWhole } = reader;
  if (head !== undefined && isWhole) return { ...head, pieces: bodyOf(files, path) };
  const what = head === undefined ? "damaged at byte 0" : `bytes 0 to ${size - 1} are not what its checksum says`;
  throw new WalError("damaged", `Reading "${path}": ${what}`);
}

async function* bodyOf(files: Files, path: string): AsyncIterable<Uint8Array> {
  const reader = new SnapshotReader(path);
  try {
    for await (const piece of files.readPieces(path)) yield* reader.push(piece);
  } catch (error) {
    throw startFailure("Reading", path, error);
  }
  if (!reader.isWhole) throw new WalError("damaged", `Reading "${path}": it was whole a moment ago; try again`);
}

function nameOf(sequence: number): string {
  return `${String(sequence).padStart(16, "0")}.snapshot`;
}
