/**
 * Restricts a config to one machine. GRUB runs any config with a valid signature, whatever machine it was made for. So
 * without a guard, one machine's installer could run on any other machine.
 *
 * A guard fails closed: a GRUB that lacks a command or a variable is refused like another machine.
 */

import type { Labels } from "../../model/labels/labels.ts";
import { quote } from "./words.ts";

/** What must be true of a machine that runs a config. */
export interface GrubGuard {
  /** The MAC of the request. Undefined if the request has none: then no machine passes. */
  readonly mac: string | undefined;
  /** Further values that the firmware must report, by label. */
  readonly firmware: Readonly<Partial<Record<FirmwareLabel, string>>>;
}

/** Labels that GRUB can look up in the firmware, with the command for each. */
const lookups = {
  uuid: "smbios --type 1 --get-uuid 8 --set davit_uuid",
  serial: "smbios --type 1 --get-string 7 --set davit_serial",
} as const;

type FirmwareLabel = keyof typeof lookups;
const firmwareLabels = ["uuid", "serial"] as const satisfies readonly FirmwareLabel[];

/**
 * Returns the guard for a machine with these labels.
 * @param selects returns true if the machine's Group selects by a label. Only such labels are compared with the
 * firmware.
 */
export function guardOf(labels: Labels, selects: (label: string) => boolean): GrubGuard {
  const said = firmwareLabels.filter((label) => labels.has(label) && selects(label));
  const firmware = Object.fromEntries(said.map((label) => [label, labels.get(label) ?? ""]));
  return { mac: labels.get("mac"), firmware };
}

/** Puts a condition around the lines of an entry. Any machine but the right one shows a message and reboots. */
export function guardedLines(lines: readonly string[], guard: GrubGuard): readonly string[] {
  if (guard.mac === undefined) return nameless;
  const conditions = conditionsOf(guard.mac, guard);
  const head = conditions.flatMap(({ lookup, condition }) => [...lookup, `if ${condition}; then`]);
  const tail = conditions.toReversed().flatMap(({ refusal }) => ["else", ...refusal, "fi"]);
  return [...head, ...lines, ...tail];
}

/**
 * Puts loops before a whole script. Any machine but the right one stays in a loop, which shows a message and reboots.
 * An `if` around the script is impossible: GRUB allows no function inside it.
 */
export function guardedScript(script: string, guard: GrubGuard): string {
  if (guard.mac === undefined) return textOf(nameless);
  const loops = conditionsOf(guard.mac, guard).flatMap(({ lookup, condition, refusal }) => [
    ...lookup,
    `until ${condition}; do`,
    ...refusal,
    "done",
  ]);
  return textOf(loops) + script;
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

interface GrubCondition {
  readonly lookup: readonly string[];
  readonly condition: string;
  readonly refusal: readonly string[];
}

function conditionsOf(mac: string, { firmware }: GrubGuard): readonly GrubCondition[] {
  const said = firmwareLabels.flatMap((label) => {
    const value = firmware[label];
    return value === undefined ? [] : [conditionOf(label, `davit_${label}`, value, [lookups[label]])];
  });
  return [conditionOf("mac", "net_default_mac", mac, []), ...said];
}

function conditionOf(label: string, variable: string, value: string, lookup: readonly string[]): GrubCondition {
  // `echo` prints a blank between its words.
  const words = [`"davit: this config installs the machine with ${label}"`, quote(value), `"and not $${variable}"`];
  return {
    lookup,
    condition: `[ "$${variable}" = ${quote(value)} ]`,
    refusal: [`echo ${words.join(" ")}`, ...rebooting],
  };
}

// Ten seconds are enough to read the message. They also limit the requests of a machine that gets the wrong config each
// time.
export const rebooting = [`echo "Rebooting in 10 seconds"`, "sleep 10", "reboot"] as const;

const nameless = [
  `echo "davit: this config installs a machine, and the request does not name it: send mac=$net_default_mac"`,
  ...rebooting,
] as const;
