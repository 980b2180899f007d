/** What a machine gets by one state of the objects, as far as people compare it. */

import { BootError } from "../../boot/core/boot-error.ts";
import type { Selected } from "../../boot/core/selected.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { InstallGrant, NamedGrant } from "../../model/permits/permit.ts";
import type { BootRefusal } from "../../model/refusals.ts";

/** What a boot does to the disks of a machine, the most destructive one last. */
export const risks = ["nothing", "Boot", "Install, not granted", "Install, granted", "Install"] as const;
type Risk = (typeof risks)[number];

export interface BootOutcome {
  /** `namespace/name`; undefined if no Group takes the machine. */
  readonly group: string | undefined;
  /** `namespace/name`. */
  readonly profile: string | undefined;
  readonly risk: Risk;
  /** Undefined if the machine boots. */
  readonly refusal: BootRefusal | undefined;
  /**
   * The grants that are open, each as `group/racks/web generation 2 in ledger 9f3c0a52`. A Group's grant with the scope
   * `All` has another line, with `for installed machines` at its end. That of a Machine is always for it.
   */
  readonly grants: readonly string[];
  /** The machine's Group and Profile; undefined if it is refused. */
  readonly machine: Selected | undefined;
}

/**
 * Finds what a machine with these labels gets. No ledger is asked, so every open grant counts as not spent.
 * @param nowMs Unix milliseconds: a grant that has ended is not open.
 */
export function outcomeOf(index: BootIndex, labels: Labels, nowMs: number): BootOutcome {
  try {
    const machine = index.candidate(labels, "script");
    const { ask } = machine;
    const grants = openGrants(ask?.grants ?? [], nowMs);
    return {
      group: machine.group.id,
      profile: machine.profile.id,
      risk: riskOf(machine, ask, grants),
      refusal: undefined,
      grants,
      machine,
    };
  } catch (error) {
    if (!(error instanceof BootError)) throw error;
    const { group, reason } = error;
    const profile = group === undefined ? undefined : index.groups.get(group)?.profileId;
    return { group, profile, risk: "nothing", refusal: reason, grants: [], machine: undefined };
  }
}

/** What a Group may do to the disks of its machines. */
export type Danger = Pick<BootOutcome, "risk" | "grants">;

/** Finds what a Group (`namespace/name`) does to a machine that nobody knows. @param nowMs see `outcomeOf`. */
export function dangerOf(index: BootIndex, id: string, nowMs: number): Danger {
  const machine = index.machineOf(id);
  const isServed = machine?.group.barrier === undefined && machine?.profile.hasFailed === false;
  if (machine === undefined || !isServed) return { risk: "nothing", grants: [] };
  const { group, profile } = machine;
  const grant = group.permits?.install;
  const plan = profile.isInstall ? profile.content.install : undefined;
  const grants = plan && grant ? openGrants([{ key: `group/${id}`, grant }], nowMs) : [];
  return { risk: riskOf(machine, plan, grants), grants };
}

/** @param needsPermit undefined if the machine needs no permit. */
function riskOf({ profile }: Selected, needsPermit: object | undefined, grants: readonly string[]): Risk {
  if (!profile.isInstall) return "Boot";
  if (needsPermit === undefined) return "Install";
  return grants.length > 0 ? "Install, granted" : "Install, not granted";
}

function openGrants(grants: readonly NamedGrant[], nowMs: number): readonly string[] {
  const open = grants.filter(({ grant }) => isOpen(grant, nowMs));
  return open.flatMap(({ key, grant }) => {
    const name = `${key} generation ${grant.generation} in ledger ${grant.ledger}`;
    const isForInstalled = grant.scope === "All" && key.startsWith("group/");
    return isForInstalled ? [name, `${name} for installed machines`] : [name];
  });
}

function isOpen({ ledger, untilMs }: InstallGrant, nowMs: number): boolean {
  return ledger !== undefined && untilMs !== undefined && untilMs > nowMs;
}

/** True if a machine may lose data by this change that it would have kept before. */
export function isMoreDestructive(before: Danger, after: Danger): boolean {
  const [was, is] = [before, after].map(({ risk }) => risks.indexOf(risk));
  if (is === undefined || was === undefined || is < risks.indexOf("Install, not granted")) return false;
  return is > was || after.grants.some((grant) => !before.grants.includes(grant));
}
