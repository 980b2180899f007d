/** Why an existing config has no signature. Only `http/errors.ts` turns a reason into a status. */

/** The reasons, each with the words for the client. */
export const signingRefusals = {
  /** A signature made after the end of its key is invalid. */
  expired: "signing key expired",
  /** More signatures are requested than can be made. */
  busy: "too many signatures",
  /** The signature would also be good for a GRUB script that the request wrote. */
  withheld: "not signed, since it repeats what the request says",
  /** The thread that signs died, or reported a failure. */
  failed: "signing failed",
} as const;

export type SigningRefusal = keyof typeof signingRefusals;

/** A signature cannot be made now. */
export class SigningError extends Error {
  override readonly name = "SigningError";
  readonly reason: SigningRefusal;

  constructor(reason: SigningRefusal, { cause }: { readonly cause?: unknown } = {}) {
    super(signingRefusals[reason], { cause });
    this.reason = reason;
  }
}
