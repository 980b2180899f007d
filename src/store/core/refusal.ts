/**
 * Every refusal of the store, with the numbers and texts that v2 clients know (etcd v3.4.23 v2error/error.go).
 * A refusal is an answer, not a fault: the command stays in the log, and every replay refuses it in the same way.
 */

export interface StoreRefusal {
  readonly code: number;
  readonly message: string;
  /** HTTP status of the answer. */
  readonly status: number;
  /** For an answer that asks for a retry. */
  readonly retryAfterSeconds?: number;
}

export const refusals = {
  keyNotFound: { code: 100, message: "Key not found", status: 404 },
  compareFailed: { code: 101, message: "Compare failed", status: 412 },
  notFile: { code: 102, message: "Not a file", status: 403 },
  notDirectory: { code: 104, message: "Not a directory", status: 400 },
  keyExists: { code: 105, message: "Key already exists", status: 412 },
  rootReadOnly: { code: 107, message: "Root is read only", status: 400 },
  /** Our own: the path has a prefix that only davit writes. The code is the root's, because clients know it. */
  reserved: { code: 107, message: "Root is read only", status: 403 },
  unauthorized: { code: 110, message: "The request requires user authentication", status: 401 },
  /** Our own: the request needs credentials, but none are configured; or the credentials only allow reading. */
  forbidden: { code: 110, message: "The request requires user authentication", status: 403 },
  directoryNotEmpty: { code: 108, message: "Directory not empty", status: 403 },
  prevValueRequired: { code: 201, message: "PrevValue is Required in POST form", status: 400 },
  ttlNotNumber: { code: 202, message: "The given TTL in POST form is not a number", status: 400 },
  indexNotNumber: { code: 203, message: "The given index in POST form is not a number", status: 400 },
  invalidField: { code: 209, message: "Invalid field", status: 400 },
  invalidForm: { code: 210, message: "Invalid POST form", status: 400 },
  valueOnRefresh: { code: 211, message: "Value provided on refresh", status: 400 },
  ttlRequired: { code: 212, message: "A TTL must be provided on refresh", status: 400 },
  /** The log could not take the command; whether it took effect may be unknown. */
  logFailed: { code: 300, message: "Raft Internal Error", status: 500 },
  /** Our own: the write would exceed the quota. */
  quotaExceeded: { code: 300, message: "Raft Internal Error", status: 500 },
  /** Our own. */
  tooManyWatchers: { code: 300, message: "Raft Internal Error", status: 503, retryAfterSeconds: 5 },
  /** Our own: there is no room for more connections, request bodies, or unread answers. */
  crowded: { code: 300, message: "Raft Internal Error", status: 503, retryAfterSeconds: 5 },
  historyCleared: { code: 401, message: "The event in requested index is outdated and cleared", status: 400 },
} as const satisfies Record<string, StoreRefusal>;

export type RefusalName = keyof typeof refusals;

/** A request that the store refuses. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly refusal: RefusalName;
  /** The detail in the protocol's form: a path, `[given != current]`, a sentence. May be empty. */
  readonly causeText: string;
  /** The store index at the time; 0 for a refusal without the store. */
  readonly index: number;

  constructor(refusal: RefusalName, causeText: string, index: number, options?: ErrorOptions) {
    super(causeText === "" ? refusals[refusal].message : `${refusals[refusal].message}: ${causeText}`, options);
    this.refusal = refusal;
    this.causeText = causeText;
    this.index = index;
  }
}
