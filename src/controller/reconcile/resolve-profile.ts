/**
 * Completes a Profile's spec: replaces each reference to a ConfigMap or Secret with the text in it, and checks each
 * template. All functions here are pure, apart from what they look up in `ProfileWorld`.
 */

import { unreachable } from "../../lib/errors.ts";
import type { ProfileDocument } from "../../model/objects/documents.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import {
  bootTexts,
  fieldOf,
  type GenericFormat,
  isLocation,
  type ProfileAsset,
  type ProfileContent,
  type ProfileSpec,
  partsOf,
  type ResolvedTemplate,
  type TemplatePart,
  type TemplateSource,
  type Templates,
} from "../../model/objects/profile.ts";
import type { SecretTexts } from "../../model/objects/secret-texts.ts";
import {
  allowTemplateLabel,
  type ConfigMapObject,
  type ObjectName,
  type ProfileObject,
  type SecretObject,
} from "../../model/objects/source.ts";
import { lackedRule, type RoleRule } from "../../model/role-rule.ts";
import { parseInitrd } from "../../render/boot/initrd.ts";
import { rulesOf } from "../../render/config/check-config.ts";
import { mayBeButane, renderIgnition } from "../../render/config/ignition.ts";
import { withLocalTexts } from "../../render/config/local-texts.ts";
import { reasonCodes } from "../../render/core/reason-codes.ts";
import { type RenderError, type RenderReason, renderErrorOf } from "../../render/core/render-error.ts";
import { maxTemplateBytes } from "../../render/template/limits.ts";
import type { Finding, RefReason } from "../status/conditions.ts";

// The limit for all templates of a Profile together. One document holds all of them, and davit copies, hashes and sends
// the document as a whole.
const maxProfileBytes = 4 * 1024 * 1024;

/** The look-ups and checks that this file needs to resolve a Profile. */
export interface ProfileWorld {
  readonly configMap: (namespace: string, name: string) => ConfigMapObject | undefined;
  readonly secret: (namespace: string, name: string) => SecretObject | undefined;
  /** True for a ConfigMap or Secret that is not in view because davit has no right to read it. */
  readonly isForbidden: (name: ObjectName) => boolean;
  /** True for a ConfigMap or Secret that is known not to exist. */
  readonly isGone: (name: ObjectName) => boolean;
  /** Parses a template. Returns the template's first fault; undefined if the template is valid. */
  readonly checkTemplate: (text: string) => TemplateFault | undefined;
  /** Returns the SHA-256 of a text, in lower-case hex. */
  readonly sha256: (text: string) => string;
  /** Returns the name of a Secret's text in the store. */
  readonly secretName: SecretTexts["nameOf"];
  /** The only namespace whose assets may have any name; undefined if all may. */
  readonly adminNamespace?: string | undefined;
  /** Returns findings, so that `lastGood` stays, if a config of a Group works with `lastGood` but fails with `next`. */
  readonly losses?: (profile: ObjectName, next: ResolvedProfile, lastGood: ProfileDocument) => readonly Finding[];
}

interface TemplateFault {
  readonly reason: RenderReason;
  readonly message: string;
  readonly line: number;
  readonly column: number;
}

interface ResolvedProfile {
  /** A `boot` or template with a finding has the kind `broken`. */
  readonly content: ProfileContent;
  readonly findings: readonly Finding[];
  /** The text of each template that comes from a Secret, by the text's name in the store. */
  readonly secretTexts: ReadonlyMap<string, string>;
}

/** Resolves and checks the whole spec of a Profile. */
export function resolveProfile(object: ProfileObject, world: ProfileWorld): ResolvedProfile {
  const { spec, name } = object;
  const bootFindings = checkBoot(spec, world);
  const { templates, findings, secretTexts } = resolveTemplates(object, world);
  const assets = permittedAssets(object, world);
  const { displayName = name, effect, metadata, install, reports, requireTls } = spec;
  const boot = bootFindings.length > 0 ? { boot: { kind: "broken" } as const } : bootOf(spec);
  const permits = { ...(install && { install }), ...(reports && { reports }) };
  const content = {
    displayName,
    ...(effect && { effect }),
    ...permits,
    ...(assets.permitted.length > 0 && { assets: assets.permitted }),
    ...(requireTls && { requireTls }),
    ...(metadata && { metadata }),
    ...boot,
    templates,
  };
  return { content, findings: [...bootFindings, ...findings, ...assets.findings], secretTexts };
}

/**
 * Outside of the admin namespace, the names of assets begin with the namespace. So no tenant takes a name that another
 * one wants, or puts a file where the Profile of another one boots from.
 */
function permittedAssets({ spec, namespace }: ProfileObject, { adminNamespace }: ProfileWorld) {
  const { assets = [] } = spec;
  const isPermitted = ({ name }: ProfileAsset) =>
    adminNamespace === undefined || namespace === adminNamespace || name.startsWith(`${namespace}/`);
  const findings = assets.flatMap((asset): Finding[] => {
    if (isPermitted(asset)) return [];
    const message = `outside of namespace "${adminNamespace}" it begins with "${namespace}/": correct it`;
    const finding: Finding = { type: "Accepted", reason: "NotPermitted", message, code: "not-permitted" };
    return [inField(`spec.assets[${asset.name}].name`, finding)];
  });
  return { permitted: assets.filter(isPermitted), findings };
}

function resolveTemplates({ spec, namespace }: ProfileObject, world: ProfileWorld) {
  const findings: Finding[] = [];
  const secretTexts = new Map<string, string>();
  const templates: Templates<ResolvedTemplate> = {};
  let roomBytes = maxProfileBytes;
  for (const part of partsOf(spec.templates)) {
    const source = spec.templates[part];
    if (source === undefined) continue;
    const found = readTemplate(part, source, { namespace, world, roomBytes });
    if ("fault" in found) {
      findings.push(inField(`spec.${fieldOf(part)}`, found.fault));
      templates[part] = { kind: "broken" };
    } else {
      roomBytes -= byteLength(found.text);
      const template = resolvedTemplate(source, found.text, world);
      templates[part] = template;
      if (template.kind === "secret") secretTexts.set(template.sha256, found.text);
    }
  }
  return { templates, findings, secretTexts };
}

export function readSecret(
  { name, key }: { readonly name: string; readonly key: string },
  namespace: string,
  world: Pick<ProfileWorld, "secret" | "isForbidden">,
): FoundText {
  const secret = world.secret(namespace, name);
  if (secret === undefined) return notFound({ kind: "Secret", namespace, name }, world);
  if (!secret.allowsTemplate) {
    return refFault(
      "RefNotPermitted",
      "secret-not-allowed",
      `Secret "${name}" needs the label ${allowTemplateLabel}: "true"`,
    );
  }
  return ownKey(secret, key);
}

type FoundText = { readonly text: string } | { readonly fault: Finding };

interface TemplatePlace {
  readonly namespace: string;
  readonly world: ProfileWorld;
  /** `maxProfileBytes` minus the bytes of all templates read so far. */
  readonly roomBytes: number;
}

function readTemplate(
  part: TemplatePart,
  source: TemplateSource,
  { namespace, world, roomBytes }: TemplatePlace,
): FoundText {
  const found = withTextsBeside(part, source, findText(source, namespace, world), { namespace, world });
  if ("fault" in found) return found;
  const bytes = byteLength(found.text);
  if (bytes > maxTemplateBytes) return tooLarge("Template is longer than 1 MiB");
  if (bytes > roomBytes) return tooLarge("Template and those before it are longer than 4 MiB together");
  if (source.raw) return checkRaw(part, found.text, source.format);
  const fault = world.checkTemplate(found.text);
  if (fault !== undefined) return { fault: templateFinding(fault) };
  return part === "ignition" ? checkButane(found.text) : found;
}

/** A Butane template from a ConfigMap may name the ConfigMap's other entries by `local`. */
function withTextsBeside(
  part: TemplatePart,
  source: TemplateSource,
  found: FoundText,
  { namespace, world }: Pick<TemplatePlace, "namespace" | "world">,
): FoundText {
  if ("fault" in found || part !== "ignition" || source.raw || source.kind !== "configMap") return found;
  const { data = {} } = world.configMap(namespace, source.name) ?? {};
  return { text: withLocalTexts(found.text, (key) => (Object.hasOwn(data, key) ? data[key] : undefined)) };
}

function tooLarge(message: string): FoundText {
  return { fault: { type: "Accepted", reason: "TooLarge", message, code: "template-too-large" } };
}

/** Checks a raw template. davit serves the text unchanged, so no machine's labels can correct a mistake in it. */
function checkRaw(part: TemplatePart, text: string, format: GenericFormat | undefined): FoundText {
  const refused = renderErrorOf(() => rulesOf(part).check({ raw: true, format })(text));
  return refused === undefined ? { text } : invalid(refused);
}

/** Translates a Butane document without tags. No machine's labels can correct a mistake in it. */
function checkButane(text: string): FoundText {
  if (!mayBeButane(text)) return { text };
  const refused = renderErrorOf(() => renderIgnition({ text, raw: false }));
  return refused !== undefined && reasonCodes[refused.reason] === "butane" ? invalid(refused) : { text };
}

function invalid({ message, reason, position }: RenderError): FoundText {
  const place = { field: "", ...(position && { position }) };
  return { fault: { type: "Accepted", reason: "InvalidTemplate", message, code: reasonCodes[reason], place } };
}

function findText(source: TemplateSource, namespace: string, world: ProfileWorld): FoundText {
  switch (source.kind) {
    case "inline":
      return source;
    case "configMap": {
      const configMap = world.configMap(namespace, source.name);
      if (configMap === undefined) return notFound({ kind: "ConfigMap", namespace, name: source.name }, world);
      return ownKey(configMap, source.key);
    }
    case "secret":
      return readSecret(source, namespace, world);
    default:
      return unreachable(source);
  }
}

/**
 * Returns the fault for a ConfigMap or Secret that is not in view. If davit has no right to read the object, the API
 * server does not show whether the object exists.
 */
function notFound(name: ObjectName, world: Pick<ProfileWorld, "isForbidden">): FoundText {
  const orForbidden = world.isForbidden(name) ? `, or davit may not read it: ${lackedRule(readRule(name))}` : "";
  const code = name.kind === "ConfigMap" ? "missing-config-map" : "missing-secret";
  return refFault("TemplateNotFound", code, `${name.kind} "${name.name}" does not exist${orForbidden}`);
}

/** A Role names each Secret, but no ConfigMap. */
function readRule({ kind, name }: ObjectName): RoleRule {
  const verbs = ["get", "list", "watch"];
  const isSecret = kind === "Secret";
  return { apiGroup: "", resource: isSecret ? "secrets" : "configmaps", name: isSecret ? name : undefined, verbs };
}

function ownKey(holder: ConfigMapObject | SecretObject, key: string): FoundText {
  const text = Object.hasOwn(holder.data, key) ? holder.data[key] : undefined;
  if (text !== undefined) return { text };
  return refFault("KeyNotFound", "missing-key", `${holder.kind} "${holder.name}" has no key "${key}"`);
}

function resolvedTemplate(source: TemplateSource, text: string, world: ProfileWorld): ResolvedTemplate {
  const { raw, format } = source;
  const serving = { raw, ...(format && { format }) };
  if (source.kind !== "secret") return { kind: "text", text, ...serving };
  const { kind, name, key, duringInstall } = source;
  return { kind, name, key, sha256: world.secretName(text), ...(duringInstall && { duringInstall }), ...serving };
}

function bootOf({ boot, grubScript }: ProfileSpec): Pick<ProfileContent, "boot" | "grubScript"> {
  return { ...(boot && { boot }), ...(grubScript !== undefined && { grubScript }) };
}

function checkBoot(spec: ProfileSpec, world: ProfileWorld): Finding[] {
  return bootTexts(spec).flatMap(([path, text]) => {
    const fault = world.checkTemplate(text);
    const finding = fault ? templateFinding(fault) : isLocation(path) ? locationFinding(text) : undefined;
    return finding === undefined ? [] : [inField(`spec.boot.${path}`, finding)];
  });
}

/**
 * Returns a finding if the location of a kernel or initrd is an HTTP URL that no client can follow. This function
 * accepts every location with another scheme, with a template (`{{`) or with a variable of the client (`${`).
 */
export function locationFinding(text: string): Finding | undefined {
  if (/\{\{|\$\{/.test(text)) return undefined;
  const [location = ""] = parseInitrd(text).location.split(/\s/, 1);
  if (!/^https?:/i.test(location)) return undefined;
  // `URL` accepts `http:host` without slashes, as a browser does. Firmware does not accept this.
  if (/^https?:\/\/[^/]/i.test(location) && URL.canParse(location)) return undefined;
  const message = "is no URL that a machine can follow: write http://HOST:PORT/PATH";
  return { type: "Accepted", reason: "InvalidURL", message, code: "invalid-url", place: { field: "" } };
}

export function templateFinding({ reason, message, line, column }: TemplateFault): Finding {
  const text = `line ${line}, column ${column}: ${message}`;
  const place = { field: "", position: { line, column } };
  return { type: "Accepted", reason: "InvalidTemplate", message: text, code: reasonCodes[reason], place };
}

/** Returns a copy of a finding that names this field as the place of the mistake. */
export function inField(field: string, finding: Finding): Finding {
  return { ...finding, message: `${field}: ${finding.message}`, place: { ...finding.place, field } };
}

function refFault(reason: RefReason, code: FindingCode, message: string): FoundText {
  return { fault: { type: "ResolvedRefs", reason, message, code } };
}

const encoder = new TextEncoder();

function byteLength(text: string): number {
  return encoder.encode(text).length;
}
