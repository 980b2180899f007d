/** What the operations listener shows of machines, over the boot index and the ledger. */

import { BootError } from "../../boot/core/boot-error.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import type { RequestedMachine } from "../../http/boot/access-log.ts";
import type { MachineBook, MachineBoot, PendingMachine } from "../../http/ops/machine-book.ts";
import type { KnownLedger } from "../../installs/ledger/known-ledger.ts";
import { entryIdOf } from "../../installs/ledger/report-token.ts";
import { type Labels, labelsFromQuery } from "../../model/labels/labels.ts";
import type { NamedGrant } from "../../model/permits/permit.ts";

interface MachineBookOptions {
  readonly index: Pick<BootIndex, "candidate" | "groups" | "machineOf" | "machines" | "grantingAt">;
  readonly known: KnownLedger;
  /** Why nothing installs now, one line each. */
  readonly problems: () => readonly string[];
  /** The machines that wait for a Machine; absent in a follower, which enrolls none. */
  readonly pending?: () => Iterable<PendingMachine>;
}

export function machineBook({ index, known, problems, pending }: MachineBookOptions): MachineBook {
  let revision = 0;
  known.onChange(() => {
    revision += 1;
  });
  return {
    get revision() {
      return revision;
    },
    ledger: known,
    get problems() {
      return problems();
    },
    *machines() {
      for (const [name, document] of index.machines()) yield { name, document };
    },
    grantOf: (key) => {
      const found = index.grantingAt(key);
      return found === undefined ? { kind: "missing" } : { kind: "object", grant: found.install };
    },
    bootOf: (identities) => bootOf(index, identities),
    ...(pending && { pending }),
  };
}

/** Returns what a machine with these identities gets now; undefined if no Group takes it. */
export function bootOf(
  index: Pick<BootIndex, "candidate" | "groups" | "machineOf">,
  identities: readonly string[],
): MachineBoot | undefined {
  try {
    const { group, ask } = index.candidate(labelsOf(identities), "script");
    return bootFor(index, group.id, { isHeld: false, asked: ask?.grants });
  } catch (error) {
    if (!(error instanceof BootError)) throw error;
    return error.group === undefined ? undefined : bootFor(index, error.group, { isHeld: error.reason === "held" });
  }
}

function bootFor(
  index: Pick<BootIndex, "groups" | "machineOf">,
  group: string,
  { isHeld, asked }: { readonly isHeld: boolean; readonly asked?: readonly NamedGrant[] | undefined },
): MachineBoot | undefined {
  const known = index.groups.get(group);
  if (known === undefined) return undefined;
  const own = known.permits?.install;
  return {
    group,
    profile: known.profileId,
    isHeld,
    needsApproval: known.permits?.approval !== undefined,
    grants: asked ?? (own === undefined ? [] : [{ key: `group/${group}`, grant: own }]),
    revision: index.machineOf(group)?.profile.revision ?? "",
    plan: index.machineOf(group)?.profile.content.install,
  };
}

/** The labels that a machine with these identities sends at least. */
export function labelsOf(identities: readonly string[]): Labels {
  return labelsFromQuery(queryOf(identities));
}

/** The query that a machine with these identities sends at least. */
function queryOf(identities: readonly string[]): string {
  const query = new URLSearchParams();
  for (const label of ["uuid", "mac"]) {
    const found = identities.find((identity) => identity.startsWith(`${label}/`));
    if (found !== undefined) query.set(label, found.slice(label.length + 1));
  }
  return query.toString();
}

/** Returns the machine that a report token names, without a check of the token; undefined for an unknown machine. */
export function reportingMachine(
  { entries }: Pick<KnownLedger, "entries">,
  token: string,
): RequestedMachine | undefined {
  const entry = entries.get(entryIdOf(token) ?? "");
  if (entry === undefined) return undefined;
  const { identities, group, profile } = entry;
  return { labels: labelsOf(identities), rawQuery: queryOf(identities), group, profile };
}
