/** Plans a step while other work continues. */

import { nextTurn } from "../lib/slices.ts";
import type { ObjectName, Source } from "../model/objects/source.ts";
import type { Planner } from "./planner.ts";
import type { Step } from "./step.ts";

/**
 * Plans a step in slices, while the source's view is frozen: a step that mixed two states of the source could give a
 * machine an answer that neither has. If the view cannot wait, davit plans the step in one turn.
 * @returns undefined if `signal` was aborted meanwhile. Then do not plan another step with this planner.
 */
export async function planStep(
  planner: Pick<Planner, "plan" | "planInSlices">,
  source: Pick<Source, "freeze">,
  { names, signal }: { readonly names: readonly ObjectName[]; readonly signal: AbortSignal },
): Promise<Step | undefined> {
  const thaw = source.freeze?.();
  if (thaw === undefined) return planner.plan(names);
  try {
    const work = planner.planInSlices(names);
    for (;;) {
      const slice = work.next();
      if (slice.done === true) return slice.value;
      await nextTurn();
      if (signal.aborted) return undefined;
    }
  } finally {
    thaw();
  }
}
