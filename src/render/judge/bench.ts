/**
 * Compiles templates, reads what they need, and checks configs. Equal texts are handled once while their result is
 * cached. With a short budget, a text that takes long is left undecided.
 */

import { TextCache } from "../../lib/text/text-cache.ts";
import { parseJsonObject } from "../../model/json.ts";
import type { ResolvedTemplate, TemplatePart } from "../../model/objects/profile.ts";
import { rulesOf } from "../config/check-config.ts";
import { RenderError, renderErrorOf } from "../core/render-error.ts";
import { isLongTemplate, type RenderBudget } from "../template/limits.ts";
import { TemplateNeeds } from "../template/needs.ts";
import { compileTemplate, type Template } from "../template/template.ts";

export interface BenchOptions {
  /** Lower-case hex. */
  readonly sha256: (text: string) => string;
  /** Where machines reach davit. */
  readonly davitUrl: string;
  /** The size of the texts that each of its caches keeps. */
  readonly cacheBytes?: number;
}

/** The text of a config: a template, or a raw document. */
export interface ConfigText {
  readonly part: TemplatePart;
  readonly template: Exclude<ResolvedTemplate, { kind: "broken" }>;
  readonly text: string;
}

const presetCacheBytes = 8 * 1024 * 1024;
/** Units of the budget for each character of YAML, which takes 2 to 5 µs to parse. */
const yamlWork = 100;
/** In characters. Parsing this many takes about 40 ms, the most that one text may take. */
const maxYamlLength = 8 * 1024;

/** There is no verdict: the result depends on the request, or the text is too long for a short budget. */
export class Undecided extends Error {
  override readonly name = "Undecided";
}

export class Bench {
  readonly options: BenchOptions;
  readonly #templates: TextCache<Template>;
  readonly #needsOfConfigs: TextCache<{ readonly needs: TemplateNeeds | undefined }>;
  readonly #needsOfBoot: TextCache<{ readonly needs: TemplateNeeds | undefined }>;
  readonly #checked: TextCache<{ readonly error: RenderError | undefined }>;

  constructor(options: BenchOptions) {
    this.options = options;
    const { cacheBytes: limitBytes = presetCacheBytes } = options;
    this.#templates = new TextCache({ limitBytes });
    this.#needsOfConfigs = new TextCache({ limitBytes: 2 * limitBytes });
    this.#needsOfBoot = new TextCache({ limitBytes: 2 * limitBytes });
    this.#checked = new TextCache({ limitBytes });
  }

  /**
   * Compiles a template; its functions use the budget.
   * @param budget a short one; undefined for full limits.
   * @throws {Undecided} for a template that is long for the budget. @throws {RenderError} for one with a mistake.
   */
  template(text: string, budget: RenderBudget | undefined): Template {
    if (budget !== undefined && isLongTemplate(text)) throw new Undecided();
    const { render, pieces, origin } = this.#templates.get(text, () => compileTemplate(text, this.options));
    return {
      render: (variables) => render(variables, budget),
      pieces: (variables) => pieces(variables, budget),
      origin,
    };
  }

  /** The needs of a text. Undefined if it has no tag, is no valid template, or is long and `isShort` is set. */
  needs(text: string, seesRequest: boolean, isShort: boolean): TemplateNeeds | undefined {
    if (!text.includes("{{") || (isShort && isLongTemplate(text))) return undefined;
    const cache = seesRequest ? this.#needsOfConfigs : this.#needsOfBoot;
    return cache.get(text, () => ({ needs: this.#readNeeds(text, seesRequest) })).needs;
  }

  #readNeeds(text: string, seesRequest: boolean): TemplateNeeds | undefined {
    try {
      return new TemplateNeeds(text, { sha256: this.options.sha256, seesRequest });
    } catch (error) {
      if (error instanceof RenderError) return undefined;
      throw error;
    }
  }

  /**
   * Checks a config.
   * @param budget a short one; undefined for full limits.
   * @throws {RenderError} for a config answered 500. @throws {Undecided} for a text that is long for the budget.
   * @throws {TooLongHere}
   */
  check({ part, template }: ConfigText, text: string, budget: RenderBudget | undefined): void {
    budget?.work(text.length);
    const { error } = this.#checked.get(`${part} ${template.raw} ${template.format ?? ""} ${text}`, () => {
      budget?.count(checkWork(part, text));
      return { error: renderErrorOf(() => rulesOf(part).check(template)(text)) };
    });
    if (error !== undefined) throw error;
  }
}

/** Units of a short budget for checking a config. @throws {Undecided} for a long text. */
function checkWork(part: TemplatePart, text: string): number {
  if (rulesOf(part).isYaml(text)) {
    if (text.length > maxYamlLength) throw new Undecided();
    return text.length * yamlWork;
  }
  // davit may parse broken Ignition JSON as YAML, too.
  const isBroken = part === "ignition" && parseJsonObject(text) === undefined;
  return text.length + (isBroken ? Math.min(text.length, maxYamlLength) * yamlWork : 0);
}
