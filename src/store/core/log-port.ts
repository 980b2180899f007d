/**
 * The log's interface for the state machine: a port, so that a replicated log can replace the file. The store applies
 * only what `onCommitted` delivers, in that order, whoever proposed it.
 */

export interface LogIdentity {
  /**
   * Of the whole history, 64 bits in lower-case hex without leading zeros; clients treat any other form as an error.
   */
  readonly clusterId: string;
  /** Of this copy, in the same form. */
  readonly memberId: string;
  /** Grows with every start; 0 until `onCommitted` has replayed the log. */
  readonly term: number;
  /** Of this start only, random, in the same form: two starts on copies of one log have the same term. */
  readonly run: string;
}

/**
 * `full`: the disk has no room, and the log takes only records that free some. `readOnly`: the disk fails. The log
 * leaves both when the disk works again. `lost`: another process may write the directory, so this one never writes
 * again. `closed`: not replayed yet, or stopped.
 */
export type LogStatus = "writable" | "full" | "readOnly" | "lost" | "closed";

export interface ProposeOptions {
  /** The record frees room or cannot wait: the log takes it even on a full disk, while the reserve lasts. */
  readonly frees?: boolean;
}

/**
 * Takes a durable record. Sequences are consecutive and count the log's own records, too. `term` is the term of the
 * start that proposed the record.
 */
export type CommittedListener = (sequence: number, bytes: Uint8Array, term: number) => void;

/** The whole state after the record `sequence`. */
export interface Snapshot {
  readonly sequence: number;
  /** Its bytes, in pieces of any length; read them once. @throws {WalError} when they cannot be read to the end. */
  readonly pieces: AsyncIterable<Uint8Array>;
}

export interface LogPort {
  readonly identity: LogIdentity;
  readonly status: LogStatus;
  /**
   * Hands every record after the loaded snapshot to `listener`, then opens the log for proposals and resolves. Later
   * records follow as they are committed. Call it once. `bytes` may be a view of a larger buffer, only valid during the
   * call. Anything that the listener throws is a bug and ends the process.
   * @throws {WalError} when the log cannot be read as a whole.
   */
  onCommitted(listener: CommittedListener): Promise<void>;
  /**
   * Logs a record. Resolves with its sequence once it is on disk and the listener has returned.
   * @throws {WalError} when it could not be logged. After `readOnly` a restart may still find the record, unless the
   * log became writable before.
   */
  propose(bytes: Uint8Array, options?: ProposeOptions): Promise<number>;
  /** Makes the next record begin a new file, so that `releaseBefore` can release all earlier records. */
  endSegment(): void;
  /**
   * Saves the state after the record `sequence`, given in pieces; resolves once it is on disk. Earlier snapshots may be
   * removed, except the newest whole one.
   * @throws {WalError} when it could not be saved, or when the pieces throw one.
   */
  saveSnapshot(sequence: number, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void>;
  /**
   * The newest whole snapshot; undefined without one. Call it before `onCommitted`.
   * @throws {WalError} newerFormat; unusable when the disk fails.
   */
  loadSnapshot(): Promise<Snapshot | undefined>;
  /** Allows the log to forget records before `sequence`. @throws {WalError} when the disk fails; nothing is lost. */
  releaseBefore(sequence: number): Promise<void>;
  /** Logs what was proposed, ends the log cleanly and releases the directory; idempotent. */
  stop(): Promise<void>;
}

/**
 * `locked`: another process uses the directory, or may use it. `damaged`: acknowledged bytes cannot be read.
 * `newerFormat`: a later davit wrote it. `noSpace` and `appendFailed`: not logged, a retry may succeed. `readOnly`: a
 * sync failed. `overloaded`: too many bytes wait for the disk. `closed`: the log was stopped. `unusable`: the directory
 * cannot be used.
 */
export type WalFailure =
  | "locked"
  | "damaged"
  | "newerFormat"
  | "noSpace"
  | "appendFailed"
  | "readOnly"
  | "overloaded"
  | "closed"
  | "unusable";

/** The log cannot do what was requested. */
export class WalError extends Error {
  override readonly name = "WalError";
  readonly reason: WalFailure;

  constructor(reason: WalFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** For bytes that a later davit wrote. `subject` is what was read, for the sentence "Reading …". */
export function newerFormat(subject: string, found: number, known: number): WalError {
  const advice = "start the davit that wrote it, or a later one";
  return new WalError(
    "newerFormat",
    `Reading ${subject}: its version is ${found} and this davit knows ${known}; ${advice}`,
  );
}
