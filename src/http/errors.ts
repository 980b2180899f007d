/**
 * Converts thrown errors into answers. Only this file maps errors of the boot service, of signing and of HTTP to
 * statuses. `store/core/refusal.ts` has the statuses of the store's errors. A body is short, and names no templates,
 * values or paths. The body of a 500 has no details; the log has them.
 */

import { BootError } from "../boot/core/boot-error.ts";
import { LabelError } from "../model/labels/labels.ts";
import { bootRefusals } from "../model/refusals.ts";
import { RenderError, type RenderReason, renderReasons } from "../render/core/render-error.ts";
import { answeringError, waitingConfig } from "../render/grub/waiting.ts";
import { SigningError, type SigningRefusal } from "../trust/sign/signing-error.ts";

/** Why the HTTP layer refuses a request, with the status and the text of the answer. */
export const requestRefusals = {
  badRequest: { status: 400, text: "bad request" },
  /** The connection ended before the body did. */
  bodyCut: { status: 400, text: "bad request" },
  badBody: { status: 400, text: "bad request" },
  badDigest: { status: 400, text: "sha256 must be one SHA-256 of 64 hexadecimal digits" },
  noToken: { status: 401, text: "a token of --ops-token-file is needed" },
  noTokenFile: {
    status: 403,
    text: "this davit listens off loopback: start it with --ops-token-file FILE, and send one of its tokens",
  },
  notLocal: {
    status: 403,
    text: "ask by a loopback address without a proxy, or start davit with --ops-token-file FILE, and send a token",
  },
  noAdminToken: { status: 401, text: "a token of --ops-admin-token-file is needed" },
  noAdminTokenFile: {
    status: 403,
    text: "this davit listens off loopback: start it with --ops-admin-token-file FILE, and send one of its tokens",
  },
  /** As `notLocal`, for a change. */
  notLocalChange: {
    status: 403,
    text: "ask by a loopback address without a proxy, or start davit with --ops-admin-token-file FILE and send a token",
  },
  /** A request without the header of `guard/ops-guard.ts`, or from a web page: no operator has asked for the change. */
  noAction: { status: 403, text: "send the header X-Davit-Action with the last word of the path" },
  fromWebPage: { status: 403, text: "no web page may change machines: use davit machine" },
  /** The visitor of the console has no right to change this. */
  mayNotChangeLedger: {
    status: 403,
    text: "you may not change the ledger: sign in with a token of --ops-admin-token-file",
  },
  mayNotChangeObjects: {
    status: 403,
    text: "you may not change Machines: sign in with the token of an account that may patch them",
  },
  noClientCertificate: { status: 403, text: "configs need a client certificate of --boot-tls-client-ca-file" },
  notFound: { status: 404, text: "not found" },
  noSuchMachine: {
    status: 404,
    text: "no Machine, no entry of the ledger and no seen machine has this name: davit machine list shows all",
  },
  severalNamed: { status: 409, text: "several Machines have this name: give NAMESPACE/NAME" },
  severalSeen: { status: 409, text: "several machines have sent this serial number: give a MAC address or uuid" },
  noSuchGroup: { status: 404, text: "davit knows no Group of this name: create it first, or correct the name" },
  notInLedger: { status: 404, text: "the ledger has no entry of this machine: davit machine list shows all" },
  notAdopted: { status: 404, text: "the Group is not adopted: davit machine ledger shows adopted Groups" },
  adoptQuestion: {
    status: 400,
    text: 'send {"group": "NAMESPACE/NAME", "hours": 24}, the same with until as RFC 3339, or {"machine": "NAME"}',
  },
  adoptedTooLong: { status: 400, text: "a Group can be adopted for at most 90 days" },
  forgetQuestion: { status: 400, text: 'send {"machine": "NAME"} or {"group": "NAMESPACE/NAME"}' },
  severalMachines: {
    status: 409,
    text: "the ledger knows these identities as several machines: list all in one Machine",
  },
  crowdedGrants: { status: 409, text: "too many grants are open: remove spec.install from objects that need none" },
  notTheWriter: { status: 409, text: "this davit follows another one, which keeps the ledger: ask that one" },
  ledgerFull: { status: 409, text: "the ledger has no room for another machine: forget machines that are gone" },
  ledgerLate: { status: 503, text: "the ledger cannot log the change now" },
  diffQuestion: { status: 400, text: 'send {"secrets": {"NAMESPACE/PROFILE/PART": "SHA-256"}}: use davit diff' },
  tooManyDiffs: { status: 429, text: "too many comparisons at once: try again in a few seconds" },
  historyQuestion: {
    status: 400,
    text: "give a valid mac, uuid, hostname, serial or address, such as ?mac=52-54-00-a1-9c-ae",
  },
  notRecorded: {
    status: 404,
    text: "the history has no request of this machine or address: /history lists the machines seen last",
  },
  methodNotAllowed: { status: 405, text: "method not allowed" },
  timeout: { status: 408, text: "request timeout" },
  bodyTooLarge: { status: 413, text: "body too large" },
  targetTooLong: { status: 414, text: "target too long" },
  unsupportedType: { status: 415, text: "unsupported content type" },
  rangeNotSatisfiable: { status: 416, text: "range not satisfiable" },
  headersTooLarge: { status: 431, text: "headers too large" },
  overloaded: { status: 503, text: "too many downloads" },
  /** The listener, or the client, has too many connections. */
  crowded: { status: 503, text: "too many connections" },
  /** Too many answers wait until their clients read them. */
  unsent: { status: 503, text: "too many unread answers" },
  /** The file of an asset changed at each attempt to read it. */
  changing: { status: 503, text: "asset is being written" },
  /** The file of an asset has another digest than the request names, or than a Profile lists for its name. */
  otherFile: {
    status: 503,
    text: "asset is not the file that sha256 names: put that file there, or correct sha256",
  },
  /** davit has not fetched the asset of a Profile yet. */
  unfetched: {
    status: 503,
    text: "asset is not fetched yet: AssetsReady of its Profile, or /readyz?verbose, says why",
  },
  unchecked: { status: 503, text: "davit cannot read the asset to check its sha256: the log has the reason" },
} as const;

export type RequestRefusal = keyof typeof requestRefusals;

/** The HTTP layer itself refuses a request. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly reason: RequestRefusal;
  /** Headers that belong to this refusal, such as `Allow`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(reason: RequestRefusal, headers: Readonly<Record<string, string>> = {}) {
    super(requestRefusals[reason].text);
    this.reason = reason;
    this.headers = headers;
  }
}

/** The whole answer to an error. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What to log at level error; undefined if nobody needs to act. */
  readonly report?: object;
}

/** Converts an error that a handler threw into an answer. `path` is the path of the request. */
export type AnswerError = (thrown: unknown, path: string) => ErrorAnswer;

// A machine that requires signatures cannot boot without them, so most reasons get 503: the machine retries. `withheld`
// is final.
const signingStatuses: Readonly<Record<SigningRefusal, number>> = {
  expired: 503,
  busy: 503,
  withheld: 404,
  failed: 503,
};

// iPXE reads it from `Retry-After`, GRUB from the script of `waitingConfig`.
const usualRetrySeconds = bootRefusals.notReady.retrySeconds;

/** The status of a failed readiness probe. */
export const notReadyStatus = bootRefusals.notReady.status;

/** Answers errors of the boot and operations listeners in plain text. */
export const answerError: AnswerError = (thrown, path) => {
  if (thrown instanceof BootError) return bootAnswer(thrown, path);
  if (thrown instanceof SigningError) {
    const { reason, message, cause } = thrown;
    return plainAnswer(
      signingStatuses[reason],
      message,
      path,
      reason === "failed" ? { report: { err: cause ?? thrown } } : {},
    );
  }
  if (thrown instanceof LabelError) return plainAnswer(requestRefusals.badRequest.status, "too many labels", path);
  if (thrown instanceof RequestError) {
    const { status, text } = requestRefusals[thrown.reason];
    const answer = plainAnswer(status, text, path);
    return { ...answer, headers: { ...answer.headers, ...thrown.headers } };
  }
  return plainAnswer(500, "internal error", path, { report: { err: thrown } });
};

function bootAnswer(error: BootError, path: string): ErrorAnswer {
  const { status, retrySeconds } = bootRefusals[error.reason];
  return plainAnswer(status, wordsOf(error), path, { report: bootReport(error), retrySeconds });
}

/** Adds what to do where the boot section is right for iPXE alone, so that the answer of `/grub` is enough. */
function wordsOf({ message, cause }: BootError): string {
  if (!(cause instanceof RenderError && forIpxe.has(cause.reason))) return message;
  return `${message}: ${renderReasons[cause.reason].replace("Render GRUB config: ", "")}`;
}

const forIpxe: ReadonlySet<RenderReason> = new Set(["grubToken", "grubLocation", "grubInitrdWords"]);

interface AnswerDetails {
  /** See `ErrorAnswer`. */
  readonly report?: object | undefined;
  /** For a 503. */
  readonly retrySeconds?: number;
}

function plainAnswer(
  status: number,
  text: string,
  path: string,
  { report, retrySeconds = usualRetrySeconds }: AnswerDetails = {},
): ErrorAnswer {
  const body = bodyOf(status, `${status} ${text}`, path);
  const headers = {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    ...(status === 503 && { "retry-after": String(retrySeconds) }),
  };
  return { status, headers, body, ...(report && { report }) };
}

/**
 * Returns the body. GRUB runs it as a script, whatever the status. So a 503 of `/grub` is a script that waits and
 * retries. Other errors of `/grub` end that waiting. Its signatures have the same text.
 */
function bodyOf(status: number, words: string, path: string): string {
  if (!/^\/grub(\.(sig|asc))?$/.test(path)) return `${words}\n`;
  if (status !== 503) return answeringError(words);
  return path === "/grub" ? waitingConfig(words, usualRetrySeconds) : `# ${words}\n`;
}

// The problem to log for a BootError `broken` without a problem: the text of a Secret is missing.
const textIsGone = "the text of a Secret is not in the store";

/** What to log for a refusal, if it needs a person. The access log has the other refusals. */
function bootReport({ reason, group, profile, problem, cause }: BootError): object | undefined {
  if (reason === "undecryptable") return { group, profile, problem };
  if (reason !== "broken") return undefined;
  if (cause instanceof RenderError) {
    return { group, profile, reason: cause.reason, problem: problem ?? cause.message };
  }
  return { group, profile, problem: problem ?? textIsGone };
}
