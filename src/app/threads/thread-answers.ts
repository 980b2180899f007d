/** Answers, in the first thread, what boot threads ask, and records the requests that they have answered. */

import { BootError } from "../../boot/core/boot-error.ts";
import type { NearMisses } from "../../boot/explaining/near-misses.ts";
import { permitAnswers } from "../../boot/follower-permits.ts";
import type { RenderThread } from "../../boot/making/render-thread.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import type { AssetDigests } from "../../http/assets/digests.ts";
import type { EndedRequest, RequestedMachine, RequestSink } from "../../http/boot/access-log.ts";
import type { BootSigner } from "../../http/boot/signatures.ts";
import { codeOf } from "../../lib/errors.ts";
import type { Answers } from "../../lib/questions.ts";
import { labelsFromQuery } from "../../model/labels/labels.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import type { PermitQuestions } from "../../model/permits/permit-wire.ts";
import { SigningError } from "../../trust/sign/signing-error.ts";
import type {
  SentMachine,
  SentRefusal,
  SignerName,
  ThreadAnswer,
  ThreadEvent,
  ThreadQuestion,
  ThreadQuestions,
} from "./wire.ts";

interface ThreadAnswersOptions {
  readonly index: BootIndex;
  readonly desk: PermitDesk | undefined;
  readonly signers: Readonly<Partial<Record<SignerName, BootSigner>>>;
  readonly renderThread: RenderThread;
  readonly digests: AssetDigests;
}

export function threadAnswers({
  index,
  desk,
  signers,
  renderThread,
  digests,
}: ThreadAnswersOptions): Answers<ThreadQuestions> {
  // The index of the thread may be behind this one. An install is granted only if both choose the same.
  const permits = desk === undefined ? noPermits : permitAnswers({ index, desk });
  return {
    ...permits,
    sign: async ({ by, body, isShared, client }) => {
      try {
        const signer = signers[by];
        if (signer === undefined) throw new SigningError("failed");
        return await (body === undefined ? signer.withhold() : signer.sign(body, { isShared, client: () => client }));
      } catch (cause) {
        throw cause instanceof SigningError ? cause : new SigningError("failed", { cause });
      }
    },
    render: async ({ sent, customer }) => await renderThread.runSent(sent, customer),
    hash: async ({ descriptor }) => {
      try {
        return { sha256: await digests.hash(descriptor) };
      } catch (error) {
        return { code: codeOf(error) };
      }
    },
  };
}

const noPermits: Answers<PermitQuestions> = { permit: async () => ({ kind: "late" }), report: async () => "late" };

/**
 * Answers a question.
 * @param post sends the answer. It throws for one that cannot be copied.
 * @param failed is called with an error that is a fault of davit.
 */
export async function answerTo<Name extends keyof ThreadQuestions>(
  answers: Answers<ThreadQuestions>,
  { id, name, asked }: ThreadQuestion<Name>,
  { post, failed }: { readonly post: (answer: ThreadAnswer) => void; readonly failed: (error: unknown) => void },
): Promise<void> {
  try {
    post({ kind: "answer", id, answer: await answers[name](asked) });
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === undefined) failed(error);
    post({ kind: "failed", id, refusal });
  }
}

function refusalOf(error: unknown): SentRefusal | undefined {
  if (error instanceof BootError) return { boot: error.reason };
  return error instanceof SigningError ? { signing: error.reason } : undefined;
}

export interface ThreadRequestsOptions {
  readonly follow: RequestSink;
  readonly nearMisses: Pick<NearMisses, "report">;
}

/** Returns a function that records what a boot thread reports of its requests. */
export function threadRequests({ follow, nearMisses }: ThreadRequestsOptions): (event: ThreadEvent) => void {
  /** The functions to call when requests end. The key is the number of the request in its thread. */
  const running = new Map<number, (ended: EndedRequest) => void>();
  return (event) => {
    switch (event.on) {
      case "begun":
        running.set(event.id, follow(event.request));
        return;
      case "ended": {
        const machine = event.machine && withLabels(event.machine);
        running.get(event.id)?.({ ...event.request, machine });
        running.delete(event.id);
        return;
      }
      case "noMatch":
        nearMisses.report(Object.assign(new Map(event.labels), event.flaws && { flaws: event.flaws }));
        return;
    }
  };
}

/** Reads the labels from the query, as the thread did: cloning a map costs more. */
function withLabels(machine: SentMachine): RequestedMachine {
  return { ...machine, labels: labelsFromQuery(machine.rawQuery) };
}
