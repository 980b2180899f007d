/** Reports differences as JSON, for programs. */

import { bootRefusals } from "../../model/refusals.ts";
import type { ChangedGroup, ChangedMachines } from "./compare.ts";
import type { BootOutcome } from "./outcome.ts";
import { type DiffReport, hasDifferences, notesOf } from "./words.ts";

/** Returns the whole report, with the name of every machine. */
export function jsonReport(report: DiffReport): object {
  const { before, after, comparison, unready, unchecked } = report;
  const { groups, machineCount, changedCount, endangeredCount, uncertainCount } = comparison;
  return {
    before,
    after,
    differs: hasDifferences(report),
    machines: {
      known: machineCount,
      changed: changedCount,
      moreDestructive: endangeredCount,
      uncertain: uncertainCount,
    },
    groups: groups.map(groupJson),
    notes: notesOf(report),
    notReady: unready,
    notCompared: unchecked.map(({ why, field, holder, isAsNow }) => ({
      field,
      holder,
      reason: why,
      takenAsUnchanged: isAsNow,
    })),
  };
}

function groupJson({ group, kind, isMoreDestructive, fields, changes, losses }: ChangedGroup): object {
  return {
    group,
    kind,
    moreDestructive: isMoreDestructive,
    fields,
    changes: changes.map(changeJson),
    losses: [...losses].map(([to, count]) => ({ to, machines: count })),
  };
}

function changeJson({ machines, sample, before, after, texts, ...change }: ChangedMachines): object {
  return {
    machines,
    sample,
    moreDestructive: change.isMoreDestructive,
    before: outcomeJson(before),
    after: outcomeJson(after),
    profileFields: change.profileFields,
    configs: texts,
  };
}

function outcomeJson({ group, profile, risk, refusal, grants }: BootOutcome): object {
  return {
    group,
    profile,
    effect: risk,
    refused: refusal && { reason: refusal, words: bootRefusals[refusal].words },
    grants: grants.length === 0 ? undefined : grants,
  };
}
