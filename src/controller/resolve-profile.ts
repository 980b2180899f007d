/** A Profile's spec made complete: every reference replaced by what it names, every template parsed once. Pure. */

import { unreachable } from "../lib/errors.ts";
import type {
  Boot,
  GenericFormat,
  ProfileContent,
  ResolvedTemplate,
  TemplatePart,
  TemplateSource,
} from "../model/profile.ts";
import { bootTexts, templateParts } from "../model/profile.ts";
import type { ConfigMapObject, ObjectName, ProfileObject, SecretObject } from "../model/source.ts";
import { renderCloudConfig } from "../render/cloud-config.ts";
import { renderGeneric } from "../render/generic.ts";
import { mayBeButane, renderIgnition } from "../render/ignition.ts";
import { RenderError } from "../render/render-error.ts";
import type { Finding, RefReason } from "./conditions.ts";

// Parsing takes about 1 s per MiB in the worst case; a config of that size is a mistake.
const maxTemplateBytes = 1024 * 1024;

/** What resolving may ask. */
export interface ProfileWorld {
  readonly configMap: (namespace: string, name: string) => ConfigMapObject | undefined;
  readonly secret: (namespace: string, name: string) => SecretObject | undefined;
  /** True for a ConfigMap or Secret that is missing here because davit may not read it. */
  readonly isForbidden: (name: ObjectName) => boolean;
  /** False while a ConfigMap or Secret that is missing may still be there. */
  readonly isViewComplete: () => boolean;
  /** Parses a template; the problem is in our own words, with its place. */
  readonly checkTemplate: (text: string) => TemplateFault | undefined;
  /** Lower-case hex. */
  readonly sha256: (text: string) => string;
}

interface TemplateFault {
  readonly message: string;
  readonly line: number;
  readonly column: number;
}

/** A Profile's content; parts with a finding are broken in it. */
export interface ResolvedProfile {
  readonly content: ProfileContent;
  readonly findings: readonly Finding[];
  /** Texts of its secret templates by their hash. */
  readonly secretTexts: ReadonlyMap<string, string>;
}

/** Resolves and checks everything that a Profile says. */
export function resolveProfile(object: ProfileObject, world: ProfileWorld): ResolvedProfile {
  const { spec, name } = object;
  const bootFindings = spec.boot === undefined ? [] : checkBoot(spec.boot, world);
  const boot = bootFindings.length > 0 ? ({ kind: "broken" } as const) : spec.boot;
  const { templates, findings, secretTexts } = resolveTemplates(object, world);
  const content = { displayName: spec.displayName ?? name, ...(boot && { boot }), templates };
  return { content, findings: [...bootFindings, ...findings], secretTexts };
}

function resolveTemplates({ spec, namespace }: ProfileObject, world: ProfileWorld) {
  const findings: Finding[] = [];
  const secretTexts = new Map<string, string>();
  const templates: Partial<Record<TemplatePart, ResolvedTemplate>> = {};
  for (const part of templateParts) {
    const source = spec.templates[part];
    if (source === undefined) continue;
    const found = readTemplate(part, source, { namespace, world });
    if ("fault" in found) {
      findings.push({ ...found.fault, message: `spec.${part}: ${found.fault.message}` });
      templates[part] = { kind: "broken" };
    } else {
      const template = resolvedTemplate(source, found.text, world);
      templates[part] = template;
      if (template.kind === "secret") secretTexts.set(template.sha256, found.text);
    }
  }
  return { templates, findings, secretTexts };
}

/** Reads one key of a Secret that allows it; the fault tells why not. */
export function readSecret(
  { name, key }: { readonly name: string; readonly key: string },
  namespace: string,
  world: Pick<ProfileWorld, "secret" | "isForbidden">,
): Found {
  const secret = world.secret(namespace, name);
  if (secret === undefined) return notFound({ kind: "Secret", namespace, name }, world);
  if (!secret.allowsTemplate) {
    return refFault("RefNotPermitted", `Secret "${name}" needs the label davit.dev/allow-template: "true"`);
  }
  return ownKey(secret, key);
}

type Found = { readonly text: string } | { readonly fault: Finding };

interface Place {
  readonly namespace: string;
  readonly world: ProfileWorld;
}

function readTemplate(part: TemplatePart, source: TemplateSource, { namespace, world }: Place): Found {
  const found = findText(source, namespace, world);
  if ("fault" in found) return found;
  if (byteLength(found.text) > maxTemplateBytes) {
    return { fault: { type: "Accepted", reason: "TooLarge", message: "Template is longer than 1 MiB" } };
  }
  if (source.raw) return checkRaw(part, found.text, source.format);
  const fault = world.checkTemplate(found.text);
  if (fault !== undefined) return { fault: templateFinding(fault) };
  return part === "ignition" ? checkButane(found.text) : found;
}

/** A finished document is the answer itself, so what its machines would be refused for is known already. */
function checkRaw(part: TemplatePart, text: string, format: GenericFormat | undefined): Found {
  const refused = refusalOf(() => {
    if (part === "ignition") renderIgnition({ text, raw: true });
    if (part === "cloudConfig") renderCloudConfig(text);
    if (part === "generic") renderGeneric(text, format);
  });
  return refused === undefined ? { text } : invalid(refused);
}

/** Butane instead of Ignition is a mistake that most make once, and one that no machine's labels can mend. */
function checkButane(text: string): Found {
  if (!mayBeButane(text)) return { text };
  const refused = refusalOf(() => renderIgnition({ text, raw: false }));
  return refused?.reason === "butane" ? invalid(refused) : { text };
}

function refusalOf(check: () => void): RenderError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof RenderError) return error;
    throw error;
  }
}

function invalid({ message }: RenderError): Found {
  return { fault: { type: "Accepted", reason: "InvalidTemplate", message } };
}

function findText(source: TemplateSource, namespace: string, world: ProfileWorld): Found {
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

/** Whoever may not read an object is told the same of one that is there and of one that is not. */
function notFound(name: ObjectName, world: Pick<ProfileWorld, "isForbidden">): Found {
  const orForbidden = world.isForbidden(name) ? ", or davit may not read it" : "";
  return refFault("TemplateNotFound", `${name.kind} "${name.name}" does not exist${orForbidden}`);
}

function ownKey(holder: ConfigMapObject | SecretObject, key: string): Found {
  const text = Object.hasOwn(holder.data, key) ? holder.data[key] : undefined;
  return text === undefined ? refFault("KeyNotFound", `${holder.kind} "${holder.name}" has no key "${key}"`) : { text };
}

function resolvedTemplate(source: TemplateSource, text: string, world: ProfileWorld): ResolvedTemplate {
  const { raw, format } = source;
  const serving = { raw, ...(format && { format }) };
  if (source.kind !== "secret") return { kind: "text", text, ...serving };
  return { kind: "secret", name: source.name, key: source.key, sha256: world.sha256(text), ...serving };
}

function checkBoot(boot: Boot, world: ProfileWorld): Finding[] {
  if (boot.kind === "local") return [];
  return bootTexts(boot).flatMap(([path, text]) => {
    const fault = world.checkTemplate(text);
    if (fault === undefined) return [];
    const finding = templateFinding(fault);
    return [{ ...finding, message: `spec.boot.${path}: ${finding.message}` }];
  });
}

function templateFinding({ message, line, column }: TemplateFault): Finding {
  return { type: "Accepted", reason: "InvalidTemplate", message: `line ${line}, column ${column}: ${message}` };
}

function refFault(reason: RefReason, message: string): Found {
  return { fault: { type: "ResolvedRefs", reason, message } };
}

const encoder = new TextEncoder();

function byteLength(text: string): number {
  return encoder.encode(text).length;
}
