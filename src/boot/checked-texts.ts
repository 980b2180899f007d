/**
 * Keeps the results of checking rendered texts, good or bad. Parsing JSON costs more than rendering it, and parsing
 * YAML up to a second for each MiB. After a power-on the machines of a rack ask for equal texts together, and those
 * with a broken config ask again and again.
 */

import { TextCache } from "../lib/text-cache.ts";
import { RenderError } from "../render/core/render-error.ts";
import { counted, type Rendered } from "../render/core/rendered.ts";

/** Four of the largest YAML texts (1 MiB, counted as 2), or a thousand of 4 KiB; there is one cache for each kind. */
const limitBytes = 8 * 1024 * 1024;

export class CheckedTexts {
  readonly #check: (text: string) => Rendered;
  readonly #verdicts = new TextCache<Rendered | RenderError>({ limitBytes });

  /** @param check must always give the same result for the same text. */
  constructor(check: (text: string) => Rendered) {
    this.#check = check;
  }

  /**
   * The result of `check` for a text.
   * @throws {RenderError} what `check` threw for it.
   */
  get(text: string): Rendered {
    const verdict = this.#verdicts.get(text, (unknown) => this.#judge(unknown));
    if (verdict instanceof RenderError) throw verdict;
    return verdict;
  }

  /** True when a text was checked. */
  has(text: string): boolean {
    return this.#verdicts.has(text);
  }

  /** Adopts the result of the same check in another thread. */
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
