/** Which grants are over by their `until`, and the commands that record it for ever: pure functions. */

import type { LedgerView, NamedGrant } from "../../model/permits/permit.ts";
import type { SingleCommand } from "../../store/command/command.ts";
import type { StorePath } from "../../store/core/node.ts";
import { encodeEnded, endedPath } from "./ledger-documents.ts";

/**
 * Returns a command for each grant that has ended and is not recorded yet. Once recorded, no clock opens it again.
 * @param most the largest number of commands.
 */
export function endingCommands(
  grants: readonly NamedGrant[],
  ledger: LedgerView,
  indexOf: (path: StorePath) => number,
  most: number,
): readonly SingleCommand[] {
  const { id, nowMs } = ledger;
  const generations = new Map<string, number>();
  for (const { key, grant } of grants) {
    const isOver = grant.ledger === id && grant.untilMs !== undefined && nowMs >= grant.untilMs;
    if (!isOver || grant.generation <= (generations.get(key) ?? ledger.endedGeneration(key))) continue;
    generations.set(key, grant.generation);
    if (generations.size === most) break;
  }
  return [...generations].map(([key, generation]) => {
    const path = endedPath(key);
    const index = indexOf(path);
    const value = encodeEnded({ generation });
    if (index === 0) return { kind: "create", path, value };
    return { kind: "compareAndSwap", path, value, expected: { index: BigInt(index) } };
  });
}
