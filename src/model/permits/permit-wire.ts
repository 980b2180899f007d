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

import {
  flag,
  lenient,
  list,
  number,
  object,
  oneOf,
  optional,
  parsed,
  record,
  text,
  variant,
  where,
} from "../../lib/shape.ts";
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
  | ({ readonly kind: "granted"; readonly entry: LedgerEntry; readonly reportToken: string } & WriterChoice)
  | ({ readonly kind: "disk" } & WriterChoice)
  | ({ readonly kind: "refused"; readonly why: PermitRefusal } & WriterChoice)
  /** Also if the writer itself would refuse the machine. */
  | { readonly kind: "late" };

interface WriterChoice {
  /** `namespace/name`. */
  readonly group: string;
  /** `namespace/name`. */
  readonly profile: string;
}

/** What closes a permit: a machine's report. */
interface Closing {
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

/** Which group and profile the writer chose. */
const chosen = { group: text, profile: text };
const address = where(isAddress, "is no address of a client");

const question = object({
  rawQuery: text,
  purpose: oneOf<PermitPurpose>(["script", "config"]),
  mayClaim: flag,
  isSealed: (value) => value === true,
  address: optional(address),
});

const closing = object({
  kind: oneOf<"report">(["report"]),
  token: text,
  report: object({
    state: oneOf(reportStates),
    progress: lenient(number),
    message: lenient(text),
    labels: lenient(record(text)),
  }),
  address: optional(address),
});

/** What the follower compares of an entry. */
const compared = object({
  id: text,
  identities: list(text),
  state: oneOf(installStates),
  grant: object({ key: text, generation: number }),
  claimedAtMs: number,
});

const reply = variant("kind", {
  granted: object({ entry: where(isEntry, "is no entry"), reportToken: text, ...chosen }),
  disk: object(chosen),
  refused: object({ why: where(isRefusal, "is no refusal"), ...chosen }),
  late: object({}),
});

const outcomes = object({ outcome: oneOf<ReportOutcome>(["taken", "unknown", "final", "tooMany", "late"]) });

/** The address of a client, which the ledger keeps. */
function isAddress(value: unknown): value is string {
  return typeof value === "string" && sightingForms.address.test(value);
}

function isRefusal(value: unknown): value is PermitRefusal {
  return typeof value === "string" && Object.hasOwn(permitRefusals, value);
}

function isEntry(value: unknown): value is LedgerEntry {
  return compared(value) !== undefined;
}

export const permitQuestions: QuestionForms = {
  permit: {
    path: "/davit/v1/permit",
    decode: (sent) => parsed(question, sent),
    encodeAnswer: (answer) => answer,
    decodeAnswer: (sent) => parsed(reply, sent),
  },
  report: {
    path: "/davit/v1/report",
    decode: (sent) => parsed(closing, sent),
    encodeAnswer: (outcome) => ({ outcome }),
    decodeAnswer: (sent) => parsed(outcomes, sent)?.outcome,
  },
};
