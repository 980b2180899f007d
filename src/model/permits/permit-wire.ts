/**
 * What followers and the ledger's writer say to each other, over the store's listener:
 *
 *   GET  /davit/v1/ledger   the ledger's documents, by the protocol of `follow-line.ts`
 *   POST /davit/v1/permit   a PermitQuestion; the answer is a PermitReply
 *   POST /davit/v1/report   a Closing; the answer is {"outcome": ReportOutcome}
 *
 * The writer trusts no follower: for a question it selects the machine's Group and Profile by its own objects. The
 * follower trusts no writer either: it serves an install only if the writer chose what it chose itself.
 */

import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "../json.ts";
import { type PermitRefusal, permitRefusals } from "../refusals.ts";
import { sightingForms } from "../sighting.ts";
import { installStates, type LedgerEntry, type PermitPurpose, reportStates } from "./permit.ts";
import type { MachineReport, ReportOutcome } from "./permit-desk.ts";

export const ledgerPath = "/davit/v1/ledger";

/** What followers and boot threads ask the ledger's writer. */
export interface PermitQuestions {
  readonly permit: { readonly asked: PermitQuestion; readonly answer: PermitReply };
  readonly report: { readonly asked: Closing; readonly answer: ReportOutcome };
}

/** Asks the ledger's writer. @returns undefined if no answer comes within a second. */
export type AskWriter = <Name extends keyof PermitQuestions>(
  name: Name,
  asked: PermitQuestions[Name]["asked"],
) => Promise<PermitQuestions[Name]["answer"] | undefined>;

/** A follower asks for one of its machines. */
export interface PermitQuestion {
  /** The query as the machine sent it, without the `?`. */
  readonly rawQuery: string;
  readonly purpose: PermitPurpose;
  /** See `DeskAsk`. */
  readonly mayClaim: boolean;
  /** See `DeskAsk`. Absent for false, also from a follower of an earlier version, which serves no such config. */
  readonly isSealed?: boolean | undefined;
  readonly address?: string | undefined;
}

/** What the writer chose by its own objects, and what the ledger says to that. */
export type PermitReply =
  | ({ readonly kind: "granted"; readonly entry: LedgerEntry; readonly reportToken: string } & Chosen)
  | ({ readonly kind: "disk" } & Chosen)
  | ({ readonly kind: "refused"; readonly why: PermitRefusal } & Chosen)
  /** Also if the writer itself would refuse the machine. */
  | { readonly kind: "late" };

interface Chosen {
  /** `namespace/name`. */
  readonly group: string;
  /** `namespace/name`. */
  readonly profile: string;
}

/** What closes a permit: a machine's report. */
export interface Closing {
  readonly kind: "report";
  readonly token: string;
  readonly report: MachineReport;
  readonly address?: string | undefined;
}

/** How a question and its answer are sent over HTTP. The functions to decode return undefined for any other text. */
interface QuestionForm<Asked, Answer> {
  readonly path: string;
  readonly decode: (text: string) => Asked | undefined;
  /** Returns what is sent as JSON. */
  readonly encodeAnswer: (answer: Answer) => object;
  readonly decodeAnswer: (text: string) => Answer | undefined;
}

type QuestionForms = {
  readonly [Name in keyof PermitQuestions]: QuestionForm<
    PermitQuestions[Name]["asked"],
    PermitQuestions[Name]["answer"]
  >;
};

export const permitQuestions: QuestionForms = {
  permit: {
    path: "/davit/v1/permit",
    decode: decodeQuestion,
    encodeAnswer: (reply) => reply,
    decodeAnswer: decodeReply,
  },
  report: {
    path: "/davit/v1/report",
    decode: decodeClosing,
    encodeAnswer: (outcome) => ({ outcome }),
    decodeAnswer: decodeOutcome,
  },
};

const purposes: readonly PermitPurpose[] = ["script", "config"];

/** Reads a `PermitQuestion`; undefined for any other text. */
export function decodeQuestion(text: string): PermitQuestion | undefined {
  const value = parseJsonObject(text) ?? {};
  const { rawQuery, mayClaim } = value;
  const purpose = purposes.find((each) => each === value.purpose);
  const address = addressIn(value);
  if (typeof rawQuery !== "string" || purpose === undefined || typeof mayClaim !== "boolean") return undefined;
  return address && { rawQuery, purpose, mayClaim, isSealed: value.isSealed === true, ...address };
}

/** Reads a `PermitReply`; undefined for any other text. It checks what the follower compares. */
export function decodeReply(text: string): PermitReply | undefined {
  const value = parseJsonObject(text) ?? {};
  const { kind, group, profile } = value;
  if (kind === "late") return { kind };
  if (typeof group !== "string" || typeof profile !== "string") return undefined;
  const chosen = { group, profile };
  if (kind === "disk") return { kind, ...chosen };
  if (kind === "refused") {
    const { why } = value;
    return typeof why === "string" && isRefusal(why) ? { kind, why, ...chosen } : undefined;
  }
  const { entry, reportToken } = value;
  if (kind !== "granted" || !isEntry(entry) || typeof reportToken !== "string") return undefined;
  return { kind, entry: entry as unknown as LedgerEntry, reportToken, ...chosen };
}

/** Reads a `Closing`; undefined for any other text. */
export function decodeClosing(text: string): Closing | undefined {
  const value = parseJsonObject(text) ?? {};
  const { kind, token } = value;
  const from = addressIn(value);
  const report = isJsonObject(value.report) ? reportIn(value.report) : undefined;
  if (kind !== "report" || typeof token !== "string" || report === undefined) return undefined;
  return from && { kind, token, report, ...from };
}

const outcomes: readonly ReportOutcome[] = ["taken", "unknown", "final", "tooMany", "late"];

/** Reads the answer to a `Closing`; undefined for any other text. */
function decodeOutcome(text: string): ReportOutcome | undefined {
  const value = parseJsonObject(text)?.outcome;
  return outcomes.find((outcome) => outcome === value);
}

function reportIn({ state, progress, message, labels }: JsonObject): MachineReport | undefined {
  const known = reportStates.find((each) => each === state);
  if (known === undefined) return undefined;
  return {
    state: known,
    ...(typeof progress === "number" && { progress }),
    ...(typeof message === "string" && { message }),
    ...(isJsonObject(labels) && areTexts(labels) && { labels }),
  };
}

function areTexts(labels: JsonObject): labels is Readonly<Record<string, string>> {
  return Object.values(labels).every((value) => typeof value === "string");
}

/** The address of a client, which the ledger keeps; undefined if there is something else in its place. */
function addressIn({ address }: JsonObject): { readonly address?: string } | undefined {
  if (address === undefined) return {};
  return typeof address === "string" && sightingForms.address.test(address) ? { address } : undefined;
}

function isRefusal(text: string): text is PermitRefusal {
  return Object.hasOwn(permitRefusals, text);
}

function isEntry(value: JsonValue | undefined): value is JsonObject {
  if (!isJsonObject(value)) return false;
  const { id, identities, state, grant, claimedAtMs } = value;
  const hasGrant = isJsonObject(grant) && typeof grant.key === "string" && typeof grant.generation === "number";
  const isClaimed = typeof id === "string" && Array.isArray(identities) && typeof claimedAtMs === "number";
  return isClaimed && hasGrant && installStates.some((each) => each === state);
}
