/**
 * A trial: what the machines of a Group would get, made with the labels of a sample machine and judged as advice. It
 * reads documents as they lie in the store, and changes nothing.
 *
 * It promises that equal documents yield equal findings, and that a finding names places and fields, never a value: what
 * is tried may come from a Secret. It never decides what a machine gets.
 */

import { decodeGroup, decodeProfile, type GroupDocument } from "../model/documents.ts";
import { type Group, toGroup } from "../model/group.ts";
import {
  bootTexts,
  type KernelBoot,
  type ProfileContent,
  type ResolvedTemplate,
  type TemplatePart,
  templateParts,
} from "../model/profile.ts";
import { renderBoot, renderBootText } from "../render/boot.ts";
import { RenderError, renderReasons } from "../render/render-error.ts";
import { compileTemplate, type Template, type Variables } from "../render/template.ts";
import type { TextPosition } from "../render/text-position.ts";
import { bootVariables, templateVariables } from "../render/variables.ts";
import { sampleRequest } from "./sample-request.ts";
import { type Severity, Verdicts } from "./trial-verdicts.ts";

/** Groups of one Profile, as the store has them. */
export interface TrialJob {
  readonly namespace: string;
  /** The Profile's name, for what is told. */
  readonly profile: string;
  readonly profileText: string;
  /** What the Secrets say now that the Profile names. */
  readonly secretTexts: readonly string[];
  readonly groups: readonly { readonly name: string; readonly text: string }[];
}

export interface TrialFinding {
  readonly severity: Severity;
  /** A sentence without its full stop. */
  readonly text: string;
}

/** What was found of one Group; `untried` where there is nothing that a machine would get. */
export type Trial = readonly TrialFinding[] | "untried";

export interface TrialTools {
  /** Where machines reach davit. */
  readonly davitUrl: string;
  /** Lower-case hex. */
  readonly sha256: (text: string) => string;
}

/** Tries every Group of a job; the trials are in their order. */
export function runTrials(job: TrialJob, tools: TrialTools): readonly Trial[] {
  const content = decodeProfile(job.profileText)?.content;
  if (content === undefined) return job.groups.map(() => "untried");
  const bench = new Bench(content, job.secretTexts, tools);
  return job.groups.map(({ name, text }) => {
    const document = decodeGroup(text);
    return document === undefined || isMute(document)
      ? "untried"
      : bench.try(toGroup(job.namespace, name, document.spec));
  });
}

/** True for a Group whose machines get nothing, whatever its Profile has. */
function isMute({ refused }: GroupDocument): boolean {
  return refused === true;
}

/** One Profile under trial. */
class Bench {
  readonly #content: ProfileContent;
  readonly #tools: TrialTools;
  readonly #secrets: ReadonlyMap<string, string>;
  readonly #templates = new Map<string, Template>();
  readonly #verdicts = new Verdicts();

  constructor(content: ProfileContent, secretTexts: readonly string[], tools: TrialTools) {
    this.#content = content;
    this.#tools = tools;
    this.#secrets = new Map(secretTexts.map((text) => [tools.sha256(text), text]));
  }

  try(group: Group): readonly TrialFinding[] {
    const { boot, templates } = this.#content;
    const found = boot === undefined || boot.kind === "local" ? [] : this.#boot(boot, group);
    const { davitUrl } = this.#tools;
    const variables = templateVariables({ group, ...sampleRequest(group), davitUrl });
    for (const part of templateParts) {
      const template = templates[part];
      if (template !== undefined) found.push(...this.#part(part, template, variables));
    }
    return found;
  }

  #boot(boot: ({ readonly kind: "kernel" } & KernelBoot) | { readonly kind: "broken" }, group: Group): TrialFinding[] {
    if (boot.kind === "broken") return [brokenPart("boot")];
    const variables = bootVariables({ group, davitUrl: this.#tools.davitUrl });
    const compile = (text: string) => this.#compile(text);
    const found = bootTexts(boot).flatMap(([field, text]): TrialFinding[] => {
      const error = failureOf(() => renderBootText(text, variables, compile));
      return error === undefined ? [] : [finding("boot", { ...fromError(error), field })];
    });
    if (found.length > 0) return found;
    const error = failureOf(() => renderBoot(boot, variables, compile));
    return error === undefined ? [] : [finding("boot", fromError(error))];
  }

  #part(part: TemplatePart, template: ResolvedTemplate, variables: Variables): readonly TrialFinding[] {
    if (template.kind === "broken") return [brokenPart(part)];
    const text = template.kind === "text" ? template.text : this.#secrets.get(template.sha256);
    // Its file cannot be read, or it changes just now and is tried again.
    if (text === undefined)
      return [{ severity: "advice", text: `spec.${part} was not tried: its Secret is not in view` }];
    if (template.raw) return this.#verdicts.of(part, template, text).map((verdict) => finding(part, verdict));
    try {
      const compiled = this.#compile(text);
      const result = compiled.render(variables);
      return this.#verdicts.of(part, template, result).map(({ position, ...verdict }) => {
        const origin = position && compiled.origin(variables, position);
        return finding(part, { ...verdict, ...(origin && { position: origin }) });
      });
    } catch (error) {
      if (!(error instanceof RenderError)) throw error;
      return [finding(part, fromError(error))];
    }
  }

  #compile(text: string): Template {
    const known = this.#templates.get(text);
    if (known !== undefined) return known;
    const template = compileTemplate(text, { sha256: this.#tools.sha256 });
    this.#templates.set(text, template);
    return template;
  }
}

interface Told {
  readonly severity: Severity;
  readonly text: string;
  /** In the template. */
  readonly position?: TextPosition;
  /** Below the part, such as `.args[2]`. */
  readonly field?: string;
}

function failureOf(render: () => unknown): RenderError | undefined {
  try {
    render();
    return undefined;
  } catch (error) {
    if (error instanceof RenderError) return error;
    throw error;
  }
}

function fromError({ reason, position }: RenderError): Told {
  return { severity: "broken", text: renderReasons[reason], ...(position && { position }) };
}

const endpoints: Readonly<Record<TemplatePart | "boot", string>> = {
  boot: "/ipxe and /grub are",
  ignition: "/ignition is",
  cloudConfig: "/cloud is",
  generic: "/generic is",
};

function brokenPart(part: TemplatePart | "boot"): TrialFinding {
  return {
    severity: "broken",
    text: `${endpoints[part]} answered 500: spec.${part} is broken, see the Profile's status`,
  };
}

function finding(part: TemplatePart | "boot", { severity, text, position, field }: Told): TrialFinding {
  const place = field === undefined ? `spec.${part}` : `spec.${part}.${field}`;
  const where = position === undefined ? place : `${place}, line ${position.line}, column ${position.column}`;
  const consequences: Readonly<Record<Severity, string>> = {
    broken: `${endpoints[part]} answered 500: `,
    refused: "Ignition refuses this: ",
    advice: "",
  };
  return { severity, text: `${consequences[severity]}${where}: ${text}` };
}
