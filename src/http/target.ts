/** Where a request target's path ends: at its first `?`. A position, so that no object is made for each request. */
export function pathEnd(target: string): number {
  const mark = target.indexOf("?");
  return mark < 0 ? target.length : mark;
}
