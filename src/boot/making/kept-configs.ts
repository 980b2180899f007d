/**
 * Caches configs that are the same for every request, such as an Ignition config that prints only metadata. Each config
 * is cached in its Group, like the boot script. If all cached configs together exceed a limit, davit drops them all,
 * and makes each again on request.
 */

import type { TemplatePart } from "../../model/objects/profile.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import type { BootGroup, KeptConfig } from "../core/known-documents.ts";
import type { AddressedMachine } from "./boot-scripts.ts";

export class KeptConfigs {
  readonly #limitBytes: number;
  /** Groups with cached configs. Groups that the index has dropped stay here until all configs are dropped. */
  #groups: BootGroup[] = [];
  #sizeBytes = 0;

  /** @param options.limitBytes the most bytes of all configs, with the overhead of each. */
  constructor({ limitBytes }: { readonly limitBytes: number }) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Returns the cached config of a part; undefined unless it was made from this version of the Profile, with this URL
   * of davit. A version fixes the text of every template. If the text is in a Secret, the version has its hash.
   */
  get({ group, profile, davitUrl }: AddressedMachine, part: TemplatePart): Rendered | undefined {
    const kept = keptOf(group, part);
    return kept?.profile === profile && kept.davitUrl === davitUrl ? kept : undefined;
  }

  /**
   * Caches a config.
   * @param rendered the same for every request.
   * @returns the cached object, which `get` returns from now on. If the config is too large to cache, it returns a copy
   * that is not cached. Both are marked as shared.
   */
  keep({ group, profile, davitUrl }: AddressedMachine, part: TemplatePart, rendered: Rendered): Rendered {
    const bytes = sizeOf(rendered);
    if (bytes > this.#limitBytes) return { ...rendered, isShared: true };
    if (this.#sizeBytes + bytes > this.#limitBytes) this.#letGo();
    if (group.configs === undefined) this.#groups.push(group);
    const { body, contentType, byteLength } = rendered;
    const kept = { body, contentType, byteLength, isShared: true, profile, davitUrl, part } as const;
    put(group, kept);
    // If a config replaces an older one, both are counted until all are dropped. So the sum can be too large, but never
    // too small.
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

/** Returns the config that a Group caches for a part, made from any version of its Profile. */
function keptOf({ configs }: BootGroup, part: TemplatePart): KeptConfig | undefined {
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

/** The memory that an entry takes beside its text, in bytes. */
const entryBytes = 200;

/**
 * Returns the memory that a config takes. V8 stores Latin-1 text in one byte for each character, and other text in two.
 * So two is never too little.
 */
function sizeOf({ body }: Rendered): number {
  return body.length * 2 + entryBytes;
}
