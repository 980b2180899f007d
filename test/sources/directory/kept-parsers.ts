/**
 * Keeps the parser's threads from one directory source to the next: a thread takes a second of a processor to start.
 * Import this file before those that import the source. A source that stops amid a parse still ends its thread.
 */

import { afterAll, vi } from "vitest";
import type { ParsedFile, ParseRequest } from "../../../src/sources/directory/parse-worker.ts";
import type { ManifestParser } from "../../../src/sources/directory/parser.ts";

type Parser = Pick<ManifestParser, "parse" | "stop">;

/** Parsers that no source uses, by the texts of their CRDs. */
const idle = new Map<string, Parser[]>();

afterAll(async () => {
  await Promise.all([...idle.values()].flat().map((parser) => parser.stop()));
});

vi.mock("../../../src/sources/directory/parser.ts", async (importOriginal) => {
  const { ManifestParser: Original } = await importOriginal<{ readonly ManifestParser: typeof ManifestParser }>();
  class KeptParser {
    readonly #crds: readonly string[];
    #parser: Parser | undefined;
    #isParsing = false;
    #isStopped = false;

    constructor(crds: readonly string[]) {
      this.#crds = crds;
    }

    async parse(files: readonly ParseRequest[]): Promise<readonly ParsedFile[]> {
      const parser = this.#parser ?? idleOf(this.#crds).pop() ?? new Original(this.#crds);
      this.#parser = parser;
      if (this.#isStopped) await parser.stop();
      this.#isParsing = true;
      try {
        return await parser.parse(files);
      } finally {
        this.#isParsing = false;
      }
    }

    async rest(): Promise<void> {
      // A parser that was stopped reads nothing any more.
      if (this.#parser !== undefined && !this.#isStopped) idleOf(this.#crds).push(this.#parser);
      this.#parser = undefined;
    }

    async stop(): Promise<void> {
      if (this.#isParsing) await this.#parser?.stop();
      else await this.rest();
      this.#isStopped = true;
    }
  }
  return { ManifestParser: KeptParser };
});

function idleOf(crds: readonly string[]): Parser[] {
  const key = crds.join("\n");
  const known = idle.get(key) ?? [];
  idle.set(key, known);
  return known;
}
