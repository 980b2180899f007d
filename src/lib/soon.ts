/** Values that are nearly always there at once: a promise for each would cost more than using them. */

export type Soon<Value> = Value | Promise<Value>;

/** Continues with a value: at once when it is there. */
export function after<Value, Result>(soon: Soon<Value>, next: (value: Value) => Soon<Result>): Soon<Result> {
  return soon instanceof Promise ? soon.then(next) : next(soon);
}
