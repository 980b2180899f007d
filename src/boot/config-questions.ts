/** What a config asks the desk: for what, from where, and whether its text is only for installs. */

import { isSealed, partAt } from "../model/objects/profile.ts";
import type { PermitAsk, PermitPurpose } from "../model/permits/permit.ts";
import type { DeskAsk, PermitDesk } from "../model/permits/permit-desk.ts";
import { permitRefusals } from "../model/refusals.ts";
import { BootError } from "./core/boot-error.ts";
import type { Selected } from "./core/selected.ts";

/** The members of a `ConfigRequest` that matter to the desk. */
interface AskingRequest {
  readonly rawQuery: string;
  readonly mayClaim?: boolean | undefined;
  readonly address?: (() => string | undefined) | undefined;
}

/** Returns the question of a request. @param isOnlyForInstalls see `DeskAsk.isSealed`. */
export function questionOf(
  ask: PermitAsk,
  { mayClaim = false, rawQuery, address }: AskingRequest,
  isOnlyForInstalls: boolean,
): DeskAsk {
  return { ...ask, mayClaim, isSealed: isOnlyForInstalls, rawQuery, address: address?.() };
}

/** @throws {BootError} noPermit for a config that is only for installs, in a Profile without `install`. */
export function assertOpen(name: string, machine: Selected): void {
  if (!isSealedFor(name, machine)) return;
  const { group, profile } = machine;
  throw new BootError("noPermit", { group: group.id, profile: profile.id, problem: permitRefusals.notClaimed });
}

/** True for a config that is only for the address that has claimed the machine's install. */
export function isSealedFor(name: string, { profile }: Selected): boolean {
  const part = partAt(name);
  return part !== undefined && isSealed(profile.content.templates[part]);
}

/**
 * Reports a boot from the disk to the desk, which records a machine of an adopted Group. The machine does not wait for
 * it. A failure is the desk's to log: the machine asks again at its next boot.
 */
export function noteDisk(desk: Pick<PermitDesk, "ask">, question: DeskAsk): void {
  const answer = desk.ask(question);
  if (answer instanceof Promise) answer.catch(() => undefined);
}

/** Scripts and configs need different permits. */
export function purposeOf(name: string): PermitPurpose {
  return name === "ipxe" || name === "grub" ? "script" : "config";
}
