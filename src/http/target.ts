/** Where the path of a request's target ends: at its first `?`. A position, so that fast paths make no object. */
export function pathEnd(target: string): number {
  const mark = target.indexOf("?");
  return mark < 0 ? target.length : mark;
}
