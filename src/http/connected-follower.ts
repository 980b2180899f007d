/** A follower that is connected now, for people. */
export interface ConnectedFollower {
  readonly name: string | undefined;
  readonly address: string | undefined;
  /** Monotonic. */
  readonly sinceMs: number;
  /** How many steps it has not been sent yet; undefined while it gets everything. */
  readonly behind: number | undefined;
  /** False while it has not taken what was sent. */
  readonly isReading: boolean;
}
