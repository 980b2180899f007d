/**
 * The port by which the console asks the API server as the person who uses it. `kubernetes/api-callers.ts` implements
 * it.
 */

import type { JsonValue } from "./json.ts";

/** Asks the API server as the caller: it decides, and its audit log names the person. */
export interface ClusterCallers {
  /** Asks who the owner of a token is, and whether this person may list Profiles, Groups and Machines. */
  review(token: string): Promise<CallerReview>;
  /** Asks whether the owner of a token may change Machines of a namespace. Undefined if it cannot be asked now. */
  mayPatchMachines(token: string, namespace: string): Promise<boolean | undefined>;
  /** Changes the spec of a Machine. @returns undefined if it is changed, otherwise why it is not. */
  patchMachine(token: string, patch: MachinePatch): Promise<PatchRefusal | undefined>;
}

/** A change of a Machine's spec. */
export interface MachinePatch {
  /** `namespace/name`. */
  readonly machine: string;
  /** Fields of the spec, and their new values. */
  readonly spec: Readonly<Record<string, JsonValue>>;
  /** The version that the person has seen: the API server refuses the change of any other. Undefined changes any. */
  readonly seen: SeenVersion | undefined;
}

export interface SeenVersion {
  readonly uid: string;
  readonly generation: number;
}

export interface PatchRefusal {
  /** For people. */
  readonly why: string;
  /** True if the account has no right to make this change. */
  readonly isForbidden: boolean;
}

export type CallerReview =
  | { readonly kind: "admitted"; readonly name: string }
  /** The API server does not know the token. */
  | { readonly kind: "unknown" }
  /** The account may not list all that the console shows. */
  | { readonly kind: "forbidden"; readonly why: string }
  /** The API server cannot be asked now. */
  | { readonly kind: "away"; readonly why: string };
