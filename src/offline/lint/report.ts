/**
 * Writes findings as text for people and editors, as JSON for programs, and as annotations of a pull request on GitHub.
 */

import { unreachable } from "../../lib/errors.ts";
import { visible } from "../../lib/text/visible.ts";
import { type FindingSeverity, severities } from "../../model/objects/findings.ts";
import type { LintFinding } from "./finding.ts";

export const lintFormats = ["text", "json", "github"] as const;
export type LintFormat = (typeof lintFormats)[number];

/** The number of findings of each severity. */
export type Counts = Readonly<Record<FindingSeverity, number>>;

/** Counts findings by severity. */
export function countsOf(findings: readonly LintFinding[]): Counts {
  const count = (severity: FindingSeverity) => findings.filter((finding) => finding.severity === severity).length;
  return { error: count("error"), warning: count("warning"), advice: count("advice") };
}

/** Returns the output in pieces: one for each finding, or one for the whole JSON. */
export function reportOf(findings: readonly LintFinding[], format: LintFormat): readonly string[] {
  switch (format) {
    case "text":
      return findings.map(textLine);
    case "json":
      return [`${JSON.stringify({ counts: countsOf(findings), findings }, undefined, 2)}\n`];
    case "github":
      return findings.map(githubLine);
    default:
      return unreachable(format);
  }
}

/** Returns the counts as a text: `2 errors, 1 warning, no advice`. */
export function countsText(counts: Counts): string {
  return severities.map((severity) => countText(counts[severity], severity)).join(", ");
}

function countText(count: number, severity: FindingSeverity): string {
  const noun = severity === "advice" || count === 1 ? severity : `${severity}s`;
  return `${count === 0 ? "no" : count} ${noun}`;
}

function textLine({ file, line, column, severity, message, code }: LintFinding): string {
  return `${visible(file)}:${line}:${column}: ${severity}: ${visible(message)} (${code})\n`;
}

const githubLevels: Readonly<Record<FindingSeverity, string>> = {
  error: "error",
  warning: "warning",
  advice: "notice",
};

function githubLine({ file, line, column, severity, message, code }: LintFinding): string {
  const properties = `file=${property(file)},line=${line},col=${column},title=${property(code)}`;
  return `::${githubLevels[severity]} ${properties}::${escaped(message)}\n`;
}

/** Escapes as GitHub's own tools do. */
function escaped(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return escaped(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
