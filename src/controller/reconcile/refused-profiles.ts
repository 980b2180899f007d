/** Which Profiles are refused: their Groups report it, and davit looks at them again when that changes. */

import { type ObjectName, objectKey, type SourceView } from "../../model/source.ts";

export class RefusedProfiles {
  readonly #keys = new Set<string>();

  /** True when the newest version of a Profile is refused and was not at the last call, or the other way round. */
  takeChange(profile: ObjectName, view: Pick<SourceView, "refusalOf">): boolean {
    const key = objectKey(profile);
    const wasRefused = this.#keys.delete(key);
    const isRefused = view.refusalOf(profile) !== undefined;
    if (isRefused) this.#keys.add(key);
    return isRefused !== wasRefused;
  }
}
