/**
 * Renders a Profile's parts for a Group, within a budget, and finds the parts that fail with every request. It leaves
 * long templates, and templates that read `request` or what Machines may define, to the trials. So each failure that it
 * reports occurs with every request.
 */

import { TextCache } from "../../lib/text/text-cache.ts";
import { parseJsonObject } from "../../model/json.ts";
import { bootTexts, fieldOf, isOfSecret, type ProfileContent, type TemplatePart } from "../../model/objects/profile.ts";
import { rulesOf } from "../../render/config/check-config.ts";
import { type RenderError, renderErrorOf } from "../../render/core/render-error.ts";
import type { TextPosition } from "../../render/core/text-position.ts";
import type { RenderBudget } from "../../render/template/limits.ts";
import { RequestReads } from "../../render/template/request-reads.ts";
import { compileTemplate, type Template, type Variables } from "../../render/template/template.ts";
import { bootVariables, templateVariables } from "../../render/template/variables.ts";
import type { Samples } from "../core/machine-samples.ts";
import { sampleReportUrl, withSamples } from "../core/machine-variables.ts";
import { samples } from "../ranking/sample-labels.ts";
import { bootFaults } from "../trials/trial-boot.ts";
import { type ConfigText, isShortTemplate, type Lack, type Renderable, textsOf } from "./profile-needs.ts";

export interface RendersOptions {
  readonly sha256: (text: string) => string;
  /** Where machines reach davit. */
  readonly davitUrl: string;
}

const cacheBytes = 8 * 1024 * 1024;
/** Units of the budget for each Group, besides those for its texts. */
const groupWork = 300;
/** Units of the budget for each boot section, besides those for its texts. */
const bootWork = 1_500;
/** Units of the budget for each character of YAML, which takes 2 to 5 µs to parse. */
const yamlWork = 100;
/** In characters. Parsing this many takes about 40 ms, the most that one text may take. */
const maxYamlLength = 8 * 1024;

/** There is no verdict: the result depends on the request, or the text is too long. */
class Undecided extends Error {
  override readonly name = "Undecided";
}

/** Compiles templates and checks configs. Equal texts are handled once while their result is cached. */
export class RendersBench {
  readonly options: RendersOptions;
  readonly #templates = new TextCache<Template>({ limitBytes: cacheBytes });
  readonly #checked = new TextCache<{ readonly error: RenderError | undefined }>({ limitBytes: cacheBytes });

  constructor(options: RendersOptions) {
    this.options = options;
  }

  /**
   * Compiles a template; its functions use the budget.
   * @throws {Undecided} for a long template. @throws {RenderError} for a template with a mistake.
   */
  template(text: string, budget: RenderBudget): Template {
    if (!isShortTemplate(text)) throw new Undecided();
    const { render, pieces, origin } = this.#templates.get(text, () => compileTemplate(text, this.options));
    return {
      render: (variables) => render(variables, budget),
      pieces: (variables) => pieces(variables, budget),
      origin,
    };
  }

  /**
   * Checks a rendered config.
   * @throws {RenderError} for a config answered 500. @throws {Undecided} for a long text. @throws {TooLongHere}
   */
  check({ part, template }: ConfigText, text: string, budget: RenderBudget): void {
    budget.work(text.length);
    const { error } = this.#checked.get(`${part} ${template.format ?? ""} ${text}`, () => {
      budget.count(checkWork(part, text));
      return { error: renderErrorOf(() => rulesOf(part).check(template)(text)) };
    });
    if (error !== undefined) throw error;
  }
}

/** Renders one version of a Profile. */
export class ProfileRenders {
  readonly #content: ProfileContent;
  readonly #configs: readonly ConfigText[];
  readonly #bench: RendersBench;
  readonly #bootLength: number;
  readonly #samples: Samples;

  /** @param secretText returns a Secret's text by its name in the store. Without it, a template is skipped. */
  constructor(
    content: ProfileContent,
    secretText: (name: string) => string | undefined,
    bench: RendersBench,
    samples: Samples,
  ) {
    this.#samples = samples;
    this.#content = content;
    this.#configs = textsOf(content, secretText);
    this.#bench = bench;
    this.#bootLength = bootTexts(content).reduce((sum, [, text]) => sum + text.length, 0);
  }

  /**
   * The failures that occur with every request of a Group's machines.
   * @throws {TooLongHere} when a short budget is used up.
   */
  lacks(group: Renderable, budget: RenderBudget): readonly Lack[] {
    budget.count(groupWork);
    const boot = decided(() => this.#boot(group, budget));
    if (this.#configs.length === 0) return boot;
    const { metadata: defaults } = this.#content;
    const { davitUrl } = this.#bench.options;
    const reads = new UnreadRequest();
    const report = this.#content.install === undefined ? {} : { reportUrl: sampleReportUrl(davitUrl) };
    const request = { labels: new Map<string, string>(), rawQuery: "" };
    const variables = this.#withSamples(
      templateVariables({ group, defaults, ...request, davitUrl, ...report }, reads),
      group,
      reads,
    );
    return [...boot, ...this.#configs.flatMap((config) => decided(() => this.#config(config, variables, budget)))];
  }

  #boot(group: Renderable, budget: RenderBudget): readonly Lack[] {
    const { boot, grubScript, metadata: defaults } = this.#content;
    if (boot?.kind === "broken" || (boot === undefined && grubScript === undefined)) return [];
    const { args = [], selector } = group;
    budget.count(bootWork + this.#bootLength + args.reduce((sum, text) => sum + text.length, 0));
    const { davitUrl } = this.#bench.options;
    const variables = this.#withSamples(bootVariables({ group, defaults, davitUrl }), group, new UnreadRequest());
    const labels = new Map([...samples, ...Object.entries(selector)]);
    const compile = (text: string) => this.#bench.template(text, budget);
    const faults = bootFaults({ content: this.#content, args, variables, labels, compile });
    return faults.flatMap(({ client, error, field, isOfGroup = false }) => {
      const parts = client === "boot" ? (["ipxe", "grub"] as const) : [client];
      return parts.map((part) => lackOf({ part, field, isOfGroup }, error));
    });
  }

  #withSamples(variables: Variables, { selector, metadata }: Renderable, reads: RequestReads): Variables {
    const own = { selector, metadata: { ...this.#content.metadata, ...metadata } };
    return withSamples(variables, this.#samples, own, () => reads.note());
  }

  #config(config: ConfigText, variables: Variables, budget: RenderBudget): readonly Lack[] {
    const { part, template, text } = config;
    const place = { part, field: `spec.${fieldOf(part)}`, isOfGroup: false, isSecret: isOfSecret(template) };
    let compiled: Template | undefined;
    const error = renderErrorOf(() => {
      if (text.includes("{{")) compiled = this.#bench.template(text, budget);
      this.#bench.check(config, compiled?.render(variables) ?? text, budget);
    });
    if (error === undefined) return [];
    const { position, isOfResult } = error;
    return [lackOf(place, error, isOfResult && position ? compiled?.origin(variables, position) : position)];
  }
}

/** Ends the rendering of a template as soon as the template reads the request. */
class UnreadRequest extends RequestReads {
  constructor() {
    super(() => {
      throw new Undecided();
    });
  }
}

function decided(look: () => readonly Lack[]): readonly Lack[] {
  try {
    return look();
  } catch (error) {
    if (error instanceof Undecided) return [];
    throw error;
  }
}

function lackOf(
  { isSecret = false, ...place }: Pick<Lack, "part" | "field" | "isOfGroup"> & { readonly isSecret?: boolean },
  { reason, variable, position }: RenderError,
  at: TextPosition | undefined = position,
): Lack {
  return { ...place, reason, variable: isSecret ? undefined : variable, at };
}

/** Units of the budget for checking a config. @throws {Undecided} for a long text. */
function checkWork(part: TemplatePart, text: string): number {
  if (rulesOf(part).isYaml(text)) {
    if (text.length > maxYamlLength) throw new Undecided();
    return text.length * yamlWork;
  }
  // davit may parse broken Ignition JSON as YAML, too.
  const isBroken = part === "ignition" && parseJsonObject(text) === undefined;
  return text.length + (isBroken ? Math.min(text.length, maxYamlLength) * yamlWork : 0);
}
