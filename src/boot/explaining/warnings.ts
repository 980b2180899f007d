/**
 * Warnings about machines that get an answer, but perhaps not the expected one. A preview and `davit render` show them.
 * Boots do not compute them.
 */

import { shown } from "../../lib/text/visible.ts";
import { identityLabels, type Labels, reservedLabels } from "../../model/labels/labels.ts";
import { withArguments } from "../../model/objects/profile.ts";
import { lacksInitrdArgument } from "../../render/boot/initrd.ts";
import type { BootGroup, BootProfile } from "../core/known-documents.ts";

export interface Warning {
  /** Identifies the warning to programs. The words of `text` may change. */
  readonly code:
    | "unreadableLabel"
    | "repeatedLabel"
    | "labelCase"
    | "namelessUuid"
    | "catchAll"
    | "efiInitrd"
    | "usesRequest";
  readonly text: string;
}

/** A request, and the Group that wins it. */
interface TakenRequest {
  readonly labels: Labels;
  /** Every label by which a Group selects. */
  readonly selectorLabels: ReadonlySet<string>;
  readonly chosen: BootGroup | undefined;
}

export interface Seen extends TakenRequest {
  readonly profile: BootProfile | undefined;
  /** The paths of configs that depend on the request, such as `/generic`. */
  readonly usesRequest: readonly string[];
}

/** Returns all warnings. Those about the request come first. */
export function warningsOf(seen: Seen): readonly Warning[] {
  return [...requestWarnings(seen), ...initrdWarnings(seen), ...usageWarnings(seen)];
}

/** Returns the warnings about the request and its Group, whatever config the machine asks for. */
export function requestWarnings(seen: TakenRequest): readonly Warning[] {
  return [...identityWarnings(seen.labels), ...caseWarnings(seen), ...catchAllWarnings(seen)];
}

function warning(code: Warning["code"], text: string): Warning {
  return { code, text };
}

function identityWarnings(labels: Labels): readonly Warning[] {
  const { unreadable = [], repeated = [], isUuidNameless = false } = labels.flaws ?? {};
  return [
    ...[...unreadable].map((name) => warning("unreadableLabel", `${name} cannot be read, and selects no Group`)),
    ...[...repeated].map((name) => warning("repeatedLabel", `${name} comes twice, with different values`)),
    ...(isUuidNameless
      ? [warning("namelessUuid", "uuid is invalid, or shared by many boards: it names no machine")]
      : []),
  ];
}

/** davit ignores letter case only in reserved names. */
function caseWarnings({ labels, selectorLabels }: TakenRequest): readonly Warning[] {
  const byLower = new Map([...selectorLabels].map((name) => [name.toLowerCase(), name]));
  return [...labels.keys()].flatMap((name) => {
    const other = byLower.get(name.toLowerCase());
    if (other === undefined || selectorLabels.has(name) || reservedLabels.has(name)) return [];
    return [warning("labelCase", `no Group selects by ${shown(name)}, but by ${other}: names differ by letter case`)];
  });
}

function catchAllWarnings({ chosen, labels }: TakenRequest): readonly Warning[] {
  if (chosen === undefined || chosen.selectorText !== "") return [];
  const given = identityLabels.filter((name) => (labels.get(name) ?? "") !== "");
  const machine = given.length === 0 ? "the request says nothing that names a machine" : "no Group names this machine";
  return [warning("catchAll", `${chosen.id} takes every machine that no other Group takes: ${machine}`)];
}

function initrdWarnings({ profile, chosen }: Seen): readonly Warning[] {
  const boot = profile?.content.boot;
  if (boot?.kind !== "kernel" || !lacksInitrdArgument(withArguments(boot, chosen?.args ?? []))) return [];
  const text = "no initrd= argument: a kernel that an older UEFI iPXE starts finds no initrd, set boot.efiInitrd";
  return [warning("efiInitrd", text)];
}

/** The labels that iPXE sends for every machine. */
const usualLabels: readonly string[] = ["uuid", "mac", "domain", "hostname", "serial"];

function usageWarnings({ usesRequest, labels }: Seen): readonly Warning[] {
  const missing = usualLabels.filter((name) => !labels.has(name));
  if (usesRequest.length === 0 || missing.length === 0) return [];
  const depends = `${usesRequest.join(", ")} ${usesRequest.length === 1 ? "depends" : "depend"} on the request`;
  return [warning("usesRequest", `${depends}, which lacks ${missing.join(", ")}: the machine may get something else`)];
}
