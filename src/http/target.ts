/**
 * Returns the index at which a target's path ends: its first `?`, or its end. An object for each request would cost
 * more.
 */
export function pathEnd(target: string): number {
  const mark = target.indexOf("?");
  return mark < 0 ? target.length : mark;
}
