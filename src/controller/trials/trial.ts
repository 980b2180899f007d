/**
 * Runs trials. A trial renders what a Group's machines would get, for a sample request, and judges the result. It reads
 * documents of the store and changes nothing.
 *
 * Equal documents yield equal findings. A finding names places and fields, but never a value, because the text may come
 * from a Secret. A trial never decides what a machine gets.
 */

import { TextCache } from "../../lib/text/text-cache.ts";
import { shown } from "../../lib/text/visible.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { decodeGroup, decodeProfile } from "../../model/objects/documents.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import { type Group, toGroup } from "../../model/objects/group.ts";
import {
  endpointOf,
  fieldOf,
  isLoader,
  type ProfileContent,
  partsOf,
  type TemplatePart,
} from "../../model/objects/profile.ts";
import { sampleRequest } from "../../model/selection/sample-machine.ts";
import { ignitionValue } from "../../render/config/ignition.ts";
import { checkIgnition } from "../../render/config/ignition-check.ts";
import { findInYaml } from "../../render/config/yaml.ts";
import { reasonCodes } from "../../render/core/reason-codes.ts";
import { renderReasons } from "../../render/core/render-error.ts";
import type { TextPosition } from "../../render/core/text-position.ts";
import { Bench, type BenchOptions } from "../../render/judge/bench.ts";
import type { BootClient } from "../../render/judge/boot-faults.ts";
import type { Samples } from "../../render/judge/judge.ts";
import { Judge, type PartFault } from "../../render/judge/judge.ts";
import { RequestReads } from "../../render/template/request-reads.ts";
import { effectCure, installerIn } from "../reconcile/installers.ts";
import type { FieldPlace } from "../status/conditions.ts";

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

/**
 * `broken`: machines are answered 500. `refused`: the program that reads the config refuses it. `advice`: the config
 * works, but perhaps not as intended.
 */
export type Severity = "broken" | "refused" | "advice";

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

type TrialTools = Pick<BenchOptions, "davitUrl" | "sha256">;

/** Tries every Group of a job, and returns the trials in the order of the Groups. */
export function runTrials(job: TrialJob, tools: TrialTools): readonly Trial[] {
  const content = decodeProfile(job.profileText)?.content;
  if (content === undefined) return job.groups.map(() => "untried");
  const trials = new ProfileTrials(content, job, tools);
  return job.groups.map(({ name, text }) => {
    const document = decodeGroup(text);
    return document === undefined || document.refused === true
      ? "untried"
      : trials.try(toGroup(job.namespace, name, document.spec));
  });
}

// Enough for a few hundred usual configs, or for two of the largest.
const cacheBytes = 32 * 1024 * 1024;

/** Tries the Groups of one Profile. */
class ProfileTrials {
  readonly #content: ProfileContent;
  readonly #judge: Judge;
  /** Machines of one Profile often get equal texts. */
  readonly #ignition = new TextCache<readonly IgnitionVerdict[]>({ limitBytes: cacheBytes });

  constructor(content: ProfileContent, { secretTexts, samples = {} }: TrialJob, tools: TrialTools) {
    this.#content = content;
    const bench = new Bench({ ...tools, cacheBytes });
    this.#judge = new Judge({ content, secretText: (name) => secretTexts.get(name), samples, bench });
  }

  try(group: Group): readonly TrialFinding[] {
    const sample = sampleRequest(group);
    const parts = partsOf(this.#content.templates);
    return [...this.#boot(group, sample.labels), ...parts.flatMap((part) => this.#part(part, group, sample))];
  }

  #boot(group: Group, labels: Labels): readonly TrialFinding[] {
    const { boot } = this.#content;
    const { args } = group;
    if (boot?.kind === "broken") return [brokenPart("boot")];
    const unused = args.length > 0 && boot?.kind !== "kernel" ? [unusedArguments] : [];
    const found = this.#judge.boot(group, labels).map(fromFault);
    return [...found, ...unused, ...unmarkedArguments(this.#content, args)];
  }

  #part(part: TemplatePart, group: Group, sample: ReturnType<typeof sampleRequest>): readonly TrialFinding[] {
    if (this.#content.templates[part]?.kind === "broken") return [brokenPart(part)];
    const config = this.#judge.configs.get(part);
    // Either the Secret's file cannot be read, or the Secret is changing and the next trial will have its text.
    if (config === undefined) return [untriedPart(part)];
    const absent = this.#judge.absent(config, group);
    if (absent !== undefined) return [fromFault(absent)];
    const reads = new RequestReads();
    const judged = this.#judge.config(config, this.#judge.variables(group, sample, reads));
    if ("fault" in judged) return [fromFault({ ...judged.fault, isCertain: !reads.isAny })];
    if (part !== "ignition") return [];
    return this.#ignition.get(judged.text, judgeIgnition).map(({ position, ...verdict }) => {
      return finding(part, { ...verdict, position: position && judged.origin(position), place: placeOf(part) });
    });
  }
}

function judgeIgnition(text: string): readonly IgnitionVerdict[] {
  return checkIgnition(ignitionValue(text)).map(({ isRefused, path, member, text: message }) => {
    const judged = isRefused
      ? ({ severity: "refused", code: "ignition-refused" } as const)
      : ({ severity: "advice", code: "ignition-doubtful" } as const);
    return { ...judged, text: message, position: findInYaml(text, path, member) };
  });
}

type IgnitionVerdict = Pick<ReportedFault, "severity" | "code" | "text" | "position">;

interface ReportedFault {
  readonly severity: Severity;
  readonly code: FindingCode;
  readonly text: string;
  /** In the template. */
  readonly position?: TextPosition | undefined;
  /** The faulty field. */
  readonly place: FieldPlace;
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

function fromFault({ part, field, isOfGroup, reason, variable, at, isCertain, isAdvice }: PartFault): TrialFinding {
  const name = variable === undefined ? "" : `: "${shown(variable)}"`;
  const found = finding(part, {
    severity: isAdvice === true ? "advice" : "broken",
    code: reasonCodes[reason],
    text: renderReasons[reason] + name,
    position: at,
    place: { field },
    ...(isOfGroup && { isOfGroup }),
  });
  return isCertain && found.severity === "broken" ? { ...found, isCertain } : found;
}

function answers(part: TemplatePart | BootClient): string {
  if (part === "boot") return "/ipxe and /grub are answered";
  return isLoader(part) ? `/${part} is answered` : `/${endpointOf(part)} is answered`;
}

function brokenPart(part: TemplatePart | "boot"): TrialFinding {
  return {
    severity: "broken",
    text: `${answers(part)} 500: spec.${fieldOf(part)} is broken, see the Profile's status`,
    isCertain: true,
    place: placeOf(part),
  };
}

function untriedPart(part: TemplatePart): TrialFinding {
  const text = `spec.${fieldOf(part)} was not tried: its Secret is not in view`;
  return { severity: "advice", text, place: placeOf(part) };
}

function placeOf(part: TemplatePart | "boot"): FieldPlace {
  return { field: `spec.${fieldOf(part)}` };
}

function finding(
  part: TemplatePart | BootClient,
  { severity, code, text, position, place, isOfGroup }: ReportedFault,
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
