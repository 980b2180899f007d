/** Makes the condition `Rendered` of a Group from its trial. Equal trials give equal texts. */

import type { Condition } from "../../model/objects/source.ts";
import type { Trial, TrialFinding } from "./trial.ts";
import type { Severity } from "./trial-verdicts.ts";

// A person reads the message, corrects the first findings and looks again.
const maxFindings = 10;

/**
 * The condition that reports a trial.
 * @param profile the name of the Group's Profile.
 */
export function renderedCondition(profile: string, trial: Trial): Condition {
  if (trial === "untried") return notRendered("No machine gets a config of this Group now");
  const worst = severities.find((severity) => trial.some((finding) => finding.severity === severity));
  if (worst === undefined) return whole;
  const [status, reason] = outcomes[worst];
  return rendered(status, reason, `For a sample machine, Profile "${profile}": ${textOf(trial)}`);
}

/**
 * The failures that occur with every request of the Group's machines, as text for a person; undefined if there are
 * none.
 */
export function certainFailure(trial: Trial): string | undefined {
  const certain = trial === "untried" ? [] : trial.filter(({ isCertain }) => isCertain === true);
  return certain.length === 0 ? undefined : textOf(certain);
}

/** The condition of a Group that was not tried. */
export function notRendered(message: string): Condition {
  return rendered("Unknown", "NotRendered", message);
}

/** One object for all Groups without findings. */
const whole = rendered("True", "Rendered", "A sample machine gets every config of its Profile whole");

const severities: readonly Severity[] = ["broken", "refused", "advice"];

const outcomes: Readonly<Record<Severity, readonly [Condition["status"], string]>> = {
  broken: ["False", "RenderFailed"],
  refused: ["False", "InvalidConfig"],
  advice: ["True", "RenderedWithAdvice"],
};

function rendered(status: Condition["status"], reason: string, message: string): Condition {
  return { type: "Rendered", status, reason, message };
}

/** The findings as text, the worst first. */
function textOf(findings: readonly TrialFinding[]): string {
  const sorted = severities.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
  const shown = sorted.slice(0, maxFindings).map(({ text }) => text);
  const left = sorted.length - shown.length;
  return [...shown, ...(left === 0 ? [] : [`and ${left} more`])].join("; ");
}
