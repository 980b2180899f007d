/**
 * A state machine on a log. A replica logs records, and applies the records that the log delivers. It knows nothing of
 * watches, quotas or expiry.
 */

import { inSlices } from "../lib/slices.ts";
import { type Command, type CommandRecord, type NewRun, newRunOf } from "./command/command.ts";
import { decodeRecord, encodeBatchRecord, encodeRecord } from "./command/command-codec.ts";
import {
  type LogPort,
  type LogTime,
  type ProposeOptions,
  type Snapshot,
  WalError,
  type WalFailure,
} from "./core/log-port.ts";
import type { StoreEvent } from "./core/node.ts";
import { StoreError } from "./core/refusal.ts";
import { StateMachine } from "./snapshot/state-machine.ts";
import type { Change } from "./tree/change.ts";

export interface StoreIndexes {
  /** The index of the last change. */
  readonly storeIndex: number;
  /** The sequence of the last record that the log delivered. */
  readonly raftIndex: number;
  readonly raftTerm: number;
}

/** The result of a command that was applied. */
export interface Applied {
  /** One for each change, in order. */
  readonly events: readonly StoreEvent[];
  /** The last event, which is the only one unless the command is a batch. */
  readonly event: StoreEvent;
  /** The indexes right after the last event. */
  readonly indexes: StoreIndexes;
}

interface ReplicaListener {
  /** Takes the result of a record: its changes, or why it was refused. */
  applied(command: Command, result: readonly Change[] | StoreError, recordBytes: number): void;
  /** The whole state was replaced by that of a snapshot: at the start, or because this member was left behind. */
  replaced(sequence: number): void;
  /** See `MembershipListener`. */
  elected(): void;
  deposed(): void;
}

/**
 * A record on its way through the log. When the log delivers it, its bytes need no decoding, because `encodeRecord`
 * omits nothing.
 */
interface Proposed {
  readonly record: CommandRecord;
  /** Set when the log delivers the record; stays undefined if the record changed nothing. */
  outcome: Applied | StoreError | undefined;
}

const mark: Command = { kind: "batch", commands: [] };

export class Replica {
  readonly state: StateMachine;
  readonly #log: LogPort;
  /** The records that this process proposed and the log has not delivered yet, by their bytes. */
  readonly #proposed = new Map<Uint8Array, Proposed>();
  /** The fields for the next records of this run; undefined as soon as a record with the run is in the log. */
  #newRun: NewRun | undefined;
  #raftIndex = 0;
  #isReplaying = true;
  readonly #observeFailure: (reason: WalFailure) => void;

  /** @param agelessRoot see `StateMachine`. @param observeFailure is called for each record that the log refuses. */
  constructor(log: LogPort, agelessRoot: string | undefined, observeFailure: (reason: WalFailure) => void = () => {}) {
    this.#log = log;
    this.#observeFailure = observeFailure;
    this.state = new StateMachine(agelessRoot);
  }

  get indexes(): StoreIndexes {
    return { storeIndex: this.state.tree.index, raftIndex: this.#raftIndex, raftTerm: this.#log.identity.term };
  }

  /** True until `open` has read the whole log. */
  get isReplaying(): boolean {
    return this.#isReplaying;
  }

  /** Builds the state from the newest snapshot and the later log, then follows the log. @throws {WalError} */
  async open(listener: ReplicaListener): Promise<void> {
    const log = this.#log;
    const snapshot = await log.loadSnapshot();
    if (snapshot !== undefined) await this.#restore(listener, snapshot);
    await log.onCommitted((sequence, bytes, term) => this.#commit(listener, { sequence, bytes, term }), {
      elected: () => listener.elected(),
      deposed: () => listener.deposed(),
      leftBehind: (later) => this.#restore(listener, later),
    });
    this.#isReplaying = false;
  }

  /** Begins the run of a log that no other davit may write. The next records carry its id. */
  beginRun(): void {
    const { run, term } = this.#log.identity;
    const beganAtMs = this.#log.membership.now().atMs;
    this.#newRun = { run, beganAtMs };
    this.state.beginRun(term, beganAtMs);
  }

  /** Logs the record with which this member's term begins. @throws {StoreError} logFailed. */
  async beginTerm(): Promise<void> {
    // The term's clock begins at the last record. This record brings it to now, so nodes that were due stay due.
    if (this.state.tree.timers.size > 0) await this.propose(mark, { frees: true });
    const atMs = this.#log.membership.ownMs();
    await this.#write({ atMs, run: this.#log.identity.run, beganAtMs: atMs, command: mark }, { beginsTerm: true });
  }

  /** Logs a record that changes nothing, if this member leads. @throws {StoreError} logFailed. */
  async mark(): Promise<void> {
    await this.propose(mark, { frees: true, fenced: true });
  }

  /**
   * Logs a command; resolves when the command is applied.
   * @param time when it was requested; now unless given.
   * @returns undefined if nothing changed. @throws {StoreError} why it was refused; logFailed.
   */
  propose(
    command: Command,
    options: ProposeOptions | undefined,
    time = this.#log.membership.now(),
  ): Promise<Applied | undefined> {
    const proposal: CommandRecord = { ...stamp(time), command };
    return this.#write(
      this.#newRun === undefined ? proposal : { ...proposal, ...newRunOf(this.#newRun, command) },
      options,
    );
  }

  async #write(record: CommandRecord, options: ProposeOptions | undefined): Promise<Applied | undefined> {
    const { command } = record;
    const bytes =
      command.kind === "batch" ? await inSlices(encodeBatchRecord(record, command.commands)) : encodeRecord(record);
    const proposed: Proposed = { record, outcome: undefined };
    this.#proposed.set(bytes, proposed);
    try {
      await this.#log.propose(bytes, options);
    } catch (error) {
      this.#proposed.delete(bytes);
      if (!(error instanceof WalError)) throw error;
      this.#observeFailure(error.reason);
      throw new StoreError("logFailed", error.message, 0, { cause: error });
    }
    if (proposed.outcome instanceof StoreError) throw proposed.outcome;
    return proposed.outcome;
  }

  #commit(listener: ReplicaListener, { sequence, bytes, term }: Delivered): void {
    this.#raftIndex = sequence;
    const proposed = this.#proposed.get(bytes);
    this.#proposed.delete(bytes);
    const logged = proposed?.record ?? decodeRecord(bytes);
    if (logged.run === this.#newRun?.run) this.#newRun = undefined;
    const result = this.state.apply(logged, term);
    if (proposed !== undefined) proposed.outcome = this.#outcomeOf(result);
    listener.applied(logged.command, result, bytes.length);
  }

  #outcomeOf(result: readonly Change[] | StoreError): Applied | StoreError | undefined {
    if (result instanceof StoreError) return result;
    const events = result.map(({ event }) => event);
    const event = events.at(-1);
    // All expiries of a batch may be void: then nothing changed.
    return event === undefined ? undefined : { events, event, indexes: this.indexes };
  }

  async #restore(listener: ReplicaListener, snapshot: Snapshot): Promise<void> {
    await this.state.restore(snapshot);
    this.#raftIndex = snapshot.sequence;
    listener.replaced(snapshot.sequence);
  }
}

interface Delivered {
  readonly sequence: number;
  readonly bytes: Uint8Array;
  readonly term: number;
}

/** The time of a record, and whose clock it is. */
function stamp({ atMs, term }: LogTime): Pick<CommandRecord, "atMs" | "clockTerm"> {
  return term === undefined ? { atMs } : { atMs, clockTerm: term };
}
