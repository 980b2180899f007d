/** Finds installs that are valid but will probably not go as intended. Permits decide whether a machine may install. */

import type { FindingCode } from "../../model/objects/findings.ts";
import { type GroupSpec, isCatchAll, listedMacs } from "../../model/objects/group.ts";
import { identity } from "../../model/objects/machine.ts";
import { isLocation, kernelTexts, partsOf, type TemplateSource } from "../../model/objects/profile.ts";
import { holderOf, type ObjectName, type ProfileObject } from "../../model/objects/source.ts";
import { type InstallGrant, untilRefusal } from "../../model/permits/permit.ts";
import { permitRefusals } from "../../model/refusals.ts";
import { parseInitrd } from "../../render/boot/initrd.ts";
import type { Manifests } from "../load/load-manifests.ts";
import { findingAt, type LintFinding, objectText, placeOfField } from "./finding.ts";
import type { PlacedMachine } from "./machines.ts";

interface Fault {
  readonly code: FindingCode;
  readonly field: string;
  readonly text: string;
}

/** Returns the findings about installs of Profiles, Groups and Machines. */
export function installFindings(
  manifests: Manifests,
  { machines, nowMs }: { readonly machines: readonly PlacedMachine[]; readonly nowMs: number },
): readonly LintFinding[] {
  const { view } = manifests;
  const reported = reportedLabels(manifests);
  const joined = new Set([...view.all("Machine")].flatMap(({ spec }) => spec.identities));
  const found = (object: ObjectName & { readonly refusal?: string }, faults: readonly Fault[]) =>
    object.refusal === undefined ? faults.map((fault) => toFinding(manifests, object, fault)) : [];
  return [
    ...otherLedgers(manifests, nowMs),
    ...[...view.all("Profile")].flatMap((profile) => found(profile, profileFaults(manifests, profile))),
    ...[...view.all("Group")].flatMap((group) => {
      const { namespace, spec } = group;
      const profile = view.get("Profile", namespace, spec.profile);
      const cards = profile?.spec.install === undefined ? [] : separateCards(spec, joined);
      const ofGroup = [...forEverybody(spec, profile), ...byReports(spec, reported), ...cards];
      return found(group, [...grantFaults(group, spec.install, { profile, whose: "", nowMs }), ...ofGroup]);
    }),
    ...machines.flatMap(({ machine, groups }) => {
      const { install } = machine.spec;
      const profiles = groups.map(({ namespace, spec }) => view.get("Profile", namespace, spec.profile));
      const bare = profiles.every((profile) => profile?.spec.install === undefined) ? profiles[0] : undefined;
      return found(machine, grantFaults(machine, install, { profile: bare, whose: " of its Group", nowMs }));
    }),
  ];
}

/**
 * Finds grants for another ledger than that of the grant with the latest `until`, which is probably davit's own. Each
 * other ledger is one finding.
 */
function otherLedgers(manifests: Manifests, nowMs: number): readonly LintFinding[] {
  const granting = [...manifests.view.all("Group"), ...manifests.view.all("Machine")].flatMap((object) => {
    const { ledger, untilMs = 0 } = object.spec.install ?? {};
    return ledger === undefined || untilMs <= nowMs ? [] : [{ object, ledger, untilMs }];
  });
  const [newest, ...others] = granting.toSorted((a, b) => b.untilMs - a.untilMs);
  const byLedger = Map.groupBy(others, ({ ledger }) => ledger);
  return [...byLedger].flatMap(([ledger, [first, ...more]]) => {
    if (newest === undefined || first === undefined || ledger === newest.ledger) return [];
    const what = `spec.install.ledger is ${ledger}${more.length === 0 ? "" : ` (and in ${more.length} more grants)`}`;
    const later = `the grant of ${objectText(newest.object)}, which ends later, names ${newest.ledger}`;
    const text = `${what}, but ${later}: davit has one ledger, so grant again by davit machine install`;
    return [toFinding(manifests, first.object, { code: "other-ledger", field: "spec.install.ledger", text })];
  });
}

function toFinding(manifests: Manifests, name: ObjectName, { code, field, text }: Fault): LintFinding {
  return findingAt(placeOfField(manifests, name, { field }), code, `${objectText(name)}: ${text}`);
}

function profileFaults(manifests: Manifests, profile: ProfileObject): readonly Fault[] {
  if (profile.spec.install === undefined) return [];
  return [...unreported(manifests, profile), ...foreignAssets(profile)];
}

function unreported(manifests: Manifests, { namespace, spec }: ProfileObject): readonly Fault[] {
  const texts = partsOf(spec.templates).map((part) => {
    const template = spec.templates[part];
    return template === undefined ? "" : textOf(manifests, namespace, template);
  });
  // A text that is not in the input may have it.
  if (texts.some((text) => text === undefined || readsReport.test(text))) return [];
  const text = "no config has {{davit.report}}: each of its installs becomes Unconfirmed after install.timeout";
  return [{ code: "unreported-install", field: "spec.install", text }];
}

const readsReport = /\{\{[^}]*\bdavit\.report\b/;

/** Returns the text of a template; undefined if the input does not have it. */
function textOf({ view }: Manifests, namespace: string, template: TemplateSource): string | undefined {
  // davit does not render it.
  if (template.raw) return "";
  if (template.kind === "inline") return template.text;
  const { kind, name } = holderOf(template, namespace);
  return view.get(kind, namespace, name)?.data[template.key];
}

function foreignAssets({ spec: { boot } }: ProfileObject): readonly Fault[] {
  if (boot?.kind !== "kernel") return [];
  const [first] = kernelTexts(boot).filter(([field, text]) => isLocation(field) && isForeign(text));
  if (first === undefined) return [];
  const [field] = first;
  const what = `boot.${field} is not davit's`;
  const text = `${what}: the script stays open for 60 s after a claim, whatever the machine has read`;
  return [{ code: "foreign-install-asset", field: `spec.boot.${field}`, text }];
}

function isForeign(text: string): boolean {
  return /^[a-z]+:\/\//i.test(parseInitrd(text).location);
}

interface GrantFacts {
  /** The Profile that the grant is for; undefined if it is unknown. */
  readonly profile: ProfileObject | undefined;
  /** The text after the name of the Profile. */
  readonly whose: string;
  readonly nowMs: number;
}

function grantFaults(
  { kind, name }: ObjectName,
  grant: InstallGrant | undefined,
  { profile, whose, nowMs }: GrantFacts,
): readonly Fault[] {
  if (grant === undefined) return [];
  if (profile !== undefined && profile.spec.install === undefined) return [useless(profile, whose)];
  const { ledger, untilMs } = grant;
  const lacking = [...(ledger === undefined ? ["ledger"] : []), ...(untilMs === undefined ? ["until"] : [])];
  if (lacking.length === 0) return ended(grant, nowMs);
  const cure = `davit machine install ${kind.toLowerCase()}/${name}`;
  const text = `spec.install has no ${lacking.join(" and no ")}, so the grant is asleep: "${cure}" fills it in`;
  return [{ code: "asleep-grant", field: "spec.install", text }];
}

function useless(profile: ProfileObject, whose: string): Fault {
  const what = `spec.install grants an install, but ${objectText(profile)}${whose} has no install`;
  const text = `${what}, so the grant has no effect: add spec.install to the Profile, or remove it here`;
  return { code: "useless-grant", field: "spec.install", text };
}

/** Finds an `until` that is over or too far ahead. The text is that of the condition `Permitted`. */
function ended(grant: InstallGrant, nowMs: number): readonly Fault[] {
  const why = untilRefusal(grant, nowMs);
  return why === undefined ? [] : [{ code: "asleep-grant", field: "spec.install.until", text: permitRefusals[why] }];
}

function forEverybody(spec: GroupSpec, profile: ProfileObject | undefined): readonly Fault[] {
  if (profile?.spec.effect !== "Install" || spec.approval !== undefined || !isCatchAll(spec)) return [];
  const field = spec.matchAll ? "spec.matchAll" : "spec.selector";
  const text = "unknown machines get a Profile with effect: Install, and no approval is required";
  return [{ code: "install-for-all", field, text }];
}

/** @param joined the identities of all Machines. */
function separateCards(spec: GroupSpec, joined: ReadonlySet<string>): readonly Fault[] {
  const macs = listedMacs(spec);
  const first = macs.find((mac) => !joined.has(identity("mac", mac)));
  if (first === undefined) return [];
  const what = `no Machine lists ${first}, so each of the ${macs.length} MAC addresses may install once`;
  const text = `${what}: if two of them are cards of one machine, list both in one Machine`;
  return [{ code: "separate-cards", field: "spec.selector.matchExpressions", text }];
}

type ReportedLabels = ReadonlyMap<string, ReadonlySet<string>>;

/** Labels that machines may report, with the values that some Profile permits. */
function reportedLabels({ view }: Manifests): ReportedLabels {
  const labels = new Map<string, Set<string>>();
  for (const { spec } of view.all("Profile")) {
    for (const [label, values] of Object.entries(spec.reports?.labels ?? {})) {
      labels.set(label, new Set([...(labels.get(label) ?? []), ...values]));
    }
  }
  return labels;
}

function byReports({ selector, expressions = [] }: GroupSpec, reported: ReportedLabels): readonly Fault[] {
  const wanted = [
    ...Object.entries(selector).map(([key, value]) => ({ key, values: [value] })),
    ...expressions.filter(({ operator }) => operator === "In"),
  ];
  const label = wanted.find(({ key, values = [] }) => values.some((value) => reported.get(key)?.has(value) === true));
  if (label === undefined) return [];
  const text =
    `the selector asks for ${label.key}, which machines report about themselves: a machine whose report is lost or ` +
    "over gets another Group";
  return [{ code: "reported-label", field: "spec.selector", text }];
}
