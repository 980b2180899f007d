/**
 * Configs that no request changes, such as an Ignition config of metadata alone. They are kept in their Group, like its
 * boot script, and count together: beyond a number of bytes all of them are let go, and made again as they are asked for.
 */

import type { TemplatePart } from "../model/profile.ts";
import type { Rendered } from "../render/rendered.ts";
import type { Machine } from "./boot-index.ts";
import type { BootGroup } from "./known-documents.ts";

export class KeptConfigs {
  readonly #limitBytes: number;
  /** Groups that keep some; those among them that the index has dropped stay until all are let go. */
  #groups: BootGroup[] = [];
  #sizeBytes = 0;

  /** @param options.limitBytes of configs, and of what makes up for small ones. */
  constructor({ limitBytes }: { readonly limitBytes: number }) {
    this.#limitBytes = limitBytes;
  }

  /** What is kept of a part; undefined unless it was made of this text, and of this version of the Profile. */
  get({ group, profile }: Machine, part: TemplatePart, text: string): Rendered | undefined {
    const kept = group.configs?.[part];
    return kept !== undefined && kept.profile === profile && kept.text === text ? kept.value : undefined;
  }

  keep({ group, profile }: Machine, part: TemplatePart, text: string, value: Rendered): void {
    const bytes = sizeOf(value);
    if (bytes > this.#limitBytes) return;
    if (this.#sizeBytes + bytes > this.#limitBytes) this.#letGo();
    if (group.configs === undefined) this.#groups.push(group);
    group.configs = { ...group.configs, [part]: { profile, text, value } };
    // One that is made anew counts twice until all are let go: too much rather than too little.
    this.#sizeBytes += bytes;
  }

  #letGo(): void {
    for (const group of this.#groups) group.configs = undefined;
    this.#groups = [];
    this.#sizeBytes = 0;
  }
}

/** What an entry takes beside its text. */
const entryBytes = 200;

/** V8 keeps one byte for each unit of Latin-1 text and two otherwise; two is never too little. */
function sizeOf({ body }: Rendered): number {
  return body.length * 2 + entryBytes;
}
