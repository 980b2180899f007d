/**
 * Runs trials. A trial renders what a Group's machines would get, for a sample request, and judges the result. It reads
 * documents of the store and changes nothing.
 *
 * Equal documents yield equal findings. A finding names places and fields, but never a value, because the text may come
 * from a Secret. A trial never decides what a machine gets.
 */

import { type Labels, labelsFromQuery } from "../../model/labels/labels.ts";
import { decodeGroup, decodeProfile } from "../../model/objects/documents.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import { type Group, type Selection, toGroup } from "../../model/objects/group.ts";
import {
  endpointOf,
  fieldOf,
  isOfSecret,
  type ProfileContent,
  partsOf,
  type ResolvedTemplate,
  type TemplatePart,
} from "../../model/objects/profile.ts";
import { reasonCodes } from "../../render/core/reason-codes.ts";
import { RenderError } from "../../render/core/render-error.ts";
import type { TextPosition } from "../../render/core/text-position.ts";
import { RenderBudget } from "../../render/template/limits.ts";
import { type AbsentVariable, TemplateNeeds, unknown } from "../../render/template/needs.ts";
import { RequestReads } from "../../render/template/request-reads.ts";
import { compileTemplate, type Template, type Variables } from "../../render/template/template.ts";
import { bootVariables, templateVariables } from "../../render/template/variables.ts";
import type { Samples } from "../core/machine-samples.ts";
import { sampleReportUrl, withSamples } from "../core/machine-variables.ts";
import { sampleLabels, samples } from "../ranking/sample-labels.ts";
import { effectCure, installerIn } from "../reconcile/installers.ts";
import type { FieldPlace } from "../status/conditions.ts";
import { type BootClient, bootFaults } from "./trial-boot.ts";
import { type Severity, Verdicts } from "./trial-verdicts.ts";

/** Groups of one Profile, as the store has them. */
export interface TrialJob {
  readonly namespace: string;
  /** The Profile's name, for reports. */
  readonly profile: string;
  readonly profileText: string;
  /** What Machines may define; absent for nothing. */
  readonly samples?: Samples;
  /** The current texts of the Secrets that the Profile names, by the names of the texts in the store. */
  readonly secretTexts: ReadonlyMap<string, string>;
  readonly groups: readonly { readonly name: string; readonly text: string }[];
}

export interface TrialFinding {
  readonly severity: Severity;
  /** A sentence without its full stop. */
  readonly text: string;
  /** Set if the failure occurs with every request of the Group's machines. */
  readonly isCertain?: true;
  /** Absent for findings that the Profile's own status reports. */
  readonly code?: FindingCode;
  readonly place?: FieldPlace;
  /** Set if the place belongs to the Group and not to its Profile. */
  readonly isOfGroup?: true;
}

/** The findings of one Group; `untried` if its machines would get nothing. */
export type Trial = readonly TrialFinding[] | "untried";

export interface TrialTools {
  /** Where machines reach davit. */
  readonly davitUrl: string;
  /** Lower-case hex. */
  readonly sha256: (text: string) => string;
}

/** Tries every Group of a job, and returns the trials in the order of the Groups. */
export function runTrials(job: TrialJob, tools: TrialTools): readonly Trial[] {
  const content = decodeProfile(job.profileText)?.content;
  if (content === undefined) return job.groups.map(() => "untried");
  const bench = new Bench(content, job, tools);
  return job.groups.map(({ name, text }) => {
    const document = decodeGroup(text);
    return document === undefined || document.refused === true
      ? "untried"
      : bench.try(toGroup(job.namespace, name, document.spec));
  });
}

/** Tries the Groups of one Profile. */
class Bench {
  readonly #content: ProfileContent;
  readonly #samples: Samples;
  readonly #tools: TrialTools;
  readonly #secrets: ReadonlyMap<string, string>;
  readonly #templates = new Map<string, Template>();
  readonly #needs = new Map<string, TemplateNeeds>();
  readonly #verdicts = new Verdicts();

  constructor(content: ProfileContent, { secretTexts, samples = {} }: TrialJob, tools: TrialTools) {
    this.#content = content;
    this.#samples = samples;
    this.#tools = tools;
    this.#secrets = secretTexts;
  }

  try(group: Group): readonly TrialFinding[] {
    const { metadata: defaults, templates } = this.#content;
    const { davitUrl } = this.#tools;
    const sample = sampleRequest(group);
    const found = this.#boot(group, sample.labels);
    for (const part of partsOf(templates)) {
      const template = templates[part];
      if (template === undefined) continue;
      const reads = new RequestReads();
      const report = this.#content.install === undefined ? {} : { reportUrl: sampleReportUrl(davitUrl) };
      const variables = templateVariables({ group, defaults, ...sample, davitUrl, ...report }, reads);
      const ofPart = this.#part(part, template, this.#withSamples(variables, group, reads));
      found.push(...(reads.isAny ? ofPart : ofPart.map(asCertain)));
    }
    return found;
  }

  #boot(group: Group, labels: Labels): TrialFinding[] {
    const { boot, metadata: defaults } = this.#content;
    const { args } = group;
    if (boot?.kind === "broken") return [asCertain(brokenPart("boot"))];
    const unused = args.length > 0 && boot?.kind !== "kernel" ? [unusedArguments] : [];
    const reads = new RequestReads();
    const variables = this.#withSamples(
      bootVariables({ group, defaults, davitUrl: this.#tools.davitUrl }),
      group,
      reads,
    );
    const compile = (text: string) => this.#compile(text);
    const faults = bootFaults({ content: this.#content, args, variables, labels, compile });
    const found = faults.map(({ client, error, field, isOfGroup, isAdvice }) => {
      const place = { place: { field }, ...(isOfGroup && { isOfGroup }) };
      return finding(client, { ...fromError(error), ...place, ...(isAdvice && { severity: "advice" }) });
    });
    // A boot section does not depend on the request. Without a Machine, its faults occur with every request.
    return [...(reads.isAny ? found : found.map(asCertain)), ...unused, ...unmarkedArguments(this.#content, args)];
  }

  #withSamples(variables: Variables, { selector, metadata }: Group, reads: RequestReads): Variables {
    const own = { selector, metadata: { ...this.#content.metadata, ...metadata } };
    return withSamples(variables, this.#samples, own, () => reads.note());
  }

  #part(part: TemplatePart, template: ResolvedTemplate, variables: Variables): readonly TrialFinding[] {
    if (template.kind === "broken") return [brokenPart(part)];
    const text = template.kind === "text" ? template.text : this.#secrets.get(template.sha256);
    // Either the Secret's file cannot be read, or the Secret is changing and the next trial will have its text.
    if (text === undefined)
      return [
        {
          severity: "advice",
          text: `spec.${fieldOf(part)} was not tried: its Secret is not in view`,
          place: placeOf(part),
        },
      ];
    if (template.raw) return this.#verdicts.of(part, template, text).map((verdict) => finding(part, verdict));
    const isSecret = isOfSecret(template);
    const absent = this.#absent(text, variables);
    if (absent !== undefined) {
      const error = new RenderError("undefinedVariable", absent.at, { variable: absent.name });
      return [asCertain(finding(part, fromError(error, isSecret)))];
    }
    try {
      const compiled = this.#compile(text);
      const result = compiled.render(variables);
      return this.#verdicts.of(part, template, result).map(({ position, ...verdict }) => {
        const origin = position && compiled.origin(variables, position);
        return finding(part, { ...verdict, ...(origin && { position: origin }) });
      });
    } catch (error) {
      if (!(error instanceof RenderError)) throw error;
      return [finding(part, fromError(error, isSecret))];
    }
  }

  /**
   * Finds a variable that no request defines. Rendering alone might not find it, because rendering stops at the first
   * undefined variable. That may be one that only the sample request lacks.
   */
  #absent(text: string, variables: Variables): AbsentVariable | undefined {
    const needs = this.#needs.get(text) ?? this.#readNeeds(text);
    const lookup = (name: string) => {
      const own = Object.getOwnPropertyDescriptor(variables, name);
      // What Machines define has no value that holds for all machines.
      return own?.get !== undefined && name !== "request" ? unknown : own?.value;
    };
    return needs?.absent(lookup, new RenderBudget());
  }

  #readNeeds(text: string): TemplateNeeds | undefined {
    try {
      const needs = new TemplateNeeds(text, { sha256: this.#tools.sha256, seesRequest: true });
      this.#needs.set(text, needs);
      return needs;
    } catch (error) {
      if (error instanceof RenderError) return undefined;
      throw error;
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

interface ReportedFault {
  readonly severity: Severity;
  readonly code: FindingCode;
  readonly text: string;
  /** In the template. */
  readonly position?: TextPosition;
  /** The faulty field; absent if the whole part is at fault. */
  readonly place?: FieldPlace;
  /** Set if the place belongs to the Group and not to its Profile. */
  readonly isOfGroup?: true;
}

const unusedArguments: TrialFinding = {
  severity: "advice",
  code: "unused-arguments",
  place: { field: "spec.args" },
  isOfGroup: true,
  text: "spec.args of the Group are not used: the Profile has no kernel to hand them to",
};

/** Checks the Group's arguments as `effectAdvice` checks a Profile. */
function unmarkedArguments({ boot, effect }: ProfileContent, args: readonly string[]): readonly TrialFinding[] {
  if (effect !== undefined || boot?.kind !== "kernel") return [];
  return args.flatMap((text, at) => {
    const found = installerIn(text);
    if (found === undefined) return [];
    const field = `spec.args[${at}]`;
    const what = `${field} of the Group has ${found.argument} of ${found.installer}, and the Profile no effect`;
    return [
      {
        severity: "advice",
        code: "unmarked-installer",
        place: { field },
        isOfGroup: true,
        text: `${what}: ${effectCure}`,
      },
    ];
  });
}

/** Marks a failure as certain: it occurs with every request. Other findings stay as they are. */
function asCertain(found: TrialFinding): TrialFinding {
  return found.severity === "broken" ? { ...found, isCertain: true } : found;
}

/** @param isSecret the template is secret: the finding shows nothing of its text. */
function fromError(error: RenderError, isSecret = false): ReportedFault {
  const { reason, position } = error;
  const verdict = { severity: "broken", code: reasonCodes[reason], text: error.sentence(isSecret) } as const;
  return { ...verdict, ...(position && { position }) };
}

function answers(part: TemplatePart | BootClient): string {
  if (part === "boot") return "/ipxe and /grub are answered";
  return part === "ipxe" || part === "grub" ? `/${part} is answered` : `/${endpointOf(part)} is answered`;
}

function brokenPart(part: TemplatePart | "boot"): TrialFinding {
  return {
    severity: "broken",
    text: `${answers(part)} 500: spec.${fieldOf(part)} is broken, see the Profile's status`,
    place: placeOf(part),
  };
}

function placeOf(part: TemplatePart | BootClient): FieldPlace {
  return { field: part === "ipxe" || part === "grub" ? "spec.boot" : `spec.${fieldOf(part)}` };
}

function finding(
  part: TemplatePart | BootClient,
  { severity, code, text, position, place = placeOf(part), isOfGroup }: ReportedFault,
): TrialFinding {
  const field = `${place.field}${isOfGroup ? " of the Group" : ""}`;
  const where = position === undefined ? field : `${field}, line ${position.line}, column ${position.column}`;
  const consequences: Readonly<Record<Severity, string>> = {
    broken: `${answers(part)} 500: `,
    refused: "Ignition refuses this: ",
    advice: "",
  };
  return {
    severity,
    code,
    text: `${consequences[severity]}${where}: ${text}`,
    place: { ...place, ...(position && { position }) },
    ...(isOfGroup && { isOfGroup }),
  };
}

interface SampleRequest {
  readonly labels: Labels;
  /** As a machine sends it, without the `?`. */
  readonly rawQuery: string;
}

/** Makes up a request: the labels that the selector asks for, and sample values for the other identity labels. */
export function sampleRequest(selection: Selection): SampleRequest {
  // Leaves out sample values that the selector excludes: a Group may select exactly the machines without a hostname.
  const others = [...samples].filter(([label, value]) =>
    selection.expressions.every(({ key, accepts }) => key !== label || accepts(value)),
  );
  const rawQuery = [...new Map([...others, ...sampleLabels(selection)])].map(pairOf).join("&");
  return { labels: labelsFromQuery(rawQuery), rawQuery };
}

/** iPXE sends a MAC address with hyphens (`${mac:hexhyp}`). */
function pairOf([label, value]: readonly [string, string]): string {
  const sent = label === "mac" ? value.replaceAll(":", "-") : value;
  return `${encodeURIComponent(label)}=${encodeURIComponent(sent.toWellFormed())}`;
}
