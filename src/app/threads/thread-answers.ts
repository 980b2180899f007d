/** Answers, in the first thread, the questions of the boot threads. */

import { BootError } from "../../boot/core/boot-error.ts";
import { permitAnswers } from "../../boot/follower-permits.ts";
import type { JobOutcome, RenderThread } from "../../boot/making/render-thread.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import type { AssetDigests } from "../../http/assets/digests.ts";
import type { BootSigner } from "../../http/boot/signatures.ts";
import { codeOf } from "../../lib/errors.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import { SigningError } from "../../trust/sign/signing-error.ts";
import type { AnyAnswer, Questions, RenderEnd, SignerName, ThreadQuestion } from "./wire.ts";

export interface ThreadAnswersOptions {
  readonly index: BootIndex;
  readonly desk: PermitDesk | undefined;
  readonly signers: Readonly<Partial<Record<SignerName, BootSigner>>>;
  readonly renderThread: RenderThread;
  readonly digests: AssetDigests;
}

export function threadAnswers(options: ThreadAnswersOptions): (question: ThreadQuestion) => Promise<AnyAnswer> {
  const { index, desk, renderThread, digests } = options;
  // The index of the thread may be behind this one. An install is granted only if both choose the same.
  const permits = desk && permitAnswers({ index, desk });
  return async ({ on, asked }) => {
    switch (on) {
      case "permit":
        return (await permits?.permit(asked)) ?? { kind: "late" };
      case "report":
        return (await permits?.report(asked)) ?? "late";
      case "sign":
        return await signed(options.signers[asked.by], asked);
      case "render":
        return await rendered(renderThread, asked);
      case "hash":
        return await digests.hash(asked.descriptor).then(
          (sha256) => ({ sha256 }),
          (error: unknown) => ({ code: codeOf(error) }),
        );
    }
  };
}

async function signed(
  signer: BootSigner | undefined,
  { body, isShared, client }: Questions["sign"]["asked"],
): Promise<Questions["sign"]["answer"]> {
  try {
    if (signer === undefined) return { refused: "failed" };
    return await (body === undefined ? signer.withhold() : signer.sign(body, { isShared, client: () => client }));
  } catch (error) {
    return { refused: error instanceof SigningError ? error.reason : "failed" };
  }
}

async function rendered(thread: RenderThread, { sent, customer }: Questions["render"]["asked"]): Promise<RenderEnd> {
  try {
    return renderEnd(await thread.runSent(sent, customer));
  } catch (error) {
    if (error instanceof BootError) return { refusal: error.reason };
    throw error;
  }
}

function renderEnd(outcome: JobOutcome): RenderEnd {
  const { isOfRequest } = outcome;
  if ("made" in outcome) return { isOfRequest, made: outcome.made };
  const { reason, position, variable, field } = outcome.error;
  return { isOfRequest, isFinal: outcome.isFinal, refused: { reason, position, variable, field } };
}
