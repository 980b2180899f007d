/**
 * From what a machine says of itself to the config it asked for: selection, then rendering. An answer is made from one
 * state of the store and nothing else; equal requests get equal bytes while that state lasts.
 */

import { hash } from "node:crypto";
import type { JsonObject } from "../model/json.ts";
import type { Labels } from "../model/labels.ts";
import { fieldOf, type GenericPart, type TemplatePart } from "../model/profile.ts";
import { renderCloudConfig } from "../render/cloud-config.ts";
import { renderGeneric } from "../render/generic.ts";
import { renderIgnition } from "../render/ignition.ts";
import { groupLines, renderMetadata } from "../render/metadata.ts";
import { RenderError } from "../render/render-error.ts";
import type { Rendered } from "../render/rendered.ts";
import { compileTemplate, type Template } from "../render/template.ts";
import { RequestReads, templateVariables } from "../render/variables.ts";
import { BootError } from "./boot-error.ts";
import type { BootView, Machine, TemplateText } from "./boot-index.ts";
import { type BootFiles, BootScripts, type BootScriptsOptions } from "./boot-scripts.ts";
import { CheckedTexts } from "./checked-texts.ts";
import { KeptConfigs } from "./kept-configs.ts";
import type { BootGroup } from "./known-documents.ts";
import { TextCache } from "./text-cache.ts";

/** Every config that a machine can ask for, named as its endpoint is; beside the parts that a Profile names. */
export const configNames = ["ipxe", "grub", "ignition", "cloud", "generic", "metadata"] as const;
export type ConfigName = (typeof configNames)[number] | GenericPart;

export interface BootConfigsOptions extends Omit<BootScriptsOptions, "compile"> {
  readonly index: BootView;
}

export interface ConfigRequest {
  readonly labels: Labels;
  /** As sent, without the `?`. */
  readonly rawQuery: string;
  /** Empty when the client tells none. */
  readonly userAgent: string;
}

/** A machine's config, and whose it is. */
export interface Config {
  readonly rendered: Rendered;
  /** `namespace/name`. */
  readonly group: string;
  /** `namespace/name`; undefined where the Profile has no part in it. */
  readonly profile: string | undefined;
}

/**
 * 64 MiB of template text: 32 Profiles whose templates have the largest allowed size of 1 MiB (counted as two), or
 * 15,000 of the usual 2 KiB. Compiled templates take about ten times their text, so this bounds them to well under
 * 1 GiB even then.
 */
const templateCacheBytes = 64 * 1024 * 1024;

/** 8,000 configs of 4 KiB each, or 100,000 of 200 bytes: a fleet's, while it boots. */
const keptConfigBytes = 64 * 1024 * 1024;

export class BootConfigs {
  readonly #index: BootView;
  readonly #scripts: BootScripts;
  readonly #davitUrl: string;
  readonly #templates = new TextCache<Template>({ limitBytes: templateCacheBytes });
  readonly #kept = new KeptConfigs({ limitBytes: keptConfigBytes });
  readonly #ignition = new CheckedTexts((text) => renderIgnition({ text, raw: false }));
  readonly #rawIgnition = new CheckedTexts((text) => renderIgnition({ text, raw: true }));
  readonly #cloudConfig = new CheckedTexts(renderCloudConfig);
  readonly #generic = new CheckedTexts((text) => renderGeneric(text, undefined));
  readonly #genericJson = new CheckedTexts((text) => renderGeneric(text, "json"));

  constructor(options: BootConfigsOptions) {
    this.#index = options.index;
    this.#scripts = new BootScripts({ ...options, compile: (text) => this.#compile(text) });
    this.#davitUrl = `http://${options.authority}`;
  }

  /**
   * The config that a machine asks for.
   * @throws {BootError} for every reason not to give one.
   */
  render(name: ConfigName, request: ConfigRequest): Config {
    if (name === "metadata") {
      const group = this.#index.selectGroup(request.labels);
      const defaults = this.#index.defaultsOf(group);
      const rendered = asBroken({ group: group.id }, () => metadata(group, defaults, request));
      return { rendered, group: group.id, profile: undefined };
    }
    const machine = this.#index.select(request.labels);
    const subject = { group: machine.group.id, profile: machine.profile.id };
    const rendered = asBroken(subject, () => this.#renderFor(name, machine, request));
    if (rendered === undefined) throw new BootError("noPart", subject);
    return { rendered, ...subject };
  }

  /** The files that a machine is told to boot; undefined when it is told none. */
  bootFilesOf(machine: Machine): BootFiles | undefined {
    try {
      return asBroken({ group: machine.group.id }, () => this.#scripts.files(machine));
    } catch (error) {
      if (error instanceof BootError) return undefined;
      throw error;
    }
  }

  #renderFor(name: Exclude<ConfigName, "metadata">, machine: Machine, request: ConfigRequest): Rendered | undefined {
    switch (name) {
      case "ipxe":
        return this.#scripts.ipxe(machine);
      case "grub":
        return this.#scripts.grub(machine, request);
      case "cloud":
        return this.#config("cloudConfig", machine, request);
      default:
        return this.#config(name, machine, request);
    }
  }

  #config(part: TemplatePart, machine: Machine, request: ConfigRequest): Rendered {
    assertUsable(machine, part);
    const template = this.#index.template(machine, part);
    const kept = this.#kept.get(machine, part);
    if (kept !== undefined) return kept;
    const reads = new RequestReads();
    const text = this.#fill(template, machine, request, reads);
    const rendered = this.#checksOf(part, template).get(text);
    if (!reads.isAny) return this.#kept.keep(machine, part, rendered);
    // A copy: machines whose request is harmless may get equal bytes.
    return reads.isHarmful ? { ...rendered, isUnsigned: true } : rendered;
  }

  /** A template's result, or a raw text as it is. */
  #fill(template: TemplateText, { group, profile }: Machine, request: ConfigRequest, reads: RequestReads): string {
    const { text, raw } = template;
    if (raw) return text;
    const { labels, rawQuery } = request;
    const scope = { group, defaults: profile.content.metadata, labels, rawQuery, davitUrl: this.#davitUrl };
    return this.#compile(text).render(templateVariables(scope, reads));
  }

  #checksOf(part: TemplatePart, { raw, format }: TemplateText): CheckedTexts {
    switch (part) {
      case "ignition":
        return raw ? this.#rawIgnition : this.#ignition;
      case "cloudConfig":
        return this.#cloudConfig;
      default:
        return format === "json" ? this.#genericJson : this.#generic;
    }
  }

  #compile(text: string): Template {
    return this.#templates.get(text, (source) => compileTemplate(source, { sha256 }));
  }
}

/** @throws {BootError} broken, for a part that its Profile's status says more of than the store does. */
function assertUsable({ group, profile }: Machine, part: TemplatePart): void {
  const template = profile.content.templates[part];
  if (template?.kind !== "broken") return;
  const problem = template.withdrawn === true ? withdrawn(part) : unusable(part);
  throw new BootError("broken", { group: group.id, profile: profile.id, problem });
}

function unusable(part: TemplatePart): string {
  return `spec.${fieldOf(part)} cannot be used: the conditions of the Profile say why`;
}

function withdrawn(part: TemplatePart): string {
  const what = `the Secret of spec.${fieldOf(part)}, its key or its label`;
  return `${what} was taken away: the conditions of the Profile say which`;
}

function metadata(group: BootGroup, defaults: JsonObject | undefined, { labels, rawQuery }: ConfigRequest): Rendered {
  if (group.lines === undefined || group.defaults !== defaults) {
    group.lines = groupLines(group, defaults);
    group.defaults = defaults;
  }
  return renderMetadata(group.lines, labels, rawQuery);
}

function sha256(text: string): string {
  return hash("sha256", text, "hex");
}

/** Turns a renderer's complaint into the reason that a machine is refused for. */
function asBroken<Result>(
  subject: { readonly group: string; readonly profile?: string },
  render: () => Result,
): Result {
  try {
    return render();
  } catch (error) {
    if (error instanceof RenderError) throw new BootError("broken", { ...subject, cause: error });
    throw error;
  }
}
