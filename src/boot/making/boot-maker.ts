/**
 * Makes answers from a Group, its Profile and a request. The caller passes all three. So the same code runs on the
 * thread that answers machines and on the thread for slow configs.
 */

import { unreachable } from "../../lib/errors.ts";
import { TextCache } from "../../lib/text/text-cache.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { type Boot, type GenericFormat, type TemplatePart, withArguments } from "../../model/objects/profile.ts";
import { type FilledBoot, renderBoot } from "../../render/boot/boot.ts";
import { type GrubSource, renderGrubScript, renderIpxeScript } from "../../render/boot/own-scripts.ts";
import { type ConfigCheck, rulesOf } from "../../render/config/check-config.ts";
import { RenderError } from "../../render/core/render-error.ts";
import { counted, type Rendered } from "../../render/core/rendered.ts";
import { answering } from "../../render/grub/waiting.ts";
import { renderIpxe } from "../../render/ipxe/ipxe.ts";
import { type GroupLines, groupLines, openLineCount, renderMetadata } from "../../render/metadata/metadata.ts";
import { isLongTemplate, RenderBudget, TooLongHere } from "../../render/template/limits.ts";
import type { RequestReads } from "../../render/template/request-reads.ts";
import { compileTemplate, type Template } from "../../render/template/template.ts";
import { bootVariables, templateVariables } from "../../render/template/variables.ts";

/** The input of every job. */
interface MakerScope {
  readonly group: {
    readonly metadata: JsonObject;
    readonly selector: Readonly<Record<string, string>>;
    readonly machine?: JsonObject | undefined;
  };
  /** The Profile's metadata. */
  readonly defaults: JsonObject | undefined;
  /** Where machines reach davit, such as `http://192.0.2.1:8080`. */
  readonly davitUrl: string;
}

/** The machine's request, for jobs that can read it. */
interface Asking {
  readonly labels: Labels;
  /** The query as sent, without the `?`. */
  readonly rawQuery: string;
}

export interface PartJob extends MakerScope, Asking {
  readonly kind: "part";
  readonly part: TemplatePart;
  readonly text: string;
  readonly raw: boolean;
  readonly format?: GenericFormat | undefined;
  /** See `TemplateScope`. */
  readonly reportUrl?: string | undefined;
}

interface IpxeJob extends MakerScope {
  readonly kind: "ipxe";
  readonly boot: Boot;
  /** The Group's own arguments. */
  readonly args: readonly string[];
}

export interface GrubJob extends MakerScope {
  readonly kind: "grub";
  /** A boot section, or the Profile's own config. */
  readonly boot: Exclude<Boot, { readonly kind: "script" }> | { readonly kind: "config"; readonly config: string };
  readonly args: readonly string[];
}

interface MetadataJob extends MakerScope, Asking {
  readonly kind: "metadata";
}

export type BootJob = PartJob | IpxeJob | GrubJob | MetadataJob;

export interface Made {
  /** The answer. Set for a part, for an iPXE script, and for metadata whose lines are not cached. */
  readonly rendered?: Rendered | undefined;
  /** For GRUB: davit makes the config of each request from this. */
  readonly source?: GrubSource;
  /** For metadata: davit makes the answer to each request from this. */
  readonly lines?: GroupLines;
}

/**
 * The cache's limit in bytes of template text: two for each character. The cache has room for 32 templates of the
 * largest size (1 MiB), or for 15,000 of the usual 2 KiB. A compiled template takes about ten times its text, so a full
 * cache takes well under 1 GiB.
 */
const templateCacheBytes = 64 * 1024 * 1024;

/** In the units of `RenderBudget`: about 10 ms, the longest time that one request may delay all others. */
const shortWork = 300_000;
/**
 * The longest results that the main thread checks, in characters. Checking one takes about 15 ms for YAML, and 3 ms for
 * JSON.
 */
const shortResult = { yaml: 8 * 1024, json: 256 * 1024 };
/**
 * The most lines of metadata to compare with each request. Metadata with more of these lines is not cached: davit
 * renders it again for each request.
 */
const maxKeptLines = 2_000;

/** Returns the budget for work on the thread that answers machines. More work throws TooLongHere. */
export function shortBudget(): RenderBudget {
  return new RenderBudget(shortWork);
}

export class BootMaker {
  readonly #sha256: (text: string) => string;
  readonly #templates = new TextCache<Template>({ limitBytes: templateCacheBytes });
  readonly #checked = new Map<ConfigCheck, CheckedTexts>();

  /** @param options.sha256 returns the hash of a text in lower-case hexadecimal. */
  constructor({ sha256 }: { readonly sha256: (text: string) => string }) {
    this.#sha256 = sha256;
  }

  /**
   * Does a job.
   * @param reads records what the job reads of the request. If it reads nothing, every request gets the same result.
   * @throws {RenderError} for a template or result that cannot be used.
   * @throws {TooLongHere} if the budget is short and the job takes longer.
   */
  make(job: BootJob, budget: RenderBudget, reads: RequestReads): Made {
    switch (job.kind) {
      case "part":
        return { rendered: this.#part(job, budget, reads) };
      case "ipxe":
        return { rendered: this.#ipxe(job, budget) };
      case "grub":
        return { source: this.#grub(job, budget) };
      case "metadata":
        return metadata(job, budget, reads);
      default:
        return unreachable(job);
    }
  }

  /** Takes over the result of another thread's check of a raw text. */
  learn(job: BootJob, { rendered }: Made): void {
    if (job.kind === "part" && job.raw && rendered !== undefined) this.#checksOf(job).learn(job.text, rendered);
  }

  #part(job: PartJob, budget: RenderBudget, reads: RequestReads): Rendered {
    const variables = () => partVariables(job, budget, reads);
    const text = job.raw ? job.text : this.#compile(job.text, budget).render(variables(), budget, reads);
    const checks = this.#checksOf(job);
    if (budget.isShort && isLong(job, text) && !checks.has(text)) throw new TooLongHere();
    const rendered = checks.get(text);
    // YAML for Ignition is served as JSON: as one line, which begins with a brace. GRUB drops such a line as a whole.
    if (reads.parts.length === 0 || rendered.body !== text) return rendered;
    // A copy: the original stays cached for other requests.
    return { ...rendered, ofRequest: reads.parts };
  }

  #ipxe(job: IpxeJob, budget: RenderBudget): Rendered | undefined {
    const { boot } = job;
    if (boot.kind === "script") return renderIpxeScript(boot.script, ...this.#scriptTools(job, budget));
    return renderIpxe(this.#fill(boot, job, budget));
  }

  #grub(job: GrubJob, budget: RenderBudget): GrubSource {
    const { boot } = job;
    if (boot.kind !== "config") return this.#fill(boot, job, budget);
    const script = renderGrubScript(boot.config, ...this.#scriptTools(job, budget));
    return { kind: "config", config: { ...script, body: answering(script.body) } };
  }

  #fill(boot: Exclude<Boot, { readonly kind: "script" }>, job: IpxeJob | GrubJob, budget: RenderBudget): FilledBoot {
    if (boot.kind === "local") return boot;
    return renderBoot(withArguments(boot, job.args), ...this.#scriptTools(job, budget));
  }

  /** Returns the variables and the compiler for a job. All texts of a boot section share one budget. */
  #scriptTools(job: IpxeJob | GrubJob, budget: RenderBudget) {
    budget.count(namesOf(job));
    const compile = (text: string) => {
      const template = this.#compile(text, budget);
      return { ...template, pieces: (variables: JsonObject) => template.pieces(variables, budget) };
    };
    return [bootVariables(job), compile] as const;
  }

  #checksOf(job: PartJob): CheckedTexts {
    const check = rulesOf(job.part).check(job);
    const known = this.#checked.get(check) ?? new CheckedTexts(check);
    this.#checked.set(check, known);
    return known;
  }

  #compile(text: string, budget: RenderBudget): Template {
    return this.#templates.get(text, (source) => {
      if (budget.isShort && isLongTemplate(source)) throw new TooLongHere();
      return compileTemplate(source, { sha256: this.#sha256 });
    });
  }
}

/** True for a result whose check takes long. */
function isLong({ part }: PartJob, text: string): boolean {
  return text.length > (rulesOf(part).isYaml(text) ? shortResult.yaml : shortResult.json);
}

function partVariables(job: PartJob, budget: RenderBudget, reads: RequestReads) {
  budget.count(namesOf(job));
  return templateVariables(job, reads);
}

/** Returns how many top-level names the metadata and its defaults have. Rendering copies all of them. */
function namesOf({ group, defaults = {} }: MakerScope): number {
  return Object.keys(group.metadata).length + Object.keys(defaults).length;
}

function metadata(job: MetadataJob, budget: RenderBudget, reads: RequestReads): Made {
  const lines = groupLines(job.group, job.defaults, budget);
  if (openLineCount(lines) <= maxKeptLines) return { lines };
  reads.note();
  return { rendered: renderMetadata(lines, job.labels, job.rawQuery) };
}

/**
 * Each cache has room for four YAML texts of the largest size (1 MiB, counted as 2 MiB), or for a thousand texts of 4
 * KiB. There is one cache for each check.
 */
const checkedBytes = 8 * 1024 * 1024;

/**
 * Caches the results of checking rendered texts, good or bad. Parsing JSON takes longer than rendering it. Parsing YAML
 * takes one to two seconds for each MiB. After a power-on, the machines of a rack ask for equal texts at the same time.
 * Machines with a broken config ask again and again.
 */
export class CheckedTexts {
  readonly #check: (text: string) => Rendered;
  readonly #verdicts = new TextCache<Rendered | RenderError>({ limitBytes: checkedBytes });

  /** @param check must always give the same result for the same text. */
  constructor(check: (text: string) => Rendered) {
    this.#check = check;
  }

  /**
   * Returns the result of `check` for a text, cached or new.
   * @throws {RenderError} the error of `check` for this text, cached or new.
   */
  get(text: string): Rendered {
    const verdict = this.#verdicts.get(text, (unknown) => this.#judge(unknown));
    if (verdict instanceof RenderError) throw verdict;
    return verdict;
  }

  /** True if the result for a text is cached. */
  has(text: string): boolean {
    return this.#verdicts.has(text);
  }

  /** Takes over the result of the same check in another thread. */
  learn(text: string, rendered: Rendered): void {
    this.#verdicts.get(text, () => counted(rendered));
  }

  #judge(text: string): Rendered | RenderError {
    try {
      return counted(this.#check(text));
    } catch (error) {
      if (error instanceof RenderError) return error;
      throw error;
    }
  }
}
