/** Opens the audit log of `davit serve`, over the machines that davit has seen. */

import { mergedLabels, selectingPart } from "../boot/core/known-machines.ts";
import type { BootIndex } from "../boot/selection/boot-index.ts";
import type { Clock } from "../lib/clock.ts";
import { placeOf } from "../lib/errors.ts";
import { diskFiles } from "../lib/files/files.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics/metrics.ts";
import { identitiesOf, type MachineSpec } from "../model/objects/machine.ts";
import type { ServeConfig } from "../options/serve.ts";
import { AuditFile } from "../records/audit/audit-file.ts";
import { AuditLog } from "../records/audit/audit-log.ts";
import type { KnownMachine } from "../records/audit/reach.ts";
import type { RecordedMachine } from "../records/history/history-view.ts";
import type { BootService } from "./boot/boot-service.ts";
import type { LedgerService } from "./ledger/ledger-service.ts";
import { bootOf, labelsOf } from "./ledger/machine-book.ts";

/** What the audit log reads, once it is open. */
interface AuditGround {
  readonly boot: Pick<BootService, "index" | "recordedMachines">;
  readonly ledger: LedgerService;
}

interface AuditOptions {
  readonly config: Pick<ServeConfig, "auditLog">;
  /** Writes a line to standard output, for `--audit-log -`. */
  readonly writeLine: (line: string) => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly ground: () => AuditGround;
}

/** The audit log, and how to end it after everything that it records. */
interface OpenAudit {
  readonly audit: AuditLog;
  stop(): Promise<void>;
}

/**
 * @returns undefined without --audit-log.
 * @throws {StartError} as `AuditFile.open`.
 */
export async function openAudit(options: AuditOptions): Promise<OpenAudit | undefined> {
  const { config, writeLine, clock, metrics, ground } = options;
  const { auditLog: place } = config;
  if (place === undefined) return undefined;
  const log = options.log.child({ part: "audit" });
  const lostLine = (count: number): string => audit.lostLine(count);
  const file =
    place === "-" ? undefined : await AuditFile.open({ path: place, files: diskFiles, clock, log, metrics, lostLine });
  const audit = new AuditLog({
    clock,
    write: (line) => (file === undefined ? writeLine(line) : file.write(line)),
    groups: () => ground().boot.index.groups,
    machines: () => machinesForAudit(ground()),
    groupOf: (identities) => bootOf(ground().boot.index, identities)?.group,
    ledger: () => ground().ledger.ledger.known,
    failed: (error, count) => {
      log.error({ ...placeOf(error), count }, "lines of the audit log are lost: davit failed to make them");
      metrics.auditLost.inc(count);
    },
    dropped: (count) => {
      log.warn({ count }, "lines of the audit log are lost: changes came faster than davit could make them");
      metrics.auditLost.inc(count);
    },
  });
  const stop = async () => {
    await audit.stop();
    await file?.stop();
  };
  return { audit, stop };
}

async function machinesForAudit(ground: AuditGround): Promise<Iterable<KnownMachine> | undefined> {
  const seen = await seenMachines(ground);
  return seen && withObjects(seen, ground.boot.index);
}

/** Adds the labels and further identities of Machines, and Machines that were never seen. */
function* withObjects(seen: Iterable<KnownMachine>, index: Pick<BootIndex, "machines">): Generator<KnownMachine> {
  const own = new Map<string, MachineSpec>();
  for (const [, { spec }] of index.machines()) for (const each of spec.identities) own.set(each, spec);
  const labelled = (labels: KnownMachine["labels"]) => {
    const [spec] = identitiesOf(labels).flatMap((each) => own.get(each) ?? []);
    return spec === undefined ? labels : mergedLabels(labels, selectingPart(spec));
  };
  for (const { labels, group } of seen) yield { labels: labelled(labels), group };
  for (const [, { spec }] of index.machines()) yield { labels: labelled(labelsOf(spec.identities)), group: undefined };
}

interface SeenGround {
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
