/**
 * Logs a look of the directory source: new problems, removed objects, ignored documents, and files that lack objects or
 * never rest. One mistake can affect thousands of objects, so each of these kinds gets a few lines. The lines quote
 * nothing of a file except names of accepted objects.
 */

import type { Log } from "../../lib/log.ts";
import type { SourceObject, SourceProblem } from "../../model/objects/source.ts";
import type { IgnoredDocument } from "./read-file.ts";

/** A file whose ignored documents changed. */
export interface IgnoringFile {
  /** The file's name in messages. */
  readonly label: string;
  readonly ignored: readonly IgnoredDocument[];
}

// Enough to see what happened. The view still has every problem.
const maxLines = 20;

export class LookLog {
  readonly #log: Log;
  #restless: readonly string[] = [];

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

  /** Logs files that lack objects, and so count in full later than usual. */
  lacking(labels: readonly string[]): void {
    for (const path of labels.slice(0, maxLines)) {
      const problem = "objects are missing, as in a file that is being rewritten: replace it with mv";
      this.#log.warn({ path, problem }, "file counts 10 s after its last change");
    }
    if (labels.length > maxLines)
      this.#log.warn({ count: labels.length }, "many files count 10 s after their last change");
  }

  /** Logs files that change again and again. */
  restless(labels: readonly string[]): void {
    const fresh = labels.filter((label) => !this.#restless.includes(label));
    this.#restless = labels.length === 0 ? [] : [...this.#restless, ...fresh];
    for (const path of fresh.slice(0, maxLines)) {
      const problem = "it is written again and again, and no Install is answered until it rests: replace it with mv";
      this.#log.warn({ path, problem }, "file changes all the time, other files count without it");
    }
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
