/**
 * The newest version of each resource that davit has seen. It outlives the watch and the process: a davit that starts,
 * or begins to lead, gets it from the store. So it notices a list that shows the past (decision 0023).
 */

import type { SourceVersions } from "../../../model/objects/source.ts";
import { isOlder } from "./gaps.ts";

export class SeenVersions {
  #versions: SourceVersions;

  constructor(versions: SourceVersions = {}) {
    this.#versions = versions;
  }

  /** By resource, such as `groups`. A new object after each change. */
  get all(): SourceVersions {
    return this.#versions;
  }

  /** Undefined for a resource that davit has never seen. */
  of(resource: string): string | undefined {
    return this.#versions[resource];
  }

  /** Takes a version that the API server has shown, unless a later one is known. */
  note(resource: string, version: string): void {
    const known = this.of(resource);
    if (known === undefined || isOlder(known, version)) this.reset(resource, version);
  }

  /** Takes a version even if a later one is known: the API server went back to it for good. */
  reset(resource: string, version: string): void {
    this.#versions = { ...this.#versions, [resource]: version };
  }
}
