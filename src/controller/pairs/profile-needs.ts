/** Finds the variables that a Profile's texts print for every request, and which of these a Group lacks. Pure. */

import { TextCache } from "../../lib/text/text-cache.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import type { GroupSpec } from "../../model/objects/group.ts";
import {
  bootTexts,
  fieldOf,
  installs,
  isOfSecret,
  type ProfileContent,
  partsOf,
  type ResolvedTemplate,
  type TemplatePart,
} from "../../model/objects/profile.ts";
import { RenderError, type RenderReason } from "../../render/core/render-error.ts";
import type { TextPosition } from "../../render/core/text-position.ts";
import type { RenderBudget } from "../../render/template/limits.ts";
import { TemplateNeeds, unknown, type VariableLookup } from "../../render/template/needs.ts";
import type { Samples } from "../core/machine-samples.ts";
import { sampleOf, sampleReportUrl } from "../core/machine-variables.ts";
import type { BootClient } from "../trials/trial-boot.ts";

/** A part of a Profile that fails for a Group with every request, mostly because a variable is not defined. */
export interface Lack {
  /** The part of the Profile that cannot be rendered. */
  readonly part: TemplatePart | BootClient;
  /** The template's field, such as `spec.boot.args[2]`. */
  readonly field: string;
  /** True if the field belongs to the Group; false if it belongs to the Group's Profile. */
  readonly isOfGroup: boolean;
  readonly reason: RenderReason;
  /**
   * The variable, if the reason is `undefinedVariable`. Undefined for a template from a Secret: its names stay hidden.
   */
  readonly variable: string | undefined;
  /** Undefined if there is no single place. */
  readonly at: TextPosition | undefined;
}

/** The members of a Group that rendering uses. */
export type Renderable = Pick<GroupSpec, "metadata" | "selector" | "args">;

// Parsing takes about 10 µs for each expression, on the thread that answers machines. Templates above these limits are
// left to the trials.
const maxLength = 256 * 1024;
const maxExpressions = 1_000;
const cacheBytes = 16 * 1024 * 1024;

interface NeedsOfText {
  readonly needs: TemplateNeeds | undefined;
}

/** Finds what templates need. Each text is parsed once while its result is cached. */
export class NeedsReader {
  readonly #sha256: (text: string) => string;
  readonly #ofConfigs = new TextCache<NeedsOfText>({ limitBytes: cacheBytes });
  readonly #ofBoot = new TextCache<NeedsOfText>({ limitBytes: cacheBytes });

  /** The variable `davit`. Templates may test it, so its URL is never empty. */
  readonly davit: JsonObject;
  /** The same for configs of a Profile with an `install`. */
  readonly davitOfInstall: JsonObject;

  constructor({ sha256, davitUrl }: { readonly sha256: (text: string) => string; readonly davitUrl: string }) {
    this.#sha256 = sha256;
    this.davit = { url: davitUrl };
    this.davitOfInstall = { url: davitUrl, report: sampleReportUrl(davitUrl) };
  }

  /** The needs of a text. Undefined if it has no tag, is too long, or is not a valid template. */
  read(text: string, seesRequest: boolean): TemplateNeeds | undefined {
    if (!text.includes("{{")) return undefined;
    const cache = seesRequest ? this.#ofConfigs : this.#ofBoot;
    return cache.get(text, () => ({ needs: this.#parsed(text, seesRequest) })).needs;
  }

  #parsed(text: string, seesRequest: boolean): TemplateNeeds | undefined {
    if (!isShortTemplate(text)) return undefined;
    try {
      return new TemplateNeeds(text, { sha256: this.#sha256, seesRequest });
    } catch (error) {
      if (error instanceof RenderError) return undefined;
      throw error;
    }
  }
}

/** True for a template that may be parsed on the thread that answers machines. */
export function isShortTemplate(text: string): boolean {
  return text.length <= maxLength && text.split("{{", maxExpressions + 2).length <= maxExpressions + 1;
}

/** Returns a Secret's text by its name in the store. Undefined if it is not in view: then davit skips the template. */
type SecretTextByName = (name: string) => string | undefined;

/** A config's template and its text. */
export interface ConfigText {
  readonly part: TemplatePart;
  readonly template: Exclude<ResolvedTemplate, { kind: "broken" }>;
  readonly text: string;
}

/** Where a template is. */
interface NeedyPlace {
  readonly part: TemplatePart | "boot";
  readonly field: string;
  readonly isSecret?: boolean;
}

/** A template, and what it needs. */
interface Needy extends NeedyPlace {
  readonly needs: TemplateNeeds;
}

/** The variables that one version of a Profile needs. */
export class ProfileNeeds {
  readonly #reader: NeedsReader;
  readonly #defaults: JsonObject;
  readonly #samples: Samples;
  readonly #davit: JsonObject;
  readonly #hasKernel: boolean;
  readonly #needy: readonly Needy[];
  readonly isInstall: boolean;

  constructor(content: ProfileContent, secretText: SecretTextByName, reader: NeedsReader, samples: Samples) {
    const { metadata = {}, boot } = content;
    this.#samples = samples;
    this.#davit = content.install === undefined ? reader.davit : reader.davitOfInstall;
    this.#reader = reader;
    this.#defaults = metadata;
    this.#hasKernel = boot?.kind === "kernel";
    this.isInstall = installs(content);
    this.#needy = [
      ...bootTexts(content).flatMap(([field, text]) =>
        needsOf(reader, text, { part: "boot", field: `spec.boot.${field}` }),
      ),
      ...textsOf(content, secretText).flatMap(({ part, template, text }) =>
        needsOf(reader, text, { part, field: `spec.${fieldOf(part)}`, isSecret: isOfSecret(template) }),
      ),
    ];
  }

  /**
   * Returns, for each text, the first variable that it needs and the Group lacks.
   * @throws {TooLongHere} when a short budget is used up.
   */
  lacks(group: Renderable, budget: RenderBudget): readonly Lack[] {
    const ofGroup = (this.#hasKernel ? (group.args ?? []) : []).flatMap((text, at) =>
      needsOf(this.#reader, text, { part: "boot", field: `spec.args[${at}]` }),
    );
    if (this.#needy.length + ofGroup.length === 0) return [];
    const given = { defaults: this.#defaults, samples: this.#samples };
    const inConfigs = lookupIn(group, { ...given, davit: this.#davit });
    const inTexts = lookupIn(group, { ...given, davit: this.#reader.davit });
    // As in `bootVariables`: boot texts see no `request`, even if a metadata key has that name.
    const inBoot: VariableLookup = (name) => (name === "request" ? undefined : inTexts(name));
    const lacksOf = (isOfGroup: boolean) => (each: Needy) => {
      const { part, field, needs, isSecret } = each;
      const absent = needs.absent(part === "boot" ? inBoot : inConfigs, budget);
      if (absent === undefined) return [];
      const variable = isSecret ? undefined : absent.name;
      return [{ part, field, isOfGroup, reason: "undefinedVariable" as const, variable, at: absent.at }];
    };
    return [...this.#needy.flatMap(lacksOf(false)), ...ofGroup.flatMap(lacksOf(true))];
  }
}

/**
 * The texts of a Profile's templates that are in view and not broken. Raw templates are left out: they are not
 * rendered, and they were checked when the Profile was read.
 */
export function textsOf({ templates }: ProfileContent, secretText: SecretTextByName): readonly ConfigText[] {
  return partsOf(templates).flatMap((part) => {
    const template = templates[part];
    if (template === undefined || template.kind === "broken" || template.raw) return [];
    const text = isOfSecret(template) ? secretText(template.sha256) : template.text;
    return text === undefined ? [] : [{ part, template, text }];
  });
}

/** The needs of a text and its place; empty if it needs nothing. Texts of the boot section see no request. */
function needsOf(reader: NeedsReader, text: string, { isSecret = false, ...place }: NeedyPlace): readonly Needy[] {
  const needs = reader.read(text, place.part !== "boot");
  return needs === undefined ? [] : [{ ...place, isSecret, needs }];
}

/**
 * Looks up variables in the same order as `templateVariables`, but does not copy the metadata. The order is: `davit`,
 * the selector's labels, the metadata of a Machine, the Group's metadata, the Profile's defaults, `machine`.
 */
function lookupIn(
  group: Renderable,
  {
    defaults,
    davit,
    samples,
  }: { readonly defaults: JsonObject; readonly davit: JsonObject; readonly samples: Samples },
): VariableLookup {
  const { metadata, selector } = group;
  const labels = new Map<string, JsonValue>(
    Object.entries(selector).map(([label, value]) => [label.toLowerCase(), value]),
  );
  return (name) => {
    if (name === "davit") return davit;
    if (labels.has(name)) return labels.get(name);
    if (sampleOf(name, samples, { selector, metadata: { ...defaults, ...metadata } }) !== undefined) return unknown;
    return own(Object.hasOwn(metadata, name) ? metadata : defaults, name);
  };
}

function own(values: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}
