/**
 * Logs a look of the directory source: new problems, removed objects, unfinished files and ignored documents. One
 * mistake can affect thousands of objects, so each of these four kinds gets a few lines and a count. The lines quote
 * nothing of a file except names of accepted objects.
 */

import type { Log } from "../lib/log.ts";
import type { FindingCode } from "../model/objects/findings.ts";
import type { SourceObject, SourceProblem } from "../model/objects/source.ts";
import type { Unfinished } from "./known-files.ts";
import type { IgnoredDocument } from "./read-file.ts";

/** A file whose ignored documents changed. */
export interface IgnoringFile {
  /** The file's name in messages. */
  readonly label: string;
  readonly ignored: readonly IgnoredDocument[];
}

/** A file that must be at rest for longer than others before it counts in full. */
export interface UnfinishedFile {
  readonly label: string;
  readonly why: Unfinished;
}

const unfinishedTexts: Readonly<Record<Unfinished, string>> = {
  shrank: "it became smaller, as a file that is being rewritten: replace it with mv",
  unended: "it lacks its final newline, as a file that is half written: end it with a line break",
};

// Enough to see what happened. The view still has every problem.
const maxLines = 20;

export class LookLog {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Logs new problems, and logs when there are no problems any more. */
  problems(before: readonly SourceProblem[], now: readonly SourceProblem[]): void {
    const known = new Set(before.map(problemText));
    const fresh = now.filter((problem) => !known.has(problemText(problem)));
    for (const { origin, message } of fresh.slice(0, maxLines)) {
      this.#log.warn({ origin, problem: message }, "part of the manifests cannot be used");
    }
    if (fresh.length > maxLines) this.#log.warn({ count: fresh.length }, "many parts of the manifests cannot be used");
    if (before.length > 0 && now.length === 0) this.#log.info({}, "all manifests can be used again");
  }

  /** Logs objects that were removed because no file defines them. */
  removed(objects: readonly SourceObject[]): void {
    for (const { kind, namespace, name, origin } of objects.slice(0, maxLines)) {
      this.#log.info({ kind, namespace, name, origin }, "object left the manifests");
    }
    if (objects.length > maxLines) this.#log.info({ count: objects.length }, "many objects left the manifests");
  }

  /** Logs files that count in full later than usual. */
  unfinished(files: readonly UnfinishedFile[]): void {
    for (const { label, why } of files.slice(0, maxLines)) {
      const finding: FindingCode = "unfinished-file";
      this.#log.warn({ path: label, finding, problem: unfinishedTexts[why] }, "file counts 10 s after its last change");
    }
    if (files.length > maxLines)
      this.#log.warn({ count: files.length }, "many files count 10 s after their last change");
  }

  /** Logs documents of other projects. They can explain a missing object: its `apiVersion` or `kind` may be wrong. */
  ignored(files: readonly IgnoringFile[]): void {
    for (const { label, ignored } of files.slice(0, maxLines)) {
      const documents = ignored.slice(0, maxLines).map(({ place }) => place);
      this.#log.info({ path: label, documents, count: ignored.length }, "documents of other groups ignored");
    }
    if (files.length > maxLines)
      this.#log.info({ count: files.length }, "documents of other groups ignored in many files");
  }
}

function problemText({ origin, message }: SourceProblem): string {
  return `${origin}\n${message}`;
}
