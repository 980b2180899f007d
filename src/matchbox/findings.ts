/** The findings of an import: each once, at its place in the matchbox files. */

import { compareBytes } from "../lib/order.ts";
import { comparePositions, type TextPosition, textStart } from "../render/core/text-position.ts";

export interface ImportFinding {
  /**
   * An error: something was not imported. A warning: it was imported, but davit treats it differently from matchbox.
   */
  readonly severity: "error" | "warning";
  /** Below the matchbox directory. */
  readonly file: string;
  readonly at: TextPosition;
  /** The finding, and after a colon what to do. */
  readonly text: string;
}

/** Collects findings. */
export class ImportFindings {
  /** By file, then by text. */
  readonly #found = new Map<string, Map<string, ImportFinding>>();

  error(file: string, text: string, at: TextPosition = textStart): void {
    this.#add({ severity: "error", file, at, text });
  }

  warn(file: string, text: string, at: TextPosition = textStart): void {
    this.#add({ severity: "warning", file, at, text });
  }

  /** All of them, by file and place. */
  sorted(): readonly ImportFinding[] {
    return [...this.#found.keys()].toSorted(compareBytes).flatMap((file) => this.#of(file));
  }

  /** The parts of a file that were not imported. */
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

/** A finding as a line, such as `groups/a.json:3:5: error: …`. */
export function findingText({ severity, file, at, text }: ImportFinding): string {
  return `${file}:${at.line}:${at.column}: ${severity}: ${text}`;
}

const longestShown = 100;

/** A name from a file, for messages: in quotes, on one line, and cut if long. */
export function shown(text: string): string {
  const short = text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
  return JSON.stringify(short).replaceAll(/[\x7f-\x9f\u2028\u2029]/g, "?");
}
