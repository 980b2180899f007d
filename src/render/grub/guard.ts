/**
 * Guards configs for one machine. GRUB runs any config with a good signature, whatever machine it was made for: without
 * a guard one machine's installer would run on every other.
 *
 * A guard fails closed. A GRUB that lacks a command or a variable counts as another machine.
 */

import type { Labels } from "../../model/labels.ts";
import { quote } from "./words.ts";

/** What must be true of a machine that uses a config. */
export interface GrubGuard {
  /** From the request; undefined without one, and then no machine passes. */
  readonly mac: string | undefined;
  /** Values that the firmware must also report, by label. */
  readonly firmware: Readonly<Partial<Record<FirmwareLabel, string>>>;
}

/** Labels that GRUB can look up, and how. */
const lookups = {
  uuid: "smbios --type 1 --get-uuid 8 --set davit_uuid",
  serial: "smbios --type 1 --get-string 7 --set davit_serial",
} as const;

type FirmwareLabel = keyof typeof lookups;
const firmwareLabels = ["uuid", "serial"] as const satisfies readonly FirmwareLabel[];

/**
 * The guard for a machine with these labels.
 * @param selects returns true if the machine's Group selects by a label: such labels must be true.
 */
export function guardOf(labels: Labels, selects: (label: string) => boolean): GrubGuard {
  const said = firmwareLabels.filter((label) => labels.has(label) && selects(label));
  const firmware = Object.fromEntries(said.map((label) => [label, labels.get(label) ?? ""]));
  return { mac: labels.get("mac"), firmware };
}

/** The lines of an entry, for the right machine. Any other machine shows a message and reboots. */
export function guardedLines(lines: readonly string[], guard: GrubGuard): readonly string[] {
  if (guard.mac === undefined) return nameless;
  const conditions = conditionsOf(guard.mac, guard);
  const head = conditions.flatMap(({ lookup, condition }) => [...lookup, `if ${condition}; then`]);
  const tail = conditions.toReversed().flatMap(({ refusal }) => ["else", ...refusal, "fi"]);
  return [...head, ...lines, ...tail];
}

/**
 * A whole script, for the right machine. GRUB allows no function inside an `if`, so other machines enter a loop.
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
  // The words of an echo have a blank between them.
  const words = [`"davit: this config installs the machine with ${label}"`, quote(value), `"and not $${variable}"`];
  return {
    lookup,
    condition: `[ "$${variable}" = ${quote(value)} ]`,
    refusal: [`echo ${words.join(" ")}`, ...rebooting],
  };
}

// Long enough to read a line. It also limits the requests of a machine that gets the wrong config again and again.
const rebooting = [`echo "Rebooting in 10 seconds"`, "sleep 10", "reboot"] as const;

const nameless = [
  `echo "davit: this config installs a machine, and the request does not name it: send mac=$net_default_mac"`,
  ...rebooting,
] as const;
