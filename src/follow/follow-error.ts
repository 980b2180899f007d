/** Why a connection to the store ended or could not begin. In each of these cases, the follower retries. */

const reasons = {
  unreachable: "the store cannot be reached",
  credentials: "the credentials cannot be read",
  refused: "the store refuses to be followed",
  silent: "the store fell silent",
  ended: "the store ended the connection",
  protocol: "davit cannot read the store's answer",
} as const;

export type FollowFailure = keyof typeof reasons;

export class FollowError extends Error {
  override readonly name = "FollowError";
  readonly reason: FollowFailure;
  /** The detail for the log: a status, a system error's code, or a broken rule. It never quotes the store. */
  readonly detail: string | undefined;

  constructor(reason: FollowFailure, detail?: string, options?: ErrorOptions) {
    super(reasons[reason], options);
    this.reason = reason;
    this.detail = detail;
  }
}
