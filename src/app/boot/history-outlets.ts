/** Where the history of boots goes: to a journal on disk, or to the davit that this one follows. */

import type { Clock } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { refusalNumber, refusalOf } from "../../model/refusals.ts";
import type { HistoryOutlets } from "../../records/history/history.ts";
import { Journal } from "../../records/history/journal.ts";

export const refusalNames = { nameOf: refusalOf, numberOf: refusalNumber };

interface JournalPlace {
  /** Undefined for no journal. */
  readonly historyDirectory?: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Returns the places of a history; undefined if it is only in memory. */
export function outletsOf(options: JournalPlace & Pick<HistoryOutlets, "handOn">): HistoryOutlets | undefined {
  const { handOn } = options;
  const journal = journalOf(options);
  return journal === undefined && handOn === undefined ? undefined : { names: refusalNames, journal, handOn };
}

function journalOf({ historyDirectory: directory, clock, log, metrics }: JournalPlace): Journal | undefined {
  if (directory === undefined) return undefined;
  return new Journal({
    files: diskFiles,
    directory,
    names: refusalNames,
    clock,
    log: log.child({ part: "history" }),
    metrics,
  });
}
