/** Converts admitted JSON into the types of `model/objects/source.ts`. The JSON has passed its schema and its rules. */

import { assert } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, objectOf, textEntries } from "../../model/json.ts";
import { normalizeExpressions } from "../../model/labels/expression.ts";
import { isOwnUuid, isUuid, normalizeMac } from "../../model/labels/hardware-ids.ts";
import { type GroupPermits, type GroupSpec, normalizeSelector } from "../../model/objects/group.ts";
import { identity, type MachineSpec } from "../../model/objects/machine.ts";
import {
  type Boot,
  effects,
  genericPart,
  type ProfileAsset,
  type ProfileCaution,
  type ProfileSpec,
  type TemplateSource,
  type Templates,
  templateParts,
} from "../../model/objects/profile.ts";
import type {
  DiskLoaders,
  InstallGrant,
  InstallPlan,
  InstallScope,
  LocalBoot,
  ReportRules,
} from "../../model/permits/permit.ts";
import type { SchemaFinding } from "./check.ts";
import { writtenExpressions } from "./expressions.ts";

/** Returns the spec of a Profile. */
export function toProfileSpec(spec: JsonObject): ProfileSpec {
  const boot = isJsonObject(spec.boot) ? toBoot(spec.boot) : undefined;
  const { grubScript } = objectOf(spec.boot);
  const effect = effects.find((known) => known === spec.effect);
  const install = toInstallPlan(spec.install);
  const reports = toReportRules(spec.reports);
  const assets = toAssets(spec.assets);
  return {
    ...displayName(spec),
    ...(effect && { effect }),
    ...(install && { install }),
    ...(reports && { reports }),
    ...(assets.length > 0 && { assets }),
    ...requireTls(spec),
    ...(isJsonObject(spec.metadata) && { metadata: spec.metadata }),
    ...(boot && { boot }),
    ...(typeof grubScript === "string" && { grubScript }),
    templates: toTemplates(spec),
  };
}

function toTemplates(spec: JsonObject): Templates<TemplateSource> {
  const templates: Templates<TemplateSource> = {};
  for (const part of templateParts) {
    const template = spec[part];
    if (isJsonObject(template)) templates[part] = toTemplate(template);
  }
  for (const part of objectsIn(spec.genericParts)) templates[genericPart(textOf(part.name))] = toTemplate(part);
  return templates;
}

function toAssets(assets: JsonValue | undefined): readonly ProfileAsset[] {
  return objectsIn(assets).map(({ name, url, sha256 }) => ({
    name: textOf(name),
    url: textOf(url),
    sha256: textOf(sha256),
  }));
}

/** Returns the spec of a Group. The CRD's rules admit only labels that can be normalized. */
export function toGroupSpec(spec: JsonObject): GroupSpec {
  const selector = objectOf(spec.selector);
  const normalized = normalizeSelector(textEntries(selector.matchLabels));
  assert("selector" in normalized, "The rules of matchLabels admit what normalizeSelector takes");
  const { expressions } = normalizeExpressions(writtenExpressions(selector));
  const matchAll = spec.matchAll === true;
  const args = textsOf(spec.args);
  return {
    ...displayName(spec),
    profile: textOf(objectOf(spec.profileRef).name),
    selector: normalized.selector,
    ...(expressions.length > 0 && { expressions }),
    matchAll,
    priority: matchAll || typeof spec.priority !== "number" ? 0 : spec.priority,
    hold: spec.hold === true,
    ...permitsOfGroup(spec),
    ...requireTls(spec),
    ...(args.length > 0 && { args }),
    metadata: objectOf(spec.metadata),
  };
}

/** Returns undefined for a boot section that has only a `grubScript`. */
function toBoot(boot: JsonObject): Boot | undefined {
  if (boot.local !== undefined) return { kind: "local", local: toLocalBoot(boot.local), ...diskOf(boot) };
  if (boot.script !== undefined) return { kind: "script", script: textOf(boot.script) };
  if (boot.kernel === undefined) return undefined;
  return {
    kind: "kernel",
    kernel: textOf(boot.kernel),
    initrd: textsOf(boot.initrd),
    args: textsOf(boot.args),
    efiInitrd: boot.efiInitrd === true,
  };
}

function toLocalBoot(value: JsonValue): LocalBoot {
  const local = readLocalBoot(value);
  assert(local !== undefined, "The schema names the local boots");
  return local;
}

/**
 * Returns the parts of a refused Profile's spec that take effect nevertheless: a local boot, the effect `Install` and
 * `requireTls`. They only make the Profile's machines safer.
 */
export function toCaution(spec: JsonValue | undefined): ProfileCaution {
  const { boot, effect, requireTls: written } = objectOf(spec);
  const demand = mayDemandTls(written) && { requireTls: true as const };
  const local = readLocalBoot(objectOf(boot).local);
  return { ...(local && { local }), ...(effect === "Install" && { isInstall: true }), ...demand };
}

/** True for a `requireTls` of a refused object that may have been meant as true. */
export function mayDemandTls(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null && value !== false;
}

function requireTls({ requireTls: isRequired }: JsonObject): { readonly requireTls?: true } {
  return isRequired === true ? { requireTls: true } : {};
}

function toTemplate(template: JsonObject): TemplateSource {
  const format = template.format === "json" ? "json" : undefined;
  const serving: Pick<TemplateSource, "raw" | "format"> = { raw: template.raw === true, ...(format && { format }) };
  if (template.inline !== undefined) return { kind: "inline", text: textOf(template.inline), ...serving };
  const { configMapKeyRef, secretKeyRef } = objectOf(template.templateFrom);
  const kind = configMapKeyRef === undefined ? "secret" : "configMap";
  const { name, key, serve } = objectOf(configMapKeyRef ?? secretKeyRef);
  const sealing = kind === "secret" && serve === "DuringInstall" ? { duringInstall: true as const } : {};
  return { kind, name: textOf(name), key: textOf(key), ...sealing, ...serving };
}

function displayName({ displayName: name }: JsonObject): { readonly displayName?: string } {
  return typeof name === "string" ? { displayName: name } : {};
}

function objectsIn(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

function textsOf(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
}

/** Returns the spec of a Machine. */
export function toMachineSpec(spec: JsonObject): MachineSpec {
  const install = toInstallGrant(spec.install, "All");
  return {
    identities: identitiesIn(spec.identity),
    approved: spec.approved === true,
    hold: spec.hold === true,
    labels: textEntries(spec.labels),
    metadata: objectOf(spec.metadata),
    ...(install && { install }),
  };
}

/** Finds a uuid that many boards share. The CRD admits it: a rule with a list of them would be hard to extend. */
export function machineFindings({ identity: written }: JsonObject): readonly SchemaFinding[] {
  const { uuid } = objectOf(written);
  if (typeof uuid !== "string" || isOwnUuid(uuid.toLowerCase())) return [];
  const text = "is a UUID that many boards share, so it names no machine: remove it, and write macs";
  return [{ path: ["spec", "identity", "uuid"], isBeyondCrd: true, code: "broken-rule", text }];
}

/**
 * Returns what counts of a refused Machine: only what makes a machine wait, its identities and `hold`. It approves and
 * grants nothing, and its labels select nothing. Undefined if no identity of it can be read.
 */
export function machineStandIn(spec: JsonValue | undefined): MachineSpec | undefined {
  const { identity: written, hold } = objectOf(spec);
  const identities = identitiesIn(written);
  if (identities.length === 0) return undefined;
  return { identities, approved: false, hold: mayHold(hold), labels: {}, metadata: {} };
}

/** Returns the readable identities, each once: `uuid/...` before `mac/...`. */
function identitiesIn(written: JsonValue | undefined): readonly string[] {
  const { uuid, macs } = objectOf(written);
  const own = typeof uuid === "string" && isUuid(uuid) && isOwnUuid(uuid.toLowerCase()) ? [uuid.toLowerCase()] : [];
  const addresses = (Array.isArray(macs) ? macs : []).flatMap((mac: JsonValue) =>
    typeof mac === "string" ? (normalizeMac(mac) ?? []) : [],
  );
  return [
    ...own.map((value) => identity("uuid", value)),
    ...[...new Set(addresses)].map((value) => identity("mac", value)),
  ];
}

/** False only if `hold` is false, null or absent. An unreadable `hold` keeps the machines waiting. */
export function mayHold(hold: JsonValue | undefined): boolean {
  return hold !== undefined && hold !== null && hold !== false;
}

const presetTimeoutSeconds = 2 * 3_600;

/** Returns a local boot; undefined for any other value. */
function readLocalBoot(value: JsonValue | undefined): LocalBoot | undefined {
  return value === "exit" || value === "sanboot" || value === "notFound" ? value : undefined;
}

/** Returns how a Profile installs; undefined for a Profile that asks for no permits. */
function toInstallPlan(install: JsonValue | undefined): InstallPlan | undefined {
  if (!isJsonObject(install)) return undefined;
  const then = readLocalBoot(install.then);
  const timeoutSeconds = secondsOf(install.timeout) ?? presetTimeoutSeconds;
  return then && { then, ...diskOf(install), timeoutSeconds };
}

/** Reads the field `disk`. An empty list of loaders means the usual ones, as an absent list does. */
function diskOf({ disk }: JsonObject): { readonly disk?: DiskLoaders } {
  if (!isJsonObject(disk)) return {};
  const efi = textsOf(disk.efi);
  return { disk: { ...(efi.length > 0 && { efi }), ...(typeof disk.bios === "number" && { bios: disk.bios }) } };
}

/** Returns what machines may report; undefined for a Profile whose machines may report no labels. */
function toReportRules(reports: JsonValue | undefined): ReportRules | undefined {
  if (!isJsonObject(reports)) return undefined;
  const labels = Object.entries(objectOf(reports.labels)).map(([name, values]) => {
    const texts = Array.isArray(values) ? values.filter((value) => typeof value === "string") : [];
    return [name, texts] as const;
  });
  const ttlSeconds = secondsOf(reports.ttl);
  return { labels: Object.fromEntries(labels), ...(ttlSeconds !== undefined && { ttlSeconds }) };
}

/** Returns the grant of a Group or Machine; undefined without one. A Machine's grant has no scope: it means `All`. */
function toInstallGrant(install: JsonValue | undefined, presetScope: InstallScope): InstallGrant | undefined {
  if (!isJsonObject(install) || typeof install.generation !== "number") return undefined;
  const { generation, ledger, until, scope } = install;
  const untilMs = typeof until === "string" ? Date.parse(until) : Number.NaN;
  return {
    generation,
    ...(typeof ledger === "string" && { ledger }),
    ...(!Number.isNaN(untilMs) && { untilMs }),
    scope: scope === "All" || scope === "NeverInstalled" ? scope : presetScope,
  };
}

const unitSeconds: Readonly<Record<string, number>> = { h: 3_600, m: 60, s: 1 };

/** Returns the seconds of a duration such as `1h30m`, which has passed the CRD's pattern; undefined for no text. */
function secondsOf(duration: JsonValue | undefined): number | undefined {
  if (typeof duration !== "string") return undefined;
  const parts = [...duration.matchAll(/(\d+)([hms])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (unitSeconds[unit ?? ""] ?? 0), 0);
}

/** Returns what a Group asks and grants besides its selection. */
function permitsOfGroup({ approval, enroll, install }: JsonObject): GroupPermits {
  const grant = toInstallGrant(install, "NeverInstalled");
  return {
    ...(approval === "Required" && { approval: "Required" }),
    ...(enroll === true && { enroll }),
    ...(grant && { install: grant }),
  };
}
