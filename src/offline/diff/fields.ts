/** Compares the fields of Groups and Profiles, whether a machine is known or not. */

import type { BootGroup, BootProfile } from "../../boot/core/known-documents.ts";
import { toRfc3339 } from "../../lib/clock.ts";
import { isDeepEqual } from "../../lib/deep-equal.ts";
import type { JsonObject } from "../../model/json.ts";
import { fieldOf, isSealed, type ProfileContent, partsOf } from "../../model/objects/profile.ts";
import type { InstallGrant, ReportRules } from "../../model/permits/permit.ts";
import { implies } from "../../model/selection/implication.ts";

/** A field that differs. A text is undefined for a field that is not set, and for a Group that does not exist. */
export interface ChangedField {
  readonly field: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** What the change does, if the texts do not show it. */
  readonly note?: string;
}

/** How the machines of a new selector relate to those of the old one. */
type SelectorChange = "same" | "widens" | "narrows" | "differs";

/** Compares two selectors. `widens` and `narrows` are certain, and `differs` may be either. */
export function selectorChange(before: BootGroup, after: BootGroup): SelectorChange {
  if (before.selectorText === after.selectorText) return "same";
  if (implies(before, after)) return "widens";
  return implies(after, before) ? "narrows" : "differs";
}

/** Lists the fields in which two versions of a Group differ. A version is undefined for a Group that does not exist. */
export function changedFields(before: BootGroup | undefined, after: BootGroup | undefined): readonly ChangedField[] {
  const changed = differing(textsOf(before), textsOf(after)).map((each) => {
    const isBoth = before !== undefined && after !== undefined;
    const note = isBoth && each.field === "selector" ? selectorNote(before, after) : undefined;
    return { ...each, ...(note && { note }) };
  });
  return [...changed, ...metadataChange(before?.metadata ?? {}, after?.metadata ?? {})];
}

/** The text of each field that is set. */
type FieldTexts = Readonly<Record<string, string | undefined>>;

/** Lists the fields whose texts differ. */
export function differing(was: FieldTexts, is: FieldTexts): readonly ChangedField[] {
  return Object.keys({ ...was, ...is }).flatMap((field) => {
    const [before, after] = [was[field], is[field]];
    return before === after ? [] : [{ field, before, after }];
  });
}

function textsOf(group: BootGroup | undefined): FieldTexts {
  if (group === undefined) return {};
  const { selectorText, profileId, priority, permits, requiresTls, barrier, args } = group;
  const { approval, enroll, install } = permits ?? {};
  return {
    selector: selectorText === "" ? "matchAll" : selectorText,
    profile: profileId,
    priority: priority === 0 ? undefined : String(priority),
    hold: barrier === "held" ? "true" : undefined,
    approval,
    enroll: enroll && "true",
    install: install && grantText(install),
    requireTls: requiresTls ? "true" : undefined,
    args: args.length === 0 ? undefined : args.join(" "),
  };
}

function grantText({ generation, scope, ledger, untilMs }: InstallGrant): string {
  const end = untilMs === undefined ? [] : [`until ${toRfc3339(untilMs)}`];
  return [`generation ${generation}`, scope, ...(ledger === undefined ? [] : [`ledger ${ledger}`]), ...end].join(", ");
}

const meanings: Readonly<Record<SelectorChange, string>> = {
  same: "",
  widens: "it widens: more machines may match than this report counts",
  narrows: "it narrows",
  differs: "other machines may match than this report counts",
};

function selectorNote(before: BootGroup, after: BootGroup): string {
  const [was, is] = [before, after].map(({ requirementCount }) => requirementCount || "none");
  const counts = was === is ? "" : `; labels and expressions: ${was} before, ${is} now`;
  return `${meanings[selectorChange(before, after)]}${counts}`;
}

/** Names the variables that differ. Their values show in the configs that print them. */
function metadataChange(before: JsonObject, after: JsonObject): readonly ChangedField[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => !isDeepEqual(variableIn(before, name), variableIn(after, name)));
  if (changed.length === 0) return [];
  const had = (variables: JsonObject) => changed.filter((name) => Object.hasOwn(variables, name)).join(", ");
  const [was, is] = [had(before), had(after)];
  const note = was === is ? "other values, which the configs show" : "only names are shown here";
  return [{ field: "metadata", before: was === "" ? undefined : was, after: is === "" ? undefined : is, note }];
}

function variableIn(variables: JsonObject, name: string): unknown {
  return Object.hasOwn(variables, name) ? variables[name] : undefined;
}

const assetsField = "spec.assets";

/** By the Profile, because thousands of machines may have one. */
const known = new WeakMap<BootProfile, FieldTexts>();

/**
 * Lists the fields that differ between the Profiles of a machine, that none of its configs shows, and that decide what
 * the machine gets. A Profile is undefined for a machine without one.
 */
export function changedProfileFields(
  before: BootProfile | undefined,
  after: BootProfile | undefined,
): readonly ChangedField[] {
  if (before === undefined || after === undefined) return [];
  const fields = differing(profileTexts(before), profileTexts(after));
  // Another Profile has other assets, and its script names them.
  return before.id === after.id ? fields : fields.filter(({ field }) => !field.startsWith(assetsField));
}

function profileTexts(profile: BootProfile): FieldTexts {
  const texts = known.get(profile) ?? fieldTexts(profile.content);
  known.set(profile, texts);
  return texts;
}

function fieldTexts({ requireTls, install, reports, assets = [], templates }: ProfileContent): FieldTexts {
  return {
    "spec.requireTls": requireTls && "true",
    "spec.install.then": install?.then,
    "spec.install.disk": install?.disk && JSON.stringify(install.disk),
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
