/** The port by which the Try screen renders a manifest that is not applied. Nothing is stored. */

import type { FindingSeverity } from "../../../model/objects/findings.ts";
import type { Preview } from "../../ops/preview.ts";

/**
 * Tries a manifest over the present objects.
 * @param rawQuery what the machine would send; undefined for the findings alone.
 */
export type TryManifest = (manifest: string, rawQuery: string | undefined) => Promise<TryOutcome>;

/**
 * `busy`: another manifest is tried now. `late` and `lost`: it took too long or too much memory. `notReading`: this
 * davit does not read the source.
 */
export type TryOutcome = TriedManifest | { readonly kind: "busy" | "late" | "lost" | "notReading" };

export interface TriedManifest {
  readonly kind: "tried";
  readonly objects: readonly TriedObject[];
  /** As of `davit lint`, about the manifest alone. */
  readonly findings: readonly TriedFinding[];
  /** What the machine would get without the manifest. Absent without a query, or if davit would refuse the manifest. */
  readonly before?: Preview;
  /** What it would get with the manifest; absent with `before`. */
  readonly preview?: Preview;
}

export interface TriedObject {
  /** `KIND/NAMESPACE/NAME`. */
  readonly key: string;
  /** True if an object of this name is there already. */
  readonly isPresent: boolean;
}

export interface TriedFinding {
  readonly line: number;
  readonly column: number;
  readonly severity: FindingSeverity;
  readonly code: string;
  readonly message: string;
}

/** The longest manifest in UTF-16 units. */
export const maxManifestLength = 1024 * 1024;
