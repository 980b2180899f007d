/** Why there is no signature of a config that could itself be had. `http/errors.ts` alone turns a reason into a status. */

/** The reasons, each with the words that whoever asked reads. */
export const signingRefusals = {
  /** A signature that was made after the end of its key is none. */
  expired: "signing key expired",
  /** More signatures are asked for than are made. */
  busy: "too many signatures",
  /** The signature would also be good for a GRUB script that the request wrote. */
  withheld: "not signed, since it repeats what the request says",
  /** The thread that signs died, or says that it cannot. */
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
