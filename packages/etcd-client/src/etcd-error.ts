/** What may go wrong between davit and etcd, and whether etcd may have carried out the request all the same. */

import { Code, ConnectError } from "@connectrpc/connect";
import { ConnectFailure } from "./connect-failure.ts";

/**
 * `unavailable`: no answer, no leader or no connection; a retry may succeed. `noSpace`: the database has reached its
 * quota. `denied`: user, password, client certificate or permission. `compacted`: the revision is no longer there.
 * `tooLarge`: larger than etcd's limit of a request. `leaseNotFound`: the lease has ended. `other`: a bug or another
 * server.
 */
export type EtcdFailure = "unavailable" | "noSpace" | "denied" | "compacted" | "tooLarge" | "leaseNotFound" | "other";

export interface EtcdErrorDetails {
  readonly reason: EtcdFailure;
  /** The request may have taken effect, or may still take effect. False: it certainly has none. */
  readonly mayBeDone: boolean;
  /** The origin of the endpoint that failed last. */
  readonly endpoint: string;
  /** True if etcd itself gave the reason. */
  readonly isAnswer?: boolean | undefined;
  /** Of `compacted`: the oldest revision that etcd still has, where etcd gives it. */
  readonly compactRevision?: number | undefined;
}

/** A request or a watch that failed. The message names the endpoint and the cause, without secrets. */
export class EtcdError extends Error {
  override readonly name = "EtcdError";
  readonly reason: EtcdFailure;
  readonly mayBeDone: boolean;
  readonly endpoint: string;
  readonly compactRevision: number | undefined;
  /** See `EtcdErrorDetails`. */
  readonly isAnswer: boolean;
  /** The message without the endpoint. */
  readonly sentence: string;

  constructor(sentence: string, { reason, mayBeDone, endpoint, ...more }: EtcdErrorDetails) {
    super(`etcd at ${endpoint}: ${sentence}`);
    this.sentence = sentence;
    this.reason = reason;
    this.mayBeDone = mayBeDone;
    this.endpoint = endpoint;
    this.compactRevision = more.compactRevision;
    this.isAnswer = more.isAnswer ?? false;
  }

  /** Another endpoint may answer differently. */
  get isOfEndpoint(): boolean {
    return this.reason === "unavailable" || this.reason === "denied";
  }

  /** The same failure of a request whose earlier try may have taken effect. */
  afterEarlierTry(): EtcdError {
    return this.#with(true);
  }

  /** The same failure of a request that changes nothing. */
  withoutEffect(): EtcdError {
    return this.#with(false);
  }

  #with(mayBeDone: boolean): EtcdError {
    const { reason, endpoint, compactRevision, isAnswer } = this;
    return this.mayBeDone === mayBeDone
      ? this
      : new EtcdError(this.sentence, { reason, mayBeDone, endpoint, compactRevision, isAnswer });
  }
}

type Known = readonly [text: string, reason: EtcdFailure, mayBeDone: boolean, sentence: string];

const fullSentence = "its database has reached its quota: defragment it, and raise --quota-backend-bytes";

/**
 * etcd's own errors, by the beginning of their text: api/v3rpc/rpctypes/error.go. A proposal that raft took may be
 * committed later, so every time-out behind that point leaves the outcome open (etcdserver/v3_server.go,
 * processInternalRaftRequestOnce). A read that fails with "leader changed" has no effect, and writes never fail so.
 * etcd also checks its quota when it carries out a write, and then refuses a write that it has done (quotaApplierV3).
 */
const known: readonly Known[] = [
  ["etcdserver: mvcc: database space exceeded", "noSpace", true, fullSentence],
  ["etcdserver: request is too large", "tooLarge", false, "the request is larger than its --max-request-bytes"],
  ["grpc: received message larger than max", "tooLarge", false, "the request is larger than its --max-request-bytes"],
  ["etcdserver: mvcc: required revision has been compacted", "compacted", false, "the revision is compacted"],
  ["etcdserver: requested lease not found", "leaseNotFound", false, "the lease has ended"],
  ["etcdserver: permission denied", "denied", false, "the user may not do this: give its role the prefix"],
  ["etcdserver: authentication failed", "denied", false, "it refuses the user name or the password"],
  ["etcdserver: invalid auth token", "denied", false, "it refuses the token that it has just given"],
  ["etcdserver: revision of auth store is old", "denied", false, "its users change right now"],
  ["etcdserver: user name is empty", "denied", false, "it requires a user name and a password"],
  ["etcdserver: no leader", "unavailable", false, "it has no leader"],
  ["etcdserver: leader changed", "unavailable", false, "its leader changed"],
  ["etcdserver: too many requests", "unavailable", false, "too many requests wait there"],
  ["etcdserver: not capable", "unavailable", false, "it does not take requests yet"],
  ["etcdserver: rpc not supported for learner", "unavailable", false, "it is a learner, which takes no requests"],
  ["etcdserver: request timed out", "unavailable", true, "it has no quorum or is slow"],
  ["etcdserver: server stopped", "unavailable", true, "it stops"],
  ["etcdserver: unhealthy cluster", "unavailable", true, "it is not healthy"],
  ["raft proposal dropped", "unavailable", false, "it has no leader"],
  ["raft: stopped", "unavailable", true, "it stops"],
  ["etcdserver: corrupt cluster", "other", false, "its members differ: see its alarm CORRUPT"],
];

const openCodes: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.Canceled,
  Code.DeadlineExceeded,
  Code.Aborted,
  Code.Unknown,
]);
const deniedCodes: ReadonlySet<Code> = new Set([Code.PermissionDenied, Code.Unauthenticated]);

/** etcd refuses the token: a new one may help. 3.4 says so to a watch as "permission denied". */
export function isAboutToken(error: unknown): boolean {
  const text = serverText(error);
  return text !== undefined && /invalid auth token|user name is empty|revision of auth store is old/.test(text);
}

/** The text of an answer with an error status; undefined when the error is not etcd's answer. */
export function serverText(error: unknown): string | undefined {
  return error instanceof ConnectError && error.metadata.has("grpc-status") ? error.rawMessage : undefined;
}

/**
 * What a failed try means.
 * @param wasSent the request, or a part of it, may have left this process.
 */
export function asEtcdError(error: unknown, endpoint: string, wasSent: boolean): EtcdError {
  if (error instanceof EtcdError) return error;
  const text = serverText(error);
  if (text !== undefined && error instanceof ConnectError) return answeredError(text, error.code, endpoint);
  const { reason, sentence } = lostError(error, wasSent);
  return new EtcdError(sentence, { reason, mayBeDone: wasSent, endpoint });
}

/** An error that etcd gives as a text, such as the reason for which it ends a watch. */
export function answeredError(text: string, code: Code, endpoint: string): EtcdError {
  const found = known.find(([start]) => text.includes(start));
  if (found !== undefined) {
    const [, reason, mayBeDone, sentence] = found;
    return new EtcdError(sentence, { reason, mayBeDone, endpoint, isAnswer: true });
  }
  if (deniedCodes.has(code))
    return new EtcdError("it denies the request", { reason: "denied", mayBeDone: false, endpoint });
  const isOpen = openCodes.has(code);
  const sentence = `it answers with ${Code[code]}`;
  return new EtcdError(sentence, {
    reason: isOpen ? "unavailable" : "other",
    mayBeDone: isOpen || code === Code.Internal || code === Code.DataLoss,
    endpoint,
  });
}

/** Nobody answered: the connection could not be made, or was lost. */
function lostError(error: unknown, wasSent: boolean): { readonly reason: EtcdFailure; readonly sentence: string } {
  const failure = causes(error).find((cause) => cause instanceof ConnectFailure);
  if (failure !== undefined) return { reason: failure.isDenied ? "denied" : "unavailable", sentence: failure.message };
  return { reason: "unavailable", sentence: wasSent ? "the connection was lost" : "no connection in time" };
}

function causes(error: unknown): readonly Error[] {
  const chain: Error[] = [];
  for (let each = error; each instanceof Error && !chain.includes(each); each = each.cause) chain.push(each);
  return chain;
}
