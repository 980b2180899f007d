/**
 * Caches configs that are the same for every request, such as an Ignition config of metadata alone. Each is cached in
 * its Group, like the boot script. If all of them together exceed a number of bytes, all are dropped, and made again on
 * request.
 */

import type { TemplatePart } from "../model/profile.ts";
import type { Rendered } from "../render/core/rendered.ts";
import type { Machine } from "./boot-index.ts";
import type { BootGroup, KeptConfig } from "./known-documents.ts";

export class KeptConfigs {
  readonly #limitBytes: number;
  /** Groups with cached configs. Groups that the index has dropped stay here until all configs are dropped. */
  #groups: BootGroup[] = [];
  #sizeBytes = 0;

  /** @param options.limitBytes for all configs, including the overhead of each. */
  constructor({ limitBytes }: { readonly limitBytes: number }) {
    this.#limitBytes = limitBytes;
  }

  /**
   * The cached config of a part; undefined unless it was made of this version of the Profile. A version identifies the
   * template, and a Secret's text by its hash.
   */
  get({ group, profile }: Machine, part: TemplatePart): Rendered | undefined {
    const kept = keptOf(group, part);
    return kept !== undefined && kept.profile === profile ? kept : undefined;
  }

  /** @returns what to answer: the object that `get` returns from now on, unless it is too large to cache. */
  keep({ group, profile }: Machine, part: TemplatePart, rendered: Rendered): Rendered {
    const bytes = sizeOf(rendered);
    if (bytes > this.#limitBytes) return rendered;
    if (this.#sizeBytes + bytes > this.#limitBytes) this.#letGo();
    if (group.configs === undefined) this.#groups.push(group);
    const { body, contentType, byteLength } = rendered;
    const kept = { body, contentType, byteLength, isShared: true, profile, part } as const;
    put(group, kept);
    // A config that is made anew counts twice until all are dropped: too much rather than too little.
    this.#sizeBytes += bytes;
    return kept;
  }

  #letGo(): void {
    for (const group of this.#groups) {
      group.configs = undefined;
    }
    this.#groups = [];
    this.#sizeBytes = 0;
  }
}

/** The config that a Group caches for a part, from any version. */
export function keptOf({ configs }: BootGroup, part: TemplatePart): KeptConfig | undefined {
  if (configs === undefined) return undefined;
  if ("part" in configs) return configs.part === part ? configs : undefined;
  return configs.find((kept) => kept.part === part);
}

/** Stores a single config without a list: a list takes as much memory as three members of the Group. */
function put(group: BootGroup, kept: KeptConfig): void {
  const { configs = [] } = group;
  const others = ("part" in configs ? [configs] : configs).filter(({ part }) => part !== kept.part);
  group.configs = others.length === 0 ? kept : [...others, kept];
}

/** What an entry takes beside its text. */
const entryBytes = 200;

/** V8 keeps one byte for each unit of Latin-1 text and two otherwise; two is never too little. */
function sizeOf({ body }: Rendered): number {
  return body.length * 2 + entryBytes;
}
