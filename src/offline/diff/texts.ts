/**
 * Compares the configs of a machine by two states of the objects. It renders with the code that answers machines. It
 * never renders a template from a Secret, so no text of a Secret can get into a result.
 */

import { formatPatch, structuredPatch } from "diff";
import { BootConfigs, type ConfigName, configNames } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import type { BootProfile } from "../../boot/core/known-documents.ts";
import type { Selected } from "../../boot/core/selected.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import { visible } from "../../lib/text/visible.ts";
import { isGenericPart, isOfSecret, partAt, partsOf, type SecretTemplate } from "../../model/objects/profile.ts";
import { bootRefusals } from "../../model/refusals.ts";
import type { ComparedMachine } from "./compared-machines.ts";

/** A config that differs. */
export interface ChangedText {
  /** The path of the config without the slash. */
  readonly endpoint: ConfigName;
  readonly change: "changed" | "added" | "removed";
  /** Why no lines are shown; undefined if `diff` has them. */
  readonly note?: string;
  /** A unified diff. Control characters are visible as `\u{...}`. */
  readonly diff?: string;
}

/** One machine's config. */
type MadeConfig =
  | { readonly kind: "none" }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "secret"; readonly template: SecretTemplate; readonly inputs: string };

/** Both states are rendered for these addresses, so an address is never a difference. */
const addresses = { authority: "davit.example:8080", tlsAuthority: "davit.example:8443" };
const userAgents: Readonly<Partial<Record<ConfigName, string>>> = { grub: "GRUB" };
/** More different lines are not searched: that takes time with the square of their number. */
const maxEdits = 4_000;

export class MachineTexts {
  readonly #configs: BootConfigs;

  constructor(index: BootIndex) {
    const grub = { separator: "auto", commands: "auto" } as const;
    this.#configs = new BootConfigs({ ...addresses, index, grub, permits: "assumed" });
  }

  /** Returns a config of a machine. @param machine its Group and Profile; undefined if it is refused. */
  of(name: ConfigName, machine: Selected | undefined, { labels, rawQuery }: ComparedMachine): MadeConfig {
    if (machine === undefined) return { kind: "none" };
    const part = partAt(name);
    const template = part && machine.profile.content.templates[part];
    if (isOfSecret(template)) return { kind: "secret", template, inputs: inputsOf(machine) };
    try {
      const { rendered } = this.#configs.render(name, { labels, rawQuery, userAgent: userAgents[name] ?? "" });
      return { kind: "text", text: rendered.body };
    } catch (error) {
      if (!(error instanceof BootError)) throw error;
      if (error.reason === "noPart") return { kind: "none" };
      const why = error.problem === undefined ? "" : `: ${error.problem}`;
      return { kind: "text", text: `davit refuses this config: ${bootRefusals[error.reason].words}${why}\n` };
    }
  }
}

/** Returns the configs that a machine may get by either of two Profiles. */
export function endpointsOf(machines: readonly (Selected | undefined)[]): readonly ConfigName[] {
  const parts = machines.flatMap((machine) =>
    machine === undefined ? [] : partsOf(machine.profile.content.templates),
  );
  return [...new Set([...configNames, ...parts.filter(isGenericPart)])];
}

/** By the Profile, because thousands of machines may have one. */
const contents = new WeakMap<BootProfile, string>();

/** Everything besides the request that a config can be made of. */
export function inputsOf({ group, profile }: Selected): string {
  const { id, selectorText, metadata, args, machine, requiresTls } = group;
  return JSON.stringify([id, selectorText, metadata, args, machine, requiresTls, profile.id, contentOf(profile)]);
}

/** Returns the content of a Profile without its assets, as a text. */
export function contentOf(profile: BootProfile): string {
  const content = contents.get(profile) ?? JSON.stringify({ ...profile.content, assets: undefined });
  contents.set(profile, content);
  return content;
}

/** True if two configs are not certainly equal. */
export function isChanged(before: MadeConfig, after: MadeConfig): boolean {
  if (before.kind === "text" && after.kind === "text") return before.text !== after.text;
  if (before.kind !== "secret" || after.kind !== "secret") return before.kind !== after.kind;
  const isSameText = before.template.sha256 === after.template.sha256 && after.template.sha256 !== "";
  return !isSameText || before.template.raw !== after.template.raw || mayDiffer(before, after);
}

/** True for a template that gets other variables. */
function mayDiffer(
  before: Extract<MadeConfig, { kind: "secret" }>,
  after: Extract<MadeConfig, { kind: "secret" }>,
): boolean {
  return !after.template.raw && before.inputs !== after.inputs;
}

/** Describes a config for which `isChanged` is true. */
export function changedText(endpoint: ConfigName, before: MadeConfig, after: MadeConfig): ChangedText {
  const change = before.kind === "none" ? "added" : after.kind === "none" ? "removed" : "changed";
  if (before.kind === "secret" || after.kind === "secret") {
    return { endpoint, change, note: noteOn(before, after) };
  }
  const patch = structuredPatch(
    `before/${endpoint}`,
    `after/${endpoint}`,
    textOf(before),
    textOf(after),
    undefined,
    undefined,
    { context: 3, maxEditLength: maxEdits },
  );
  if (patch === undefined) return { endpoint, change, note: `more than ${maxEdits} lines differ: not shown` };
  return { endpoint, change, diff: printable(formatPatch(patch)) };
}

function noteOn(before: MadeConfig, after: MadeConfig): string {
  if (before.kind !== "secret") return `the new text is from ${secretName(after)}: not shown`;
  if (after.kind !== "secret") return `the old text was from ${secretName(before)}: not shown`;
  const isUnknown = after.template.sha256 === "";
  if (isUnknown) return `its text is from ${secretName(after)}, which cannot be compared`;
  if (before.template.sha256 === after.template.sha256)
    return `its text from ${secretName(after)} is the same and its variables differ: it may differ, not shown`;
  return `its text from ${secretName(after)} differs: not shown`;
}

function secretName(made: MadeConfig): string {
  return made.kind === "secret" ? `Secret "${made.template.name}", key "${made.template.key}"` : "";
}

function textOf(made: MadeConfig): string {
  return made.kind === "text" ? made.text : "";
}

/** Removes the line of `=` at the top, and makes control characters visible. */
function printable(patch: string): string {
  const lines = patch.split("\n").filter((line, at) => at > 0 || !line.startsWith("==="));
  return lines.map((line) => line.split("\t").map(visible).join("\t")).join("\n");
}
