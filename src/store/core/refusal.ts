/**
 * Every refusal of the store, with the numbers and texts that v2 clients know (etcd v3.4.23 v2error/error.go). A
 * refusal is no fault. A command that the tree refuses stays in the log, and every replay refuses it in the same way.
 */

export interface StoreRefusal {
  readonly code: number;
  readonly message: string;
  /** HTTP status of the answer. */
  readonly status: number;
  /** The value of the answer's `Retry-After`; absent if a retry does not help. */
  readonly retryAfterSeconds?: number;
}

export const refusals = {
  keyNotFound: { code: 100, message: "Key not found", status: 404 },
  compareFailed: { code: 101, message: "Compare failed", status: 412 },
  notFile: { code: 102, message: "Not a file", status: 403 },
  notDirectory: { code: 104, message: "Not a directory", status: 400 },
  keyExists: { code: 105, message: "Key already exists", status: 412 },
  rootReadOnly: { code: 107, message: "Root is read only", status: 400 },
  /**
   * Not in etcd: the path has a prefix that only davit writes. It has the code of `rootReadOnly`, which clients know.
   */
  reserved: { code: 107, message: "Root is read only", status: 403 },
  unauthorized: { code: 110, message: "The request requires user authentication", status: 401 },
  /** Not in etcd: no credentials are configured for the request, or the client's credentials only allow reading. */
  forbidden: { code: 110, message: "The request requires user authentication", status: 403 },
  directoryNotEmpty: { code: 108, message: "Directory not empty", status: 403 },
  prevValueRequired: { code: 201, message: "PrevValue is Required in POST form", status: 400 },
  ttlNotNumber: { code: 202, message: "The given TTL in POST form is not a number", status: 400 },
  indexNotNumber: { code: 203, message: "The given index in POST form is not a number", status: 400 },
  invalidField: { code: 209, message: "Invalid field", status: 400 },
  invalidForm: { code: 210, message: "Invalid POST form", status: 400 },
  valueOnRefresh: { code: 211, message: "Value provided on refresh", status: 400 },
  ttlRequired: { code: 212, message: "A TTL must be provided on refresh", status: 400 },
  /** The log failed. After a failed sync, it is not known yet whether the command takes effect. */
  logFailed: { code: 300, message: "Raft Internal Error", status: 500 },
  /** Not in etcd: the write would exceed the quota. */
  quotaExceeded: { code: 300, message: "Raft Internal Error", status: 500 },
  /** Not in etcd: the limit of watches is reached. */
  tooManyWatchers: { code: 300, message: "Raft Internal Error", status: 503, retryAfterSeconds: 5 },
  /** Not in etcd: there is no room for more connections, request bodies, or unread answers. */
  crowded: { code: 300, message: "Raft Internal Error", status: 503, retryAfterSeconds: 5 },
  historyCleared: { code: 401, message: "The event in requested index is outdated and cleared", status: 400 },
} as const satisfies Record<string, StoreRefusal>;

export type RefusalName = keyof typeof refusals;

/** A request that the store refuses. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly refusal: RefusalName;
  /** The detail in the protocol's form: a path, `[given != current]`, or a sentence. Empty if there is none. */
  readonly causeText: string;
  /** The store index at the refusal, if the tree or the history refused; otherwise 0. */
  readonly index: number;

  constructor(refusal: RefusalName, causeText: string, index: number, options?: ErrorOptions) {
    super(causeText === "" ? refusals[refusal].message : `${refusals[refusal].message}: ${causeText}`, options);
    this.refusal = refusal;
    this.causeText = causeText;
    this.index = index;
  }
}
