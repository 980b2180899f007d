/**
 * The port through which the store uses its log. Because it is a port, a replicated log could replace the file. The
 * store applies the records that `onCommitted` delivers, in their order, no matter which process proposed them.
 */

export interface LogIdentity {
  /**
   * The id of the whole history: 64 bits in lower-case hex without leading zeros. Clients treat any other form as an
   * error.
   */
  readonly clusterId: string;
  /** The id of this copy of the log, in the same form. */
  readonly memberId: string;
  /** Grows with every new leader. For a file, every start is a new leader. */
  readonly term: number;
  /**
   * A random id of this start, in the same form. The term does not identify a start: starts on two copies of a log can
   * have equal terms.
   */
  readonly run: string;
}

/** Makes an id. It is not 0: for clients, 0 means that there is no id. @param random gives bytes that do not repeat. */
export function randomId(random: (bytes: number) => Uint8Array): bigint {
  return idIn(random(8));
}

/** The id in the first 8 of some random bytes, or of a hash. */
export function idIn(bytes: Uint8Array): bigint {
  const id = Buffer.from(bytes).readBigUInt64LE();
  return id === 0n ? 1n : id;
}

/** A davit that writes a log with several members. */
export interface LogMember {
  /** As `LogIdentity.memberId`. */
  readonly id: string;
  readonly name: string;
  /** Where clients reach its store. */
  readonly clientUrls: readonly string[];
}

/** The time that a record is given. */
export interface LogTime {
  /** Unix milliseconds by the leader's clock, which never steps while that member leads. */
  readonly atMs: number;
  /** The term of that leader; undefined for a log with one member. */
  readonly term: number | undefined;
}

/**
 * `full`: the disk has no room, and the log takes only records with `frees`; or etcd has reached its quota, and the log
 * takes no record. `readOnly`: the disk or etcd fails. In all these cases the log becomes `writable` again as soon as a
 * write succeeds. `lost`: another process may be writing to the directory, or etcd has another log, so this process
 * never writes again. `closed`: not replayed yet, or stopped.
 */
export type LogStatus = "writable" | "full" | "readOnly" | "lost" | "closed";

/** What a member has counted since its start, in a log with several members. */
export interface LogCounts {
  /** Batches of records that this member wrote. */
  readonly sentBatches: number;
  /** Batches of other members that this one received. */
  readonly receivedBatches: number;
  /** How often each other member has reported that it runs, by its id. */
  readonly reports: ReadonlyMap<string, number>;
}

/** What this davit knows about the members of its log. */
export interface LogMembership {
  /** True while this member may propose fenced records. */
  readonly isLeader: boolean;
  /** The id of the leader; undefined while there is none. */
  readonly leaderId: string | undefined;
  /** A monotonic time: since then, `leaderId` has been the same. Undefined for a log that only one davit may write. */
  readonly leaderSinceMs: number | undefined;
  readonly counts: LogCounts;
  /** A monotonic time at which this member had every record of the log. Undefined as `leaderSinceMs`. */
  readonly completeAtMs: number | undefined;
  /** In milliseconds: another member leads this long after a leader was lost, at the latest. */
  readonly electionMs: number;
  /** All members that are known to be running, this one first; empty for a log that only one davit may write. */
  readonly members: readonly LogMember[];
  /** Keys among those of the members that no davit wrote; davit ignores them. */
  readonly strangeKeys: ReadonlySet<string>;
  /** The time for a new record. */
  now(): LogTime;
  /** The `atMs` of `now`, for reads that skip expired nodes. Every read calls this, so it makes no object. */
  nowMs(): number;
  /** How far `nowMs` is behind the leader's clock, at most, in milliseconds; Infinity until the leader was heard. */
  readonly behindMs: number;
  /** Unix milliseconds by this member's own clock: the time of the record that begins its term. */
  ownMs(): number;
  /**
   * Resolves when the listener has received every record that any member committed before the call. The driver begins
   * its look at the end of the log after the call, and etcd answers that look from a quorum. So a write that anybody
   * saw acknowledged before the call is in that answer.
   * @throws {WalError} when davit cannot find out which records were committed.
   */
  barrier(): Promise<void>;
}

/** The membership of a log that only one davit may write. @param nowMs a clock that never steps. */
export function soleMembership(nowMs: () => number): LogMembership {
  return {
    isLeader: true,
    leaderId: undefined,
    leaderSinceMs: undefined,
    counts: { sentBatches: 0, receivedBatches: 0, reports: new Map() },
    completeAtMs: undefined,
    electionMs: 0,
    members: [],
    strangeKeys: new Set(),
    now: () => ({ atMs: nowMs(), term: undefined }),
    nowMs,
    behindMs: 0,
    ownMs: nowMs,
    barrier: () => Promise.resolve(),
  };
}

export interface ProposeOptions {
  /**
   * True for a record that frees room or cannot wait. The log takes it even on a full disk, while the reserve lasts.
   */
  readonly frees?: boolean;
  /** The log takes the record only while this member leads. */
  readonly fenced?: boolean;
  /**
   * The record begins this member's term, and is fenced, too. In a log with several members, the new leader proposes
   * such a record after each election.
   */
  readonly beginsTerm?: boolean;
}

/**
 * Takes a durable record. Sequences grow, with gaps: the log's own records have sequences, too, and are not delivered.
 * `term` is the term of the leader at that place in the log.
 */
export type CommittedListener = (sequence: number, bytes: Uint8Array, term: number) => void;

/** What a log with several members reports besides records. */
export interface MembershipListener {
  /** This member was elected, and has applied all records before the election. Its next proposal has `beginsTerm`. */
  elected(): void;
  /** This member no longer leads; the log refuses its fenced records. */
  deposed(): void;
  /**
   * Records after the last delivered one are gone, because a snapshot replaced them. The log delivers later records
   * after the returned promise has resolved.
   * @throws {WalError} when the snapshot cannot be read to its end.
   */
  leftBehind(snapshot: Snapshot): Promise<void>;
}

/** The whole state after the record `sequence`. */
export interface Snapshot {
  readonly sequence: number;
  /**
   * The state's bytes, in pieces of any length. Iterate once. @throws {WalError} when they cannot be read to the end.
   */
  readonly pieces: AsyncIterable<Uint8Array>;
}

export interface LogPort {
  /** Read it only after `onCommitted` has replayed the log. */
  readonly identity: LogIdentity;
  readonly status: LogStatus;
  /** One line for operators: why the log cannot be written, and what to do. Undefined while it can. */
  readonly trouble: string | undefined;
  readonly membership: LogMembership;
  /**
   * After this many snapshots in a row, each after a record of its own and in a segment begun before the first one, the
   * log has nothing that was removed or overwritten before them.
   */
  readonly snapshotsPerPurge: number;
  /**
   * Hands every record after the loaded snapshot to `listener`, then opens the log for proposals and resolves. After
   * that, `listener` gets each record that is committed. Call this once.
   * `bytes` may be a view of a larger buffer: it is valid only during the call. A `WalError` of the listener during the
   * replay rejects the promise. Any other error of the listener is a bug and ends the process.
   * @throws {WalError} when the log cannot be read as a whole.
   */
  onCommitted(listener: CommittedListener, membership: MembershipListener): Promise<void>;
  /**
   * Logs a record. It resolves with the record's sequence, after the record is on disk and the listener has returned.
   * @throws {WalError} when the record could not be logged. After a `readOnly` failure a restart can still find the
   * record, unless the log became writable before that restart.
   */
  propose(bytes: Uint8Array, options?: ProposeOptions): Promise<number>;
  /** Makes the next record begin a new file, so that `releaseBefore` can release all earlier records. */
  endSegment(): void;
  /**
   * Saves the state after the record `sequence`, given in pieces, and resolves when the state is on disk. It may remove
   * earlier snapshots, but keeps the newest whole one of them.
   * @throws {WalError} when the state cannot be saved, and any `WalError` that `pieces` throws.
   */
  saveSnapshot(sequence: number, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void>;
  /**
   * Returns the newest whole snapshot, or undefined if there is none. Call it before `onCommitted`.
   * @throws {WalError} newerFormat; unusable when the files cannot be accessed.
   */
  loadSnapshot(): Promise<Snapshot | undefined>;
  /**
   * Allows the log to remove records before `sequence`. The log keeps this record and all later ones.
   * @throws {WalError} when the disk fails.
   */
  releaseBefore(sequence: number): Promise<void>;
  /** Logs the waiting proposals, ends the log cleanly and releases the directory; idempotent. */
  stop(): Promise<void>;
}

/**
 * `locked`: another process uses the directory, or may use it. `damaged`: stored bytes are lost or unreadable.
 * `newerFormat`: a later davit wrote the files. `noSpace` and `appendFailed`: the record was not logged, and a retry
 * can succeed. `readOnly`: a sync failed. `overloaded`: too many bytes wait for the disk. `closed`: the log was
 * stopped. `unusable`: the directory or a file in it cannot be used.
 */
export type WalFailure = (typeof walFailures)[number];

/** Every `WalFailure`. */
export const walFailures = [
  "locked",
  "damaged",
  "newerFormat",
  "noSpace",
  "appendFailed",
  "readOnly",
  "overloaded",
  "deposed",
  "closed",
  "unusable",
] as const;

/** An error of the log: `reason` is for code, the message for the operator. */
export class WalError extends Error {
  override readonly name = "WalError";
  readonly reason: WalFailure;

  constructor(reason: WalFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** Makes the error for bytes that a later davit wrote. The message begins with "Reading" and `subject`. */
export function newerFormat(subject: string, found: number, known: number): WalError {
  const advice = "start the davit that wrote it, or a later one";
  return new WalError(
    "newerFormat",
    `Reading ${subject}: its version is ${found} and this davit knows ${known}; ${advice}`,
  );
}

/**
 * The name of the mark that a moved store leaves in its former place, in a directory or below a prefix. The records
 * there are whole, but no davit may go on from them by accident: clients would write to two stores with the same
 * cluster id.
 */
export const movedName = "moved";

/** The error of a start on a marked place. @param to where the store is now. @param mark what to remove, for people. */
export function movedAway(place: string, to: string, mark: string): WalError {
  const advice = `start davit on that one; to go on with this copy instead, remove ${mark}`;
  return new WalError("unusable", `Opening ${place}: davit migrate-store moved its store to ${to}: ${advice}`);
}
