/**
 * The messages between the first thread and a boot thread. All of them can be cloned. A boot thread follows the first
 * one as a follower follows a store: it gets documents, changes and proofs, and asks for permits.
 */

import type { CheckedDemand } from "../../assets/profile-asset-index.ts";
import type { Customer, JobOutcome, SentJob } from "../../boot/making/render-thread.ts";
import type { BegunRequest, EndedRequest, RequestedMachine } from "../../http/boot/access-log.ts";
import type { LogLevel } from "../../lib/log.ts";
import type { CountedChange } from "../../lib/metrics/boot-metrics.ts";
import type { DocumentChange } from "../../model/feed.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { PermitQuestions } from "../../model/permits/permit-wire.ts";
import type { BootRefusal } from "../../model/refusals.ts";
import type { DetachedSignature } from "../../trust/sign/detached.ts";
import type { SigningRefusal } from "../../trust/sign/signing-error.ts";

export const signerNames = ["signer", "grubSigner"] as const;
export type SignerName = (typeof signerNames)[number];

/** The feeds of documents that a boot thread follows. */
export const feedNames = ["store", "ledger"] as const;
export type FeedName = (typeof feedNames)[number];

/** What the first thread knows of the documents that it has sent so far. */
export interface ThreadState {
  /** When each feed was last proven. All threads of a process share one monotonic clock. */
  readonly proven: Readonly<Record<FeedName, number | undefined>>;
  /** When the settling time began; see `Settling.sinceMs`. */
  readonly settlingSinceMs: number | undefined;
  /** See `BootIndex.open`. */
  readonly isOpen: boolean;
  readonly sentAtMs: number;
}

/** From the first thread. A thread takes them in the order of sending. */
export type ToThread =
  /** A part of all documents. The last part replaces what the thread knew. */
  | {
      readonly kind: "documents";
      readonly feed: FeedName;
      readonly documents: readonly (readonly [path: string, text: string])[];
      readonly isLast: boolean;
    }
  | { readonly kind: "changes"; readonly feed: FeedName; readonly changes: readonly DocumentChange[] }
  | ({ readonly kind: "state" } & ThreadState)
  | { readonly kind: "checked"; readonly demand: CheckedDemand }
  | ThreadAnswer
  | { readonly kind: "stop" };

/** From a boot thread. */
export type FromThread =
  | { readonly kind: "listening" }
  | { readonly kind: "events"; readonly events: readonly ThreadEvent[] }
  | ThreadQuestion
  | { readonly kind: "counts"; readonly changes: readonly CountedChange[] }
  | {
      readonly kind: "log";
      readonly level: Exclude<LogLevel, "silent">;
      readonly part: string;
      readonly data: object;
      readonly message: string;
    };

/** A machine without its labels: the first thread reads them again. */
export type SentMachine = Omit<RequestedMachine, "labels">;

export type ThreadEvent =
  | { readonly on: "begun"; readonly id: number; readonly request: BegunRequest }
  | {
      readonly on: "ended";
      readonly id: number;
      readonly request: Omit<EndedRequest, "machine">;
      readonly machine: SentMachine | undefined;
    }
  /** Cloning a map drops the member `flaws`, so `flaws` is sent beside the labels. */
  | { readonly on: "noMatch"; readonly labels: ReadonlyMap<string, string>; readonly flaws: Labels["flaws"] };

/** What only the first thread can answer. */
export interface ThreadQuestions extends PermitQuestions {
  readonly sign: {
    readonly asked: {
      readonly by: SignerName;
      /** Undefined if the boot thread refused to sign. The first thread only counts the refusal. */
      readonly body: string | undefined;
      readonly isShared: boolean;
      readonly client: string | undefined;
    };
    readonly answer: DetachedSignature;
  };
  readonly render: {
    readonly asked: { readonly sent: SentJob; readonly customer: Customer };
    readonly answer: JobOutcome;
  };
  /** A descriptor is valid in all threads of the process. */
  readonly hash: {
    readonly asked: { readonly descriptor: number };
    readonly answer: { readonly sha256: string } | { readonly code: string | undefined };
  };
}

/** A question with one of these names. */
export type ThreadQuestion<Names extends keyof ThreadQuestions = keyof ThreadQuestions> = {
  [Name in Names]: {
    readonly kind: "question";
    readonly id: number;
    readonly name: Name;
    readonly asked: ThreadQuestions[Name]["asked"];
  };
}[Names];

export type ThreadAnswer =
  | { readonly kind: "answer"; readonly id: number; readonly answer: unknown }
  /** `refusal` is undefined after a fault of davit. */
  | { readonly kind: "failed"; readonly id: number; readonly refusal: SentRefusal | undefined };

/** An error that the boot thread makes anew. */
export type SentRefusal = { readonly boot: BootRefusal } | { readonly signing: SigningRefusal };
