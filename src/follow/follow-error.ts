/** Why a connection to the store ended, or never began. All of these mend themselves: the follower tries again. */

const reasons = {
  unreachable: "the store cannot be reached",
  credentials: "the credentials cannot be read",
  refused: "the store refuses to be followed",
  silent: "the store fell silent",
  ended: "the store ended the connection",
  protocol: "the store says what is not understood",
} as const;

export type FollowFailure = keyof typeof reasons;

export class FollowError extends Error {
  override readonly name = "FollowError";
  readonly reason: FollowFailure;
  /** What exactly, for the log: a status, a system error's code, a rule that was broken; never what the store sent. */
  readonly detail: string | undefined;

  constructor(reason: FollowFailure, detail?: string, options?: ErrorOptions) {
    super(reasons[reason], options);
    this.reason = reason;
    this.detail = detail;
  }
}
