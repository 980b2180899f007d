/** Compares the fields of a Profile that none of a machine's configs shows, but that decide what the machine gets. */

import type { BootProfile } from "../../boot/core/known-documents.ts";
import { fieldOf, isSealed, type ProfileContent, partsOf } from "../../model/objects/profile.ts";
import type { ReportRules } from "../../model/permits/permit.ts";
import { type ChangedField, differing, type FieldTexts } from "./group-fields.ts";

const assetsField = "spec.assets";

/** By the Profile, because thousands of machines may have one. */
const known = new WeakMap<BootProfile, FieldTexts>();

/** Lists the fields that differ between the Profiles of a machine. A Profile is undefined for a machine without one. */
export function changedProfileFields(
  before: BootProfile | undefined,
  after: BootProfile | undefined,
): readonly ChangedField[] {
  if (before === undefined || after === undefined) return [];
  const fields = differing(textsOf(before), textsOf(after));
  // Another Profile has other assets, and its script names them.
  return before.id === after.id ? fields : fields.filter(({ field }) => !field.startsWith(assetsField));
}

function textsOf(profile: BootProfile): FieldTexts {
  const texts = known.get(profile) ?? fieldTexts(profile.content);
  known.set(profile, texts);
  return texts;
}

function fieldTexts({ requireTls, install, reports, assets = [], templates }: ProfileContent): FieldTexts {
  return {
    "spec.requireTls": requireTls && "true",
    "spec.install.then": install?.then,
    "spec.install.timeout": install && `${install.timeoutSeconds} s`,
    "spec.reports": reports && rulesText(reports),
    // Not the URL: its query may be a secret.
    ...Object.fromEntries(assets.map(({ name, sha256 }) => [`${assetsField}[${name}]`, `sha256 ${sha256}`])),
    ...Object.fromEntries(
      partsOf(templates)
        .filter((part) => isSealed(templates[part]))
        .map((part) => [`spec.${fieldOf(part)}, serve`, "DuringInstall"]),
    ),
  };
}

function rulesText({ labels, ttlSeconds }: ReportRules): string {
  const rules = Object.entries(labels).map(([label, values]) => `${label}: ${values.toSorted().join(" ")}`);
  return [...rules.toSorted(), ...(ttlSeconds === undefined ? [] : [`for ${ttlSeconds} s`])].join(", ");
}
