/** Why davit does not sign an existing config. Only `http/errors.ts` turns a reason into a status. */

/** The reasons, each with the words for the client. */
const signingRefusals = {
  /** The key has expired: a signature that is made after that is invalid. */
  expired: "signing key expired",
  /** The queue is full: clients request more signatures than the key can make. */
  busy: "too many signatures",
  /** GRUB could run text of the request in the body. With a signature, GRUB would run it. */
  withheld: "not signed, because GRUB could run what the request says",
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
