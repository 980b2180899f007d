/** What the client needs of the program that uses it. */

/** A clock. */
export interface EtcdClock {
  /** Milliseconds since an arbitrary start; it never steps. */
  monotonicMs(): number;
  /** Resolves after `durationMs`, or immediately when `signal` aborts. It never rejects. */
  sleep(durationMs: number, signal?: AbortSignal): Promise<void>;
}

/** Gets a warning where etcd has no users. */
export interface EtcdWarnings {
  warn(data: object, message: string): void;
}

/** A limit that has begun. */
export interface TimeLimit {
  /** Aborts when the time is over, unless `cancel` was called. */
  readonly signal: AbortSignal;
  /** Ends the timer; idempotent. */
  cancel(): void;
}

// Without a reason, abort() makes an error with a stack, which costs more than the rest of a short limit.
const withoutStack = "cancelled";

/** Begins a limit. */
export function timeLimit(clock: EtcdClock, durationMs: number): TimeLimit {
  const [passed, cancelled] = [new AbortController(), new AbortController()];
  void clock.sleep(durationMs, cancelled.signal).then(() => {
    if (!cancelled.signal.aborted) passed.abort();
  });
  return { signal: passed.signal, cancel: () => cancelled.abort(withoutStack) };
}
