/**
 * Converts a matchbox profile to a Profile. A config that cannot be imported becomes a reference to a ConfigMap that
 * does not exist. Machines get 500 and retry until a person writes this ConfigMap.
 */

import { unreachable } from "../../../src/lib/errors.ts";
import { hiddenTexts } from "../../../src/lib/text/hidden-texts.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { endpointOf, type TemplateField, templateParts } from "../../../src/model/objects/profile.ts";
import { apiVersion } from "../../../src/model/objects/source.ts";
import { parseInitrd } from "../../../src/render/boot/initrd.ts";
import { renderIgnition } from "../../../src/render/config/ignition.ts";
import { renderErrorOf } from "../../../src/render/core/render-error.ts";
import { positionAt } from "../../../src/render/core/text-position.ts";
import { parseTemplate } from "../../../src/render/template/template.ts";
import type { Admit } from "./admit.ts";
import { type DataDirectory, dataPath } from "./data-directory.ts";
import type { ImportFindings } from "./findings.ts";
import { shown } from "./findings.ts";
import { translateGoTemplate, type VariableUse } from "./go-to-handlebars.ts";
import { hasUrl, literalTemplate } from "./handlebars-text.ts";
import { JsonFields, type JsonFile } from "./json-fields.ts";

export interface ProfileContext {
  readonly directory: DataDirectory;
  readonly findings: ImportFindings;
  readonly admit: Admit;
  /** The matchbox's own URL, which davit's URL replaces. */
  readonly replaceUrl?: string;
}

export interface ImportedProfile {
  /** The Profile, and a ConfigMap for each config that is too long for it; empty if there is nothing to serve. */
  readonly objects: readonly JsonObject[];
  /** The matchbox files that the objects are from. */
  readonly sources: readonly string[];
  /** The uses of variables in the templates, each with the template's file. */
  readonly uses: readonly { readonly file: string; readonly use: VariableUse }[];
}

const fieldNames = ["id", "name", "boot", ...templateParts.map(idField)];
const bootNames = ["kernel", "initrd", "args"];
const formerBootNames = { cmdline: "before 0.7.0: write them into args" };

// The CRD's limit for inline text.
const maxInlineLength = 131_072;
// Replaces a boot section that davit refuses. The variable never exists, so machines get 500 and boot nothing else.
const failingBoot = { kernel: "{{notImported}}" };

/**
 * Makes a Profile.
 * @throws {UnusableFile} if matchbox does not use the file either. A finding reports why.
 */
export function importProfile(file: JsonFile, name: string, context: ProfileContext): ImportedProfile {
  const fields = JsonFields.of(file, context.findings, fieldNames);
  if (fields.text("id") === "") fields.fail("is missing, matchbox does not use the profile: write it", "id");
  return new ProfileImport({ file, name, fields, context }).run();
}

/** A config as a Profile's spec has it. */
interface MatchboxConfig {
  readonly text: string;
  readonly raw: boolean;
}

interface ProfileImportOptions {
  readonly file: JsonFile;
  readonly name: string;
  readonly fields: JsonFields;
  readonly context: ProfileContext;
}

class ProfileImport {
  readonly #file: string;
  readonly #name: string;
  readonly #fields: JsonFields;
  readonly #context: ProfileContext;
  readonly #sources: string[];
  readonly #uses: { file: string; use: VariableUse }[] = [];
  readonly #configMaps: JsonObject[] = [];

  constructor({ file, name, fields, context }: ProfileImportOptions) {
    this.#file = file.path;
    this.#name = name;
    this.#fields = fields;
    this.#context = context;
    this.#sources = [file.path];
  }

  run(): ImportedProfile {
    const fields = this.#fields;
    const boot = this.#boot();
    const spec = {
      ...displayName(fields, this.#file, this.#context),
      ...(boot && { boot }),
      ...Object.fromEntries(templateParts.flatMap((part) => this.#part(part))),
    };
    const objects = Object.keys(spec).some((key) => key !== "displayName") ? this.#admitted(spec) : [];
    if (objects.length === 0) this.#warn("has nothing to boot and no config, davit needs no Profile for that", "id");
    return { objects: [...objects, ...this.#configMaps], sources: this.#sources, uses: this.#uses };
  }

  #admitted(spec: JsonObject): readonly JsonObject[] {
    const profile = profileObject(this.#name, spec);
    const findings = this.#context.admit(profile);
    for (const { path, text } of findings) {
      this.#error(`davit does not take ${shown(path.join("."))}: ${text}`, path[1] === "boot" ? "boot" : "id");
    }
    const isOfBoot = findings.some(({ path }) => path[1] === "boot");
    return [isOfBoot ? profileObject(this.#name, { ...spec, boot: failingBoot }) : profile];
  }

  #boot(): JsonObject | undefined {
    if (!this.#fields.has("boot")) return undefined;
    const boot = this.#fields.inner("boot", bootNames, formerBootNames);
    const kernel = boot.text("kernel");
    const initrd = boot.texts("initrd").filter((each) => each !== "");
    const args = boot.texts("args").filter((each) => each !== "");
    if (kernel === "") {
      if (initrd.length + args.length > 0) this.#warn("has no kernel, davit answers 404 for a script", "boot");
      return undefined;
    }
    for (const [field, texts] of [
      ["kernel", [kernel]],
      ["initrd", initrd],
      ["args", args],
    ] as const) {
      for (const text of texts) this.#lookForUrl(boot, field, text);
    }
    const literal = (text: string) => literalTemplate(text, this.#context.replaceUrl);
    // matchbox and iPXE read the words after a kernel as arguments. davit expects arguments in `args`.
    const { rest } = parseInitrd(kernel);
    const file = kernel
      .trimEnd()
      .slice(0, -rest.length || undefined)
      .trimEnd();
    const all = [...(rest === "" ? [] : [rest]), ...args];
    return {
      kernel: literal(file),
      ...(initrd.length > 0 && { initrd: initrd.map(literal) }),
      ...(all.length > 0 && { args: all.map(literal) }),
    };
  }

  /** Warns of a URL by which machines that boot from davit would still ask matchbox for a config. */
  #lookForUrl(boot: JsonFields, field: string, text: string): void {
    const { replaceUrl, findings } = this.#context;
    const url = matchboxUrlIn(text);
    if (url === undefined || (replaceUrl !== undefined && hasUrl(text, replaceUrl))) return;
    const cure = `if that is the matchbox, import with --matchbox-url ${url} or write {{davit.url}} instead`;
    findings.warn(this.#file, `boot.${field} leads to ${shown(url)}: ${cure}`, boot.at(field));
  }

  /** Warns of such a URL in an encoded part of a config, which the import does not change. */
  #lookInside(path: string, source: string): void {
    const { replaceUrl, findings } = this.#context;
    for (const { text, offset } of hiddenTexts(source)) {
      const url = replaceUrl !== undefined && hasUrl(text, replaceUrl) ? replaceUrl : matchboxUrlIn(text);
      if (url === undefined) continue;
      const what = `an encoded part has the URL ${shown(url)}, which the import does not change`;
      findings.warn(path, `${what}: if it is that of matchbox, write davit's URL into it`, positionAt(source, offset));
    }
  }

  /** Returns the entry of the spec for a config; none if the profile does not have this config. */
  #part(part: TemplateField): readonly (readonly [field: string, template: JsonObject])[] {
    const id = this.#fields.text(idField(part));
    if (id === "") return [];
    const folder = endpointOf(part);
    const path = dataPath(folder, id);
    const config = this.#config(part, path);
    if (config === undefined) return [[part, this.#reference(`${this.#name}-not-imported`, part)]];
    const raw = config.raw ? { raw: true } : {};
    if (config.text.length <= maxInlineLength) return [[part, { inline: config.text, ...raw }]];
    const name = `${this.#name}-${folder}`;
    this.#configMaps.push({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { [part]: config.text } });
    return [[part, { ...this.#reference(name, part), ...raw }]];
  }

  #reference(name: string, key: string): JsonObject {
    return { templateFrom: { configMapKeyRef: { name, key } } };
  }

  #config(part: TemplateField, path: string): MatchboxConfig | undefined {
    const read = this.#context.directory.read(path);
    const field = idField(part);
    switch (read.kind) {
      case "missing":
        this.#error(`no file ${shown(path)}, matchbox answers 404 and davit 500: write it, or remove the field`, field);
        return undefined;
      case "unusable":
        this.#sources.push(path);
        this.#context.findings.error(path, read.problem);
        return undefined;
      case "text":
        this.#sources.push(path);
        this.#lookInside(path, read.text);
        if (part !== "ignition") return this.#template(path, read.text);
        if (/\.ign(?:ition)?$/.test(path)) return this.#ignition(path, read.text);
        return this.#isButane(path, read.text) ? this.#template(path, read.text) : undefined;
      default:
        return unreachable(read);
    }
  }

  #template(path: string, source: string): MatchboxConfig | undefined {
    const { findings, replaceUrl } = this.#context;
    const translation = translateGoTemplate(source, replaceUrl === undefined ? {} : { replaceUrl });
    if (translation.kind === "untranslated") {
      for (const { at, text } of translation.problems) findings.error(path, text, at);
      return undefined;
    }
    const problem = parseTemplate(translation.text);
    if (problem !== undefined) {
      findings.error(path, `davit does not take its translation: ${problem.message}`);
      return undefined;
    }
    for (const { at, text } of translation.problems) findings.error(path, text, at);
    this.#uses.push(...translation.uses.map((use) => ({ file: path, use })));
    // A template must have at least one character.
    return { text: translation.text === "" ? "{{!}}" : translation.text, raw: false };
  }

  /** Imports an Ignition config, which matchbox serves without rendering it. */
  #ignition(path: string, text: string): MatchboxConfig | undefined {
    const { replaceUrl } = this.#context;
    if (!this.#isServed(path, text, true)) return undefined;
    if (replaceUrl === undefined || !hasUrl(text, replaceUrl)) return { text, raw: true };
    return { text: literalTemplate(text, replaceUrl), raw: false };
  }

  /** False for an Ignition config, or Butane without variables, for which davit answers 500. The import reports it. */
  #isServed(path: string, text: string, raw: boolean): boolean {
    const refused = renderErrorOf(() => renderIgnition({ text, raw }));
    if (refused === undefined) return true;
    this.#context.findings.error(path, `davit answers 500: ${refused.message}`, refused.position);
    return false;
  }

  /** False for a Container Linux Config, which the import reports. matchbox takes every other file for Butane. */
  #isButane(path: string, text: string): boolean {
    if (/^\s*["']?variant["']?\s*:/m.test(text)) return text.includes("{{") || this.#isServed(path, text, false);
    const rewrite = "write it anew for Butane (https://coreos.github.io/butane/), and put the result into the Profile";
    this.#context.findings.error(path, `a Container Linux Config is not converted: ${rewrite}`);
    return false;
  }

  #error(text: string, field: string): void {
    this.#context.findings.error(this.#file, text, this.#fields.at(field));
  }

  #warn(text: string, field: string): void {
    this.#context.findings.warn(this.#file, text, this.#fields.at(field));
  }
}

/** The server in a URL of the kind that matchbox serves; undefined if the text has none. */
function matchboxUrlIn(text: string): string | undefined {
  return /(https?:\/\/[^/\s"']+)\/(?:ignition|cloud|generic|metadata|assets)\b/.exec(text)?.[1];
}

/** Returns matchbox's field for a config. It has the name of the config's folder and endpoint. */
function idField(part: TemplateField): string {
  return `${endpointOf(part)}_id`;
}

function profileObject(name: string, spec: JsonObject): JsonObject {
  return { apiVersion, kind: "Profile", metadata: { name }, spec };
}

/** Returns the display name, if davit accepts it. */
export function displayName(
  fields: JsonFields,
  file: string,
  { findings, admit }: Pick<ProfileContext, "findings" | "admit">,
): JsonObject {
  const name = fields.text("name");
  if (name === "") return {};
  if (admit(profileObject("sample", { displayName: name, generic: { inline: "-" } })).length === 0) {
    return { displayName: name };
  }
  findings.warn(file, "its name is too long or has a control character, davit leaves it out", fields.at("name"));
  return {};
}
