/** The machines that davit has seen. */

import type { KnownMachine } from "../records/audit/reach.ts";
import type { RecordedMachine } from "../records/history/history-view.ts";
import type { BootService } from "./boot/boot-service.ts";
import type { LedgerService } from "./ledger/ledger-service.ts";
import { labelsOf } from "./ledger/machine-book.ts";

export interface SeenGround {
  readonly boot: Pick<BootService, "recordedMachines">;
  readonly ledger: Pick<LedgerService, "ledger">;
}

/**
 * Returns the machines of the history, which have the most labels, then those of the ledger. Many are in both.
 * @returns undefined while davit stops.
 */
export async function seenMachines({ boot, ledger }: SeenGround): Promise<Iterable<KnownMachine> | undefined> {
  const recorded = await boot.recordedMachines();
  return recorded && joined(recorded, ledger);
}

function* joined(recorded: Iterable<RecordedMachine>, { ledger }: SeenGround["ledger"]): Generator<KnownMachine> {
  for (const { labels, group } of recorded) yield { labels, group };
  for (const { identities, group } of ledger.known.entries.values()) yield { labels: labelsOf(identities), group };
}
