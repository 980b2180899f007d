/**
 * Caches the results of checking rendered texts, good or bad. Parsing JSON takes longer than rendering it. Parsing YAML
 * takes one to two seconds for each MiB. After a power-on, the machines of a rack ask for equal texts at the same time.
 * Machines with a broken config ask again and again.
 */

import { TextCache } from "../../lib/text/text-cache.ts";
import { RenderError } from "../../render/core/render-error.ts";
import { counted, type Rendered } from "../../render/core/rendered.ts";

/**
 * Each cache has room for four YAML texts of the largest size (1 MiB, counted as 2 MiB), or for a thousand texts of 4
 * KiB. There is one cache for each check.
 */
const limitBytes = 8 * 1024 * 1024;

export class CheckedTexts {
  readonly #check: (text: string) => Rendered;
  readonly #verdicts = new TextCache<Rendered | RenderError>({ limitBytes });

  /** @param check must always give the same result for the same text. */
  constructor(check: (text: string) => Rendered) {
    this.#check = check;
  }

  /**
   * Returns the result of `check` for a text, cached or new.
   * @throws {RenderError} the error of `check` for this text, cached or new.
   */
  get(text: string): Rendered {
    const verdict = this.#verdicts.get(text, (unknown) => this.#judge(unknown));
    if (verdict instanceof RenderError) throw verdict;
    return verdict;
  }

  /** True if the result for a text is cached. */
  has(text: string): boolean {
    return this.#verdicts.has(text);
  }

  /** Takes over the result of the same check in another thread. */
  learn(text: string, rendered: Rendered): void {
    this.#verdicts.get(text, () => counted(rendered));
  }

  #judge(text: string): Rendered | RenderError {
    try {
      return counted(this.#check(text));
    } catch (error) {
      if (error instanceof RenderError) return error;
      throw error;
    }
  }
}
