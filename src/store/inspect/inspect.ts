/**
 * Reads a data directory that no davit uses, and writes nothing. An inspection reads everything and finds all damage. A
 * start, in contrast, stops at the first damage and skips files that it does not need.
 */

import { join } from "node:path";
import type { Files } from "../../lib/files/files.ts";
import { decodeRecord } from "../command/command-codec.ts";
import { type CommittedListener, WalError } from "../core/log-port.ts";
import { type StorePath, storePath } from "../core/node.ts";
import { StateMachine } from "../snapshot/state-machine.ts";
import type { Tree } from "../tree/tree.ts";
import { checkKnownEnd, readLogEnd } from "../wal/log-end.ts";
import { checkGoesOnFrom, firstSequenceOf, type LogEnd, listSegments, readSegment, recover } from "../wal/recover.ts";
import { listSnapshots, SnapshotFiles, wholeSnapshot } from "../wal/snapshots.ts";

export interface Contents {
  readonly index: number;
  /** How many files the state has. */
  readonly keys: number;
  /** How many directories the state has, without the root. */
  readonly directories: number;
  /** The bytes of names and values, as the quota counts them. */
  readonly bytes: number;
}

export interface DirectoryState {
  readonly machine: StateMachine;
  readonly end: LogEnd;
}

export interface DirectoryReport {
  readonly segments: readonly string[];
  readonly snapshots: readonly string[];
  /** The state that a start would have; undefined if a start would refuse the directory. */
  readonly found: DirectoryState | undefined;
  /** A sentence for each damaged place, with the file and, if it is known, the byte. */
  readonly damage: readonly string[];
}

export function contentsOf(tree: Tree): Contents {
  let keys = 0;
  let directories = -1;
  for (const { isDirectory } of tree.walk(storePath("/"))) {
    if (isDirectory) directories += 1;
    else keys += 1;
  }
  return { index: tree.index, keys, directories, bytes: tree.bytes };
}

/** Gets each path whose value is in a file: in a record, in a node of a snapshot, or in its history. */
type ValueListener = (path: StorePath) => void;

/**
 * Reads a whole data directory.
 * @param hasValue gets paths repeatedly, also those of values that were removed or overwritten.
 * @throws {WalError} newerFormat, because a later format cannot be checked; unusable when there is no store.
 */
export async function inspectDirectory(
  files: Files,
  directory: string,
  hasValue: ValueListener = () => undefined,
): Promise<DirectoryReport> {
  const segments = await listSegments(files, directory);
  const snapshots = await listSnapshots(files, directory);
  if (segments.length + snapshots.length === 0) {
    throw new WalError("unusable", `Reading "${directory}": no store is in it`);
  }
  // `readDirectory` reports the same damage again, in the same sentence. A set removes the repeats.
  const damage = new Set<string>();
  await checkSegments(files, directory, { damage, hasValue });
  for (const name of snapshots) await noting(damage, () => checkSnapshot(files, join(directory, name), hasValue));
  await noting(damage, () => readLogEnd(files, directory));
  const found = await noting(damage, () => readDirectory(files, directory));
  return { segments, snapshots, found, damage: [...damage] };
}

/**
 * Reads the state in a data directory into memory, like a start: from the newest whole snapshot and the later log. It
 * writes nothing, not even the repairs of a start. It takes no lock, so the caller must keep other processes out of the
 * directory.
 * @param agelessRoot see `StateMachine`.
 * @throws {WalError} like a start; damaged when there is no log.
 */
export async function readDirectory(files: Files, directory: string, agelessRoot?: string): Promise<DirectoryState> {
  const machine = new StateMachine(agelessRoot);
  const snapshot = await new SnapshotFiles(files, directory).load();
  if (snapshot !== undefined) await machine.restore(snapshot);
  const onCommand = (_sequence: number, bytes: Uint8Array, term: number) => machine.replay(decodeRecord(bytes), term);
  const end = await recover({ files, directory, after: snapshot?.sequence ?? 0, onCommand });
  if (snapshot !== undefined) checkGoesOnFrom(snapshot, end, directory);
  await checkKnownEnd({ files, directory }, end);
  if (end === undefined) {
    const cure = "correct the directory; if the store is in etcd, run davit backup --store URL";
    throw new WalError("damaged", `Reading "${directory}": no segment of a log is in it: ${cure}`);
  }
  return { machine, end };
}

/** Checks every segment, even those that a start no longer needs because of a snapshot. */
async function checkSegments(
  files: Files,
  directory: string,
  { damage, hasValue }: { readonly damage: Set<string>; readonly hasValue: ValueListener },
): Promise<void> {
  const names = await listSegments(files, directory);
  const onCommand: CommittedListener = (_, bytes) => {
    const { command } = decodeRecord(bytes);
    for (const each of command.kind === "batch" ? command.commands : [command])
      if ("value" in each) hasValue(each.path);
  };
  let previous: LogEnd | undefined;
  for (const [number, name] of names.entries()) {
    const context = { name, next: names[number + 1], previous };
    // With this `after`, all of the segment is delivered, and the first segment may begin anywhere.
    const options = { files, directory, after: firstSequenceOf(name) - 1, onCommand };
    previous = await noting(damage, () => readSegment(options, context));
  }
}

async function checkSnapshot(files: Files, path: string, hasValue: ValueListener): Promise<void> {
  const machine = new StateMachine(undefined);
  const { tree, history } = machine;
  await machine.restore(await wholeSnapshot(files, path));
  const nodes = [...history.all.flatMap(({ node, prevNode = node }) => [node, prevNode]), ...tree.walk(storePath("/"))];
  for (const { path: place, value } of nodes) if (value !== undefined) hasValue(place);
}

/**
 * Runs a read. If the read finds damage, it records the damage and returns undefined, so that the search can continue.
 */
async function noting<Value>(damage: Set<string>, read: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof WalError) || error.reason !== "damaged") throw error;
    damage.add(error.message);
    return undefined;
  }
}
