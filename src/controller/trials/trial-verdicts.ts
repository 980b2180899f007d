/** Judges the output of templates. Machines of one Profile often get equal texts, so verdicts are cached by text. */

import { TextCache } from "../../lib/text/text-cache.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import type { ResolvedTemplate, TemplatePart } from "../../model/objects/profile.ts";
import { rulesOf } from "../../render/config/check-config.ts";
import { ignitionValue } from "../../render/config/ignition.ts";
import { checkIgnition } from "../../render/config/ignition-check.ts";
import { findInYaml } from "../../render/config/yaml.ts";
import { reasonCodes } from "../../render/core/reason-codes.ts";
import { RenderError, renderReasons } from "../../render/core/render-error.ts";
import type { TextPosition } from "../../render/core/text-position.ts";

/**
 * `broken`: machines are answered 500. `refused`: the program that reads the config refuses it. `advice`: the config
 * works, but perhaps not as intended.
 */
export type Severity = "broken" | "refused" | "advice";

export interface TrialVerdict {
  readonly severity: Severity;
  readonly code: FindingCode;
  readonly text: string;
  /** In the judged text. */
  readonly position?: TextPosition;
}

// Enough for a few hundred usual configs, or for two of the largest.
const maxKeptBytes = 32 * 1024 * 1024;

export class Verdicts {
  readonly #known = new TextCache<readonly TrialVerdict[]>({ limitBytes: maxKeptBytes });

  /** What is wrong with this output of a template; empty for a good one. */
  of(
    part: TemplatePart,
    template: Exclude<ResolvedTemplate, { kind: "broken" }>,
    text: string,
  ): readonly TrialVerdict[] {
    return this.#known.get(`${part} ${text}`, () => judge(part, template, text));
  }
}

function judge(
  part: TemplatePart,
  template: Exclude<ResolvedTemplate, { kind: "broken" }>,
  text: string,
): readonly TrialVerdict[] {
  try {
    rulesOf(part).check(template)(text);
    return part === "ignition" ? judgeIgnition(text) : [];
  } catch (error) {
    if (!(error instanceof RenderError)) throw error;
    const { reason, position } = error;
    const verdict = { severity: "broken", code: reasonCodes[reason], text: renderReasons[reason] } as const;
    return [{ ...verdict, ...(position && { position }) }];
  }
}

function judgeIgnition(text: string): readonly TrialVerdict[] {
  return checkIgnition(ignitionValue(text)).map(({ isRefused, path, member, text: message }) => {
    const position = findInYaml(text, path, member);
    const judged = isRefused
      ? ({ severity: "refused", code: "ignition-refused" } as const)
      : ({ severity: "advice", code: "ignition-doubtful" } as const);
    return { ...judged, text: message, ...(position && { position }) };
  });
}
