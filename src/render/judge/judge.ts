/**
 * Judges one version of a Profile for its Groups: which parts fail, and whether they fail for every request. There are
 * two ways. `names` compares names of variables, which takes milliseconds for thousands of Groups. `renders` renders,
 * which costs more. With a short budget, both leave out what takes long and what depends on the machine. So each fault
 * that they report occurs with every request. Trials use the same code with full limits and a sample request.
 */

import type { JsonObject, JsonValue } from "../../model/json.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { GroupSpec } from "../../model/objects/group.ts";
import {
  bootTexts,
  fieldOf,
  installs,
  isOfSecret,
  loaders,
  type ProfileContent,
  partsOf,
  type TemplatePart,
} from "../../model/objects/profile.ts";
import { sampleIdentity } from "../../model/selection/sample-machine.ts";
import { type RenderError, type RenderReason, renderErrorOf } from "../core/render-error.ts";
import type { TextPosition } from "../core/text-position.ts";
import { RenderBudget } from "../template/limits.ts";
import { type TemplateNeeds, unknown, type VariableLookup } from "../template/needs.ts";
import { RequestReads } from "../template/request-reads.ts";
import type { Template, Variables } from "../template/template.ts";
import { bootVariables, type TemplateScope, templateVariables } from "../template/variables.ts";
import { type Bench, type ConfigText, Undecided } from "./bench.ts";
import { type BootClient, bootFaults } from "./boot-faults.ts";

/** The members of a Group that rendering uses. */
export type Renderable = Pick<GroupSpec, "metadata" | "selector" | "args">;

/** A part of a Profile that fails for a Group. */
export interface PartFault {
  readonly part: TemplatePart | BootClient;
  /** The faulty field, such as `spec.boot.args[2]`. */
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
  /** True if the part fails with every request of the Group's machines. */
  readonly isCertain: boolean;
  /** Set if only machines that boot by GRUB meet the fault, and none by iPXE. */
  readonly isAdvice?: true;
}

/** A config that fails, or its text. `origin` returns the place in the template of a place in the text. */
type JudgedConfig =
  | { readonly fault: PartFault }
  | { readonly text: string; readonly origin: (at: TextPosition) => TextPosition | undefined };

interface JudgeOptions {
  readonly content: ProfileContent;
  /** Returns a Secret's text by its name in the store. Undefined if it is not in view: then the template is skipped. */
  readonly secretText: (name: string) => string | undefined;
  /** What Machines may define. */
  readonly samples: Samples;
  readonly bench: Bench;
}

/** Units of a short budget for each Group, besides those for its texts. */
const groupWork = 300;
/** Units of a short budget for each boot section, besides those for its texts. */
const bootWork = 1_500;

/** A template and its place, with what it needs. */
interface Needy {
  readonly part: TemplatePart | "boot";
  readonly field: string;
  readonly isSecret: boolean;
  readonly needs: TemplateNeeds;
}

export class Judge {
  readonly isInstall: boolean;
  /** The texts in view of the templates that are not broken. */
  readonly configs: ReadonlyMap<TemplatePart, ConfigText>;
  readonly #options: JudgeOptions;
  readonly #bootLength: number;
  #needy: readonly Needy[] | undefined;

  constructor(options: JudgeOptions) {
    const { content, secretText } = options;
    this.#options = options;
    this.isInstall = installs(content);
    this.configs = new Map(textsOf(content, secretText).map((config) => [config.part, config]));
    this.#bootLength = bootTexts(content).reduce((sum, [, text]) => sum + text.length, 0);
  }

  /**
   * Returns, for each text, the first variable that it needs and the Group lacks.
   * @throws {TooLongHere} when a short budget is used up.
   */
  names(group: Renderable, budget: RenderBudget): readonly PartFault[] {
    this.#needy ??= this.#readNeedy();
    const hasKernel = this.#options.content.boot?.kind === "kernel";
    const ofGroup = (hasKernel ? (group.args ?? []) : []).flatMap((text, at) =>
      this.#needsOf({ part: "boot", field: `spec.args[${at}]`, text }),
    );
    if (this.#needy.length + ofGroup.length === 0) return [];
    const lookup = this.#lookupIn(group);
    const inConfigs = this.#ofConfigs(lookup);
    // As in `bootVariables`: boot texts see no `request`, even if a metadata key has that name.
    const inBoot: VariableLookup = (name) => (name === "request" ? undefined : lookup(name));
    const faultsOf = (isOfGroup: boolean) => (each: Needy) =>
      absentIn(each, isOfGroup, (needs) => needs.absent(each.part === "boot" ? inBoot : inConfigs, budget));
    return [...this.#needy.flatMap(faultsOf(false)), ...ofGroup.flatMap(faultsOf(true))];
  }

  /**
   * Returns the faults that occur with every request of a Group's machines.
   * @throws {TooLongHere} when a short budget is used up.
   */
  renders(group: Renderable, budget: RenderBudget): readonly PartFault[] {
    budget.count(groupWork);
    const labels = new Map([...sampleIdentity, ...Object.entries(group.selector)]);
    const boot = decided(() => this.boot(group, labels, budget).flatMap(forEachClient));
    const configs = [...this.configs.values()].filter(({ template }) => !template.raw);
    if (configs.length === 0) return boot;
    const variables = this.variables(group, { labels: new Map(), rawQuery: "" }, readsWithin(budget));
    const faultsOf = (config: ConfigText) => {
      const judged = this.config(config, variables, budget);
      return "fault" in judged ? [{ ...judged.fault, isCertain: true }] : [];
    };
    return [...boot, ...configs.flatMap((config) => decided(() => faultsOf(config)))];
  }

  /**
   * Returns the faults of what iPXE and GRUB get. A boot section does not depend on the request.
   * @param labels what the machine reports about itself.
   * @param budget a short one; undefined for full limits.
   */
  boot(group: Renderable, labels: Labels, budget?: RenderBudget): readonly PartFault[] {
    const { content, bench } = this.#options;
    const { boot, grubScript, metadata: defaults } = content;
    if (boot?.kind === "broken" || (boot === undefined && grubScript === undefined)) return [];
    const { args = [] } = group;
    budget?.count(bootWork + this.#bootLength + args.reduce((sum, text) => sum + text.length, 0));
    const reads = readsWithin(budget);
    const own = bootVariables({ group, defaults, davitUrl: bench.options.davitUrl });
    const variables = this.#withSamples(own, group, reads);
    const compile = (text: string) => bench.template(text, budget);
    const found = bootFaults({ content, args, variables, labels, compile });
    return found.map(({ client, error, field, isOfGroup = false, isAdvice }) => {
      const place = { part: client, field, isOfGroup, isSecret: false };
      return { ...faultOf(place, error), isCertain: !reads.isAny, ...(isAdvice && { isAdvice }) };
    });
  }

  /**
   * Judges a config. Its fault does not say whether it is certain: `variables` report to their reads.
   * @param variables as `variables` returns them.
   * @param budget a short one; undefined for full limits.
   */
  config(config: ConfigText, variables: Variables, budget?: RenderBudget): JudgedConfig {
    const { bench } = this.#options;
    const { template, text } = config;
    let compiled: Template | undefined;
    let result = text;
    const error = renderErrorOf(() => {
      if (!template.raw && text.includes("{{")) compiled = bench.template(text, budget);
      result = compiled?.render(variables) ?? text;
      bench.check(config, result, budget);
    });
    const origin = (at: TextPosition) => (compiled === undefined ? at : compiled.origin(variables, at));
    if (error === undefined) return { text: result, origin };
    const { position, isOfResult } = error;
    const at = isOfResult && position ? origin(position) : position;
    return { fault: { ...faultOf({ ...placeOf(config), isOfGroup: false }, error), at } };
  }

  /**
   * Finds a variable that a config prints for every request, and that nothing defines. Rendering alone might not find
   * it, because it stops at the first undefined variable. That may be one that only the sample request lacks.
   */
  absent(config: ConfigText, group: Renderable): PartFault | undefined {
    const needs = config.template.raw ? undefined : this.#options.bench.needs(config.text, true, false);
    if (needs === undefined) return undefined;
    const lookup = this.#ofConfigs(this.#lookupIn(group));
    return absentIn({ ...placeOf(config), needs }, false, () => needs.absent(lookup, new RenderBudget()))[0];
  }

  /** The variables of configs. @param reads records what a template reads of the request and of Machines. */
  variables(group: Renderable, asked: Pick<TemplateScope, "labels" | "rawQuery">, reads: RequestReads): Variables {
    const { content, bench } = this.#options;
    const { davitUrl } = bench.options;
    const report = content.install === undefined ? {} : { reportUrl: sampleReportUrl(davitUrl) };
    const scope = { group, defaults: content.metadata, ...asked, davitUrl, ...report };
    return this.#withSamples(templateVariables(scope, reads), group, reads);
  }

  #withSamples(variables: Variables, group: Renderable, reads: RequestReads): Variables {
    return withSamples(variables, this.#options.samples, this.#given(group), () => reads.note());
  }

  #given({ selector, metadata }: Renderable) {
    return { selector, metadata: { ...this.#options.content.metadata, ...metadata } };
  }

  #readNeedy(): readonly Needy[] {
    const { content } = this.#options;
    return [
      ...bootTexts(content).flatMap(([field, text]) =>
        this.#needsOf({ part: "boot", field: `spec.boot.${field}`, text }),
      ),
      ...[...this.configs.values()].flatMap((config) =>
        config.template.raw ? [] : this.#needsOf({ ...placeOf(config), text: config.text }),
      ),
    ];
  }

  /** The needs of a text and its place; empty if it needs nothing. Texts of the boot section see no request. */
  #needsOf({
    text,
    isSecret = false,
    ...place
  }: Omit<Needy, "needs" | "isSecret"> & { readonly text: string; readonly isSecret?: boolean }): readonly Needy[] {
    const needs = this.#options.bench.needs(text, place.part !== "boot", true);
    return needs === undefined ? [] : [{ ...place, isSecret, needs }];
  }

  /** Looks up the variables of configs: those of an install have `davit.report`. */
  #ofConfigs(lookup: VariableLookup): VariableLookup {
    const { content, bench } = this.#options;
    const { davitUrl: url } = bench.options;
    if (content.install === undefined) return lookup;
    return (name) => (name === "davit" ? { url, report: sampleReportUrl(url) } : lookup(name));
  }

  /**
   * Looks up variables in the same order as `templateVariables`, but does not copy the metadata. The order is: `davit`,
   * the selector's labels, the metadata of a Machine, the Group's metadata, the Profile's defaults, `machine`.
   */
  #lookupIn(group: Renderable): VariableLookup {
    const { samples, content, bench } = this.#options;
    const { metadata: defaults = {} } = content;
    const { metadata, selector } = group;
    const labels = new Map<string, JsonValue>(
      Object.entries(selector).map(([label, value]) => [label.toLowerCase(), value]),
    );
    return (name) => {
      // Templates may test it, so its URL is never empty.
      if (name === "davit") return { url: bench.options.davitUrl };
      if (labels.has(name)) return labels.get(name);
      // What Machines define has no value that holds for all machines.
      if (sampleOf(name, samples, this.#given(group)) !== undefined) return unknown;
      return own(Object.hasOwn(metadata, name) ? metadata : defaults, name);
    };
  }
}

/** The texts of a Profile's templates that are in view and not broken. */
function textsOf({ templates }: ProfileContent, secretText: JudgeOptions["secretText"]): readonly ConfigText[] {
  return partsOf(templates).flatMap((part) => {
    const template = templates[part];
    if (template === undefined || template.kind === "broken") return [];
    const text = isOfSecret(template) ? secretText(template.sha256) : template.text;
    return text === undefined ? [] : [{ part, template, text }];
  });
}

function placeOf({ part, template }: ConfigText) {
  return { part, field: `spec.${fieldOf(part)}`, isSecret: isOfSecret(template) };
}

function absentIn(
  { part, field, isSecret, needs }: Needy,
  isOfGroup: boolean,
  search: (needs: TemplateNeeds) => ReturnType<TemplateNeeds["absent"]>,
): readonly PartFault[] {
  const absent = search(needs);
  if (absent === undefined) return [];
  const variable = isSecret ? undefined : absent.name;
  return [{ part, field, isOfGroup, reason: "undefinedVariable", variable, at: absent.at, isCertain: true }];
}

interface PartPlace extends Pick<PartFault, "part" | "field" | "isOfGroup"> {
  readonly isSecret: boolean;
}

function faultOf({ isSecret, ...place }: PartPlace, { reason, variable, position: at }: RenderError): PartFault {
  return { ...place, reason, variable: isSecret ? undefined : variable, at, isCertain: false };
}

/** A fault of both clients, as one of each. */
function forEachClient(fault: PartFault): readonly PartFault[] {
  return fault.part === "boot" ? loaders.map((part) => ({ ...fault, part })) : [fault];
}

/** With a short budget, rendering ends as soon as a template reads the request: there is no time for a sample. */
function readsWithin(budget: RenderBudget | undefined): RequestReads {
  if (budget === undefined) return new RequestReads();
  return new RequestReads(() => {
    throw new Undecided();
  });
}

function decided(judge: () => readonly PartFault[]): readonly PartFault[] {
  try {
    return judge();
  } catch (error) {
    if (error instanceof Undecided) return [];
    throw error;
  }
}

function own(values: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

/** Sample values by the names of variables. */
export type Samples = Readonly<Record<string, JsonValue>>;

// A Machine's metadata never replaces these.
const reserved: ReadonlySet<string> = new Set(["davit", "request"]);

/** Returns the sample of a variable; undefined if no Machine defines it for a Group with these labels and metadata. */
function sampleOf(
  name: string,
  samples: Samples,
  { selector, metadata }: { readonly selector: Samples; readonly metadata: Samples },
): JsonValue | undefined {
  if (reserved.has(name) || !Object.hasOwn(samples, name)) return undefined;
  // The selector's labels come last, and `machine` comes first.
  if (Object.keys(selector).some((label) => label.toLowerCase() === name)) return undefined;
  return name === "machine" && Object.hasOwn(metadata, name) ? undefined : samples[name];
}

/**
 * Replaces variables by the samples of Machines.
 * @param noteRead is called when a template reads one: its result differs from machine to machine.
 */
function withSamples<Variables extends object>(
  variables: Variables,
  samples: Samples,
  group: { readonly selector: Samples; readonly metadata: Samples },
  noteRead: () => void,
): Variables {
  for (const name of Object.keys(samples)) {
    const value = sampleOf(name, samples, group);
    if (value === undefined) continue;
    const get = () => {
      noteRead();
      return value;
    };
    Object.defineProperty(variables, name, { enumerable: true, configurable: true, get });
  }
  return variables;
}

/** The URL of `{{davit.report}}` in trials. Each machine gets another one. */
function sampleReportUrl(davitUrl: string): string {
  return `${davitUrl}/report/${"A".repeat(32)}`;
}
