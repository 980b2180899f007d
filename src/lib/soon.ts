/** Values that are nearly always known at once. A promise for each would cost more than the work with the value. */

export type Soon<Value> = Value | Promise<Value>;

/** Calls `next` with a value: at once, unless the value is a promise. */
export function after<Value, Result>(soon: Soon<Value>, next: (value: Value) => Soon<Result>): Soon<Result> {
  return soon instanceof Promise ? soon.then(next) : next(soon);
}
