/** Collects the findings of an import, each once, with its place in the matchbox files. */

import { compareBytes } from "../../../src/lib/order.ts";
import { comparePositions, type TextPosition, textStart } from "../../../src/render/core/text-position.ts";

export interface ImportFinding {
  /**
   * An error: machines lack something that was not imported. A warning: davit treats something differently from
   * matchbox, or left out what machines do not need.
   */
  readonly severity: "error" | "warning";
  /** The file's path below the matchbox directory. */
  readonly file: string;
  readonly at: TextPosition;
  /** The finding, and after a colon what to do. */
  readonly text: string;
}

/** Collects the findings of all files. */
export class ImportFindings {
  /** By file, then by text. */
  readonly #found = new Map<string, Map<string, ImportFinding>>();

  error(file: string, text: string, at: TextPosition = textStart): void {
    this.#add({ severity: "error", file, at, text });
  }

  warn(file: string, text: string, at: TextPosition = textStart): void {
    this.#add({ severity: "warning", file, at, text });
  }

  /** Returns all findings, sorted by file and place. */
  sorted(): readonly ImportFinding[] {
    return [...this.#found.keys()].toSorted(compareBytes).flatMap((file) => this.#of(file));
  }

  /** Returns the errors of a file, which name its parts that were not imported. */
  errorsOf(file: string): readonly ImportFinding[] {
    return this.#of(file).filter(({ severity }) => severity === "error");
  }

  #of(file: string): readonly ImportFinding[] {
    const found = [...(this.#found.get(file)?.values() ?? [])];
    return found.toSorted((a, b) => comparePositions(a.at, b.at) || compareBytes(a.text, b.text));
  }

  #add(finding: ImportFinding): void {
    const ofFile = this.#found.get(finding.file) ?? new Map<string, ImportFinding>();
    this.#found.set(finding.file, ofFile.set(findingText(finding), finding));
  }
}

/** Returns a finding as a line, such as `groups/a.json:3:5: error: …`. */
export function findingText({ severity, file, at, text }: ImportFinding): string {
  return `${file}:${at.line}:${at.column}: ${severity}: ${text}`;
}

const longestShown = 100;

/** Returns a name from a file for a message: in quotes, on one line, and cut if it is long. */
export function shown(text: string): string {
  const short = text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
  return JSON.stringify(short).replaceAll(/[\x7f-\x9f\u2028\u2029]/g, "?");
}
