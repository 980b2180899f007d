/**
 * Encodes the whole state as bytes and decodes it. Version 1: lines of JSON in UTF-8, each ended by a newline.
 *
 *   {"v":1,"index":12,"oldestIndex":3,"run":"…","term":4,"atMs":…}    the first line: the index, where the history
 *                                                                     begins, `Origin`, and the last record's time
 *   {"file":"/a","value":"b","createdIndex":2,"modifiedIndex":12}     every node but the root, in any order, some twice
 *   {"dir":"/d","createdIndex":4,"modifiedIndex":4,"expiresAtMs":1700000000000,"ttlSeconds":60}
 *   … "dueAtMs":…                                                     the node's end by the clock of the run that took
 *                                                                     the snapshot, if it is not `expiresAtMs`
 *   {"event":{"action":"set","node":{…},"prevNode":{…}}}              the history, oldest first
 *
 * A field can be added without a new version if lines without the field keep their meaning. A snapshot has no
 * `OperationCounts`, because they begin at 0 with each start.
 */

import { nextTurn } from "../../lib/slices.ts";
import { newerFormat } from "../core/log-port.ts";
import type { Action, NodeRecord, StoreEvent } from "../core/node.ts";
import {
  flagFrom,
  numberFrom,
  objectFrom,
  parseJson,
  pathFrom,
  type StoredFields,
  textFrom,
  unreadable,
} from "../core/stored-json.ts";
import type { Timer } from "../tree/expiring-set.ts";
import type { Tree } from "../tree/tree.ts";
import type { StoredNode } from "../tree/tree-walk.ts";
import type { EventRing } from "../watch/event-ring.ts";

const version = 1;
const encoder = new TextEncoder();

/** Which start made the last change, see `StateMachine`. */
export interface Origin {
  /** Undefined before the first change, and if an older davit made the change. */
  readonly run: string | undefined;
  readonly term: number;
}

/** The content of a snapshot. It may be encoded later, because events and nodes are immutable. */
export interface StoreState {
  readonly index: number;
  readonly oldestIndex: number;
  /** Absent in a backup, and in the snapshot that a restore writes. */
  readonly origin?: Origin;
  /** Time of the last record by the clock of its run; absent if unknown. */
  readonly atMs?: number | undefined;
  readonly events: readonly StoreEvent[];
  /** The nodes in steps; undefined for a step without a node. */
  readonly nodes: Iterable<StoredNode | undefined>;
}

// Encoding this many bytes takes a millisecond or two. Each step counts as some bytes, because it takes time, too.
const sliceBytes = 128 * 1024;
const stepBytes = 50;

/** The bytes of a state in slices that each take a millisecond or two to make. A slice may be empty. */
export function* encodeState({ index, oldestIndex, origin, atMs, events, nodes }: StoreState): Iterable<Uint8Array> {
  let lines = lineOf({ v: version, index, oldestIndex, run: origin?.run, term: origin?.term, atMs });
  let cost = 0;
  for (const node of nodes) {
    const line = node === undefined ? "" : lineOf(fieldsOf(node));
    lines += line;
    cost += stepBytes + line.length;
    if (cost < sliceBytes) continue;
    yield encoder.encode(lines);
    lines = "";
    cost = 0;
  }
  for (const event of events) {
    lines += lineOf({ event });
    if (lines.length < sliceBytes) continue;
    yield encoder.encode(lines);
    lines = "";
  }
  yield encoder.encode(lines);
}

/** The bytes of a state. Other work runs after each slice. */
export async function* encodeInTurns(state: StoreState): AsyncGenerator<Uint8Array> {
  for (const slice of encodeState(state)) {
    if (slice.length > 0) yield slice;
    await nextTurn();
  }
}

function lineOf(fields: object): string {
  return `${JSON.stringify(fields)}\n`;
}

function fieldsOf({ path, kind, value, createdIndex, modifiedIndex, timer }: StoredNode): StoredFields {
  return {
    ...(kind === "file" ? { file: path, value } : { dir: path }),
    createdIndex,
    modifiedIndex,
    ...(timer !== undefined && { expiresAtMs: timer.expiresAtMs, ttlSeconds: timer.ttlSeconds }),
    ...(timer !== undefined && timer.dueAtMs !== timer.expiresAtMs && { dueAtMs: timer.dueAtMs }),
  };
}

/** Builds a state from the bytes of a snapshot, which come in pieces of any length. */
export class StateReader {
  readonly #tree: Tree;
  readonly #history: EventRing;
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  /** The beginning of an unfinished line. */
  #begun = "";
  #index: number | undefined;
  #origin: Origin | undefined;
  #atMs: number | undefined;

  /** Both `tree` and `history` must be empty. */
  constructor(tree: Tree, history: EventRing) {
    this.#tree = tree;
    this.#history = history;
  }

  /** The origin in the snapshot; undefined before it is read, and if the snapshot has none. */
  get origin(): Origin | undefined {
    return this.#origin;
  }

  /** The time of the last record; undefined before it is read, and if the snapshot has none. */
  get atMs(): number | undefined {
    return this.#atMs;
  }

  /** Takes the next piece. @throws {WalError} newerFormat; damaged for other bytes that no davit writes. */
  push(piece: Uint8Array): void {
    const [first = "", ...others] = this.#decoded(piece).split("\n");
    const last = others.pop();
    if (last === undefined) {
      this.#begun += first;
      return;
    }
    this.#take(this.#begun + first);
    for (const line of others) this.#take(line);
    this.#begun = last;
  }

  /** Call it after the last piece. @throws {WalError} damaged. */
  end(): void {
    this.#begun += this.#decoded();
    if (this.#index === undefined || this.#begun !== "") throw unreadable("snapshot's end");
    if (this.#history.nextIndex !== this.#index + 1) throw unreadable("snapshot's history");
    this.#tree.restoreIndex(this.#index);
  }

  /** @param piece undefined at the end, where no character may be unfinished. */
  #decoded(piece?: Uint8Array): string {
    try {
      return this.#utf8.decode(piece, { stream: piece !== undefined });
    } catch {
      throw unreadable("text");
    }
  }

  #take(line: string): void {
    const fields = objectFrom(parseJson(line));
    if (this.#index === undefined) this.#begin(fields);
    else if (fields.event !== undefined) this.#history.add(eventFrom(objectFrom(fields.event)));
    else this.#tree.restore(nodeFrom(fields));
  }

  #begin(fields: StoredFields): void {
    const found = numberFrom(fields.v);
    if (found > version) throw newerFormat("a snapshot", found, version);
    this.#index = numberFrom(fields.index);
    if (fields.run !== undefined) this.#origin = { run: textFrom(fields.run), term: numberFrom(fields.term) };
    if (fields.atMs !== undefined) this.#atMs = numberFrom(fields.atMs);
    this.#history.beginAt(numberFrom(fields.oldestIndex));
  }
}

function nodeFrom(fields: StoredFields): StoredNode {
  const kind = fields.dir === undefined ? "file" : "directory";
  const path = pathFrom(fields.dir ?? fields.file);
  const createdIndex = numberFrom(fields.createdIndex);
  const modifiedIndex = numberFrom(fields.modifiedIndex);
  const timer = fields.expiresAtMs === undefined ? undefined : timerFrom(fields, path, createdIndex);
  return { path, kind, value: kind === "file" ? textFrom(fields.value) : "", createdIndex, modifiedIndex, timer };
}

function timerFrom(fields: StoredFields, path: Timer["path"], createdIndex: number): Timer {
  const expiresAtMs = numberFrom(fields.expiresAtMs);
  const ttlSeconds = numberFrom(fields.ttlSeconds);
  const dueAtMs = fields.dueAtMs === undefined ? expiresAtMs : numberFrom(fields.dueAtMs);
  return { path, createdIndex, expiresAtMs, ttlSeconds, dueAtMs, position: -1 };
}

const actions: readonly Action[] = [
  "set",
  "create",
  "update",
  "compareAndSwap",
  "delete",
  "compareAndDelete",
  "expire",
];

function eventFrom(fields: StoredFields): StoreEvent {
  const action = actions.find((each) => each === fields.action);
  if (action === undefined) throw unreadable("event");
  return {
    action,
    node: recordFrom(objectFrom(fields.node)),
    ...(fields.prevNode !== undefined && { prevNode: recordFrom(objectFrom(fields.prevNode)) }),
    ...(fields.isRefresh === true && { isRefresh: true }),
  };
}

/** Reads a record. Its fields have the same order as in the tree, so that the next snapshot has the same bytes. */
function recordFrom(fields: StoredFields): NodeRecord {
  const { value, expiresAtMs, ttlSeconds } = fields;
  const isDirectory = flagFrom(fields.isDirectory);
  return {
    path: pathFrom(fields.path),
    isDirectory,
    ...(value !== undefined && { value: textFrom(value) }),
    createdIndex: numberFrom(fields.createdIndex),
    modifiedIndex: numberFrom(fields.modifiedIndex),
    ...(expiresAtMs !== undefined && { expiresAtMs: numberFrom(expiresAtMs) }),
    ...(ttlSeconds !== undefined && { ttlSeconds: numberFrom(ttlSeconds) }),
  };
}
