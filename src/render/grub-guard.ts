/**
 * Configs for one machine only. GRUB runs any config with a good signature, whatever machine it was made for: without a
 * guard the installer of one machine would run on every other.
 *
 * A guard fails closed. A GRUB that lacks a command or a variable takes the machine for another one.
 */

import type { Labels } from "../model/labels.ts";
import { quote } from "./grub-words.ts";

/** What must be true of a machine that goes by a config. */
export interface GrubGuard {
  /** As the request says it; undefined where it says none, and then no machine is the right one. */
  readonly mac: string | undefined;
  /** What the firmware must say, too, by label. */
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
 * The guard of a machine that says this of itself.
 * @param selects tells whether the machine's Group selects by a label: what decides must be true.
 */
export function guardOf(labels: Labels, selects: (label: string) => boolean): GrubGuard {
  const said = firmwareLabels.filter((label) => labels.has(label) && selects(label));
  const firmware = Object.fromEntries(said.map((label) => [label, labels.get(label) ?? ""]));
  return { mac: labels.get("mac"), firmware };
}

/** The lines of an entry, for the right machine. Any other one says so and reboots. */
export function guardedLines(lines: readonly string[], guard: GrubGuard): readonly string[] {
  if (guard.mac === undefined) return nameless;
  const conditions = conditionsOf(guard.mac, guard);
  const head = conditions.flatMap(({ lookup, condition }) => [...lookup, `if ${condition}; then`]);
  const tail = conditions.toReversed().flatMap(({ refusal }) => ["else", ...refusal, "fi"]);
  return [...head, ...lines, ...tail];
}

/** A whole script, for the right machine. Functions may not stand inside of an `if`: others go round a loop instead. */
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

// Long enough to read a line, and to keep a machine that gets the wrong config again and again off davit's back.
const rebooting = [`echo "Rebooting in 10 seconds"`, "sleep 10", "reboot"] as const;

const nameless = [
  `echo "davit: this config installs a machine, and the request does not name it: send mac=$net_default_mac"`,
  ...rebooting,
] as const;
