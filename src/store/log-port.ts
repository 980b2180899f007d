/**
 * The log as the state machine sees it: a port, so that a replicated log can take the place of the file. The store
 * applies only what `onCommitted` delivers, in that order, whoever proposed it.
 */

export interface LogIdentity {
  /** Of the whole history, 64 bits in lower-case hex without leading zeros; clients take another one for a fault. */
  readonly clusterId: string;
  /** Of this copy, in the same form. */
  readonly memberId: string;
  /** Grows with every start; 0 until `onCommitted` has replayed the log. */
  readonly term: number;
  /** Of this start alone, random, in the same form: two starts on copies of one log have the same term. */
  readonly run: string;
}

/**
 * `full`: the disk has no room, and only what frees some is taken. `readOnly`: the disk fails. Both end by themselves when
 * the disk allows. `lost`: another process may write the directory, so this one never does again. `closed`: not replayed
 * yet, or stopped.
 */
export type LogStatus = "writable" | "full" | "readOnly" | "lost" | "closed";

export interface ProposeOptions {
  /** What it asks for frees room, or cannot wait: it is taken although the disk is full, while the reserve lasts. */
  readonly frees?: boolean;
}

/**
 * A record that will always be there. Records carry consecutive sequences, those of the log itself among them. `term`
 * is that of the start that proposed it.
 */
export type CommittedListener = (sequence: number, bytes: Uint8Array, term: number) => void;

/** The whole state after the record `sequence`. */
export interface Snapshot {
  readonly sequence: number;
  /** Its bytes, cut anyhow; to be read once. @throws {WalError} when they cannot be read to the end. */
  readonly pieces: AsyncIterable<Uint8Array>;
}

export interface LogPort {
  readonly identity: LogIdentity;
  readonly status: LogStatus;
  /**
   * Hands every record behind the loaded snapshot to `listener`, then opens the log for proposals; resolves when that
   * is done. Later records follow as they are committed. To be called once. `bytes` may be a view of a larger buffer,
   * for the time of the call only. What the listener throws is a bug and ends the process.
   * @throws {WalError} when the log cannot be read as a whole.
   */
  onCommitted(listener: CommittedListener): Promise<void>;
  /**
   * Logs a record. Resolves with its sequence once it is on disk and the listener has returned.
   * @throws {WalError} when it could not be logged; after `readOnly` it may yet be found there by a restart, unless the
   *   log became writable before.
   */
  propose(bytes: Uint8Array, options?: ProposeOptions): Promise<number>;
  /** The next record begins a file of its own, so that `releaseBefore` may release all that is before it. */
  endSegment(): void;
  /**
   * Keeps the state after the record `sequence`, given in pieces; resolves once it is on disk. Those before it may go,
   * but for the newest that is whole.
   * @throws {WalError} when it could not be kept; what the pieces throw, if that is one.
   */
  saveSnapshot(sequence: number, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void>;
  /**
   * The newest snapshot that is whole; undefined when there is none. To be called before `onCommitted`.
   * @throws {WalError} newerFormat; unusable when the disk fails.
   */
  loadSnapshot(): Promise<Snapshot | undefined>;
  /** Allows the log to forget records before `sequence`. @throws {WalError} when the disk fails; nothing is lost. */
  releaseBefore(sequence: number): Promise<void>;
  /** Logs what was proposed, ends the log cleanly and gives the directory back; idempotent. */
  stop(): Promise<void>;
}

/**
 * `locked`: another process has the directory, or may have it. `damaged`: something acknowledged cannot be read. `newerFormat`: a later
 * davit wrote it. `noSpace` and `appendFailed`: not logged, a later try may succeed. `readOnly`: a sync failed.
 * `overloaded`: too much waits for the disk. `closed`: the log was stopped. `unusable`: the directory cannot be used.
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

/** A log that cannot do what was asked. */
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
