/** Values that are nearly always known immediately. A promise for each would cost more than the work with the value. */

export type Soon<Value> = Value | Promise<Value>;

/** Calls `next` with a value: immediately, or when the promise of the value resolves. */
export function after<Value, Result>(soon: Soon<Value>, next: (value: Value) => Soon<Result>): Soon<Result> {
  return soon instanceof Promise ? soon.then(next) : next(soon);
}

/** Returns what `call` returns. If the call throws, or its promise rejects, `failed` decides instead. */
export function rescued<Value>(call: () => Soon<Value>, failed: (error: unknown) => Soon<Value>): Soon<Value> {
  try {
    const soon = call();
    return soon instanceof Promise ? soon.catch(failed) : soon;
  } catch (error) {
    return failed(error);
  }
}
