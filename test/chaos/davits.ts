/** The davits of a run in a cluster, and what may happen to them. */

/** What a disturbance may use. */
export interface Disturbing {
  /** A number below the one given. */
  readonly pick: (below: number) => number;
  /** Begins something at once, and ends it after a while, beside the changes. */
  during(begin: () => void | Promise<void>, end: () => void | Promise<void>): Promise<void>;
}

export interface Davits {
  /** Where they answer machines, by their names; undefined while one is down. */
  readonly urls: Readonly<Record<string, () => string | undefined>>;
  /** By what happens. Resolves when the next change may be made. */
  readonly disturbances: Readonly<Record<string, (how: Disturbing) => Promise<void>>>;
  stop(): Promise<void>;
}
