/** The messages between the first thread and a boot thread. All of them can be cloned. */

import type { CheckedClaim } from "../../assets/wanted-assets.ts";
import type { Made } from "../../boot/making/boot-maker.ts";
import type { Customer, SentJob, ThreadAnswer } from "../../boot/making/render-thread.ts";
import type { BegunRequest, EndedRequest, RequestedMachine } from "../../http/boot/access-log.ts";
import type { LogLevel } from "../../lib/log.ts";
import type { CountedChange } from "../../lib/metrics/boot-metrics.ts";
import type { DocumentChange } from "../../model/feed.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { PermitQuestions } from "../../model/permits/permit-wire.ts";
import type { BootRefusal } from "../../model/refusals.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import type { DetachedSignature } from "../../trust/sign/detached.ts";
import type { SigningRefusal } from "../../trust/sign/signing-error.ts";
import type { BoundAddresses, ListenerConfig } from "../listener/boot-listener.ts";

/** What a boot thread gets at its start. It contains no secret. */
export interface ThreadStart {
  readonly config: ThreadConfig;
  /** The armored public key of each signer that davit has. */
  readonly publicKeys: Readonly<Partial<Record<SignerName, string>>>;
  /** False if the first thread has no desk. Then installs that need a permit are refused. */
  readonly hasDesk: boolean;
  /** True if davit fetches the assets of Profiles. Then it serves only these under their names. */
  readonly fetchesAssets: boolean;
}

/** The options of a boot thread, with the addresses and the certificate of the first thread. */
export type ThreadConfig = ListenerConfig &
  BoundAddresses &
  Pick<
    ServiceConfig,
    | "bootTlsCertFile"
    | "bootTlsKeyFile"
    | "maxStalenessMs"
    | "secretsKeyFile"
    | "assetsDir"
    | "assetsDotfiles"
    | "assetsCacheBytes"
    | "clientLimitExempt"
    | "trustedProxies"
  >;

export const signerNames = ["signer", "grubSigner"] as const;
export type SignerName = (typeof signerNames)[number];

/** The feeds of documents that a boot thread follows. */
export const feedNames = ["store", "ledger"] as const;
export type FeedName = (typeof feedNames)[number];

/** When the documents of each feed were last proven, on the monotonic clock; undefined before the first proof. */
export type Proven = Readonly<Record<FeedName, number | undefined>>;

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
  /** When the documents sent so far were last proven. All threads of a process share one monotonic clock. */
  | { readonly kind: "proof"; readonly proven: Proven; readonly sentAtMs: number }
  | { readonly kind: "checked"; readonly claim: CheckedClaim }
  /** When the settling time of the documents sent so far began; see `Settling.sinceMs`. */
  | { readonly kind: "settling"; readonly sinceMs: number | undefined }
  | { readonly kind: "open" | "stop" }
  | { readonly kind: "answer"; readonly id: number; readonly answer: AnyAnswer }
  /** A question failed because of a fault of davit. */
  | { readonly kind: "failed"; readonly id: number };

/** From a boot thread. */
export type FromThread =
  | { readonly kind: "listening" }
  | { readonly kind: "events"; readonly events: readonly ThreadEvent[] }
  | { readonly kind: "question"; readonly id: number; readonly question: ThreadQuestion }
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

/** The questions that only the first thread can answer, by name. */
export interface Questions extends PermitQuestions {
  sign: {
    readonly asked: {
      readonly by: SignerName;
      /** Undefined for a signature that is withheld. The first thread only counts it. */
      readonly body: string | undefined;
      readonly isShared: boolean;
      readonly client: string | undefined;
    };
    readonly answer: DetachedSignature | { readonly refused: SigningRefusal };
  };
  render: {
    readonly asked: { readonly sent: SentJob; readonly customer: Customer };
    readonly answer: RenderEnd;
  };
  hash: {
    readonly asked: { readonly descriptor: number };
    readonly answer: { readonly sha256: string } | { readonly code: string | undefined };
  };
}

/** A `JobOutcome`, or why there is none. */
export type RenderEnd =
  | { readonly isOfRequest: boolean; readonly made: Made }
  | {
      readonly isOfRequest: boolean;
      readonly isFinal: boolean;
      readonly refused: Extract<ThreadAnswer, { refused: unknown }>["refused"];
    }
  | { readonly refusal: BootRefusal };

export type QuestionName = keyof Questions;
export type ThreadQuestion = {
  [Name in QuestionName]: { readonly on: Name; readonly asked: Questions[Name]["asked"] };
}[QuestionName];
export type AnyAnswer = Questions[QuestionName]["answer"];
