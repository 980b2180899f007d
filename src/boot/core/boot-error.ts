/** The error by which davit refuses a config to a machine. */

import { type BootRefusal, bootRefusals } from "../../model/refusals.ts";

/** What davit knows of a refused config, for logs. */
export interface BootErrorSubject {
  /** Only for assetMissing: the path of the file, which the machine's console shows. It has no query. */
  readonly asset?: string | undefined;
  /** The group's `namespace/name`, if one was selected. */
  readonly group?: string | undefined;
  /** The Profile's `namespace/name`. */
  readonly profile?: string | undefined;
  /** The problem in davit's own words. It can name fields and variables, but it never quotes their values. */
  readonly problem?: string | undefined;
  readonly cause?: unknown;
}

export class BootError extends Error {
  override readonly name = "BootError";
  readonly reason: BootRefusal;
  readonly group: string | undefined;
  readonly profile: string | undefined;
  readonly problem: string | undefined;
  readonly asset: string | undefined;

  constructor(reason: BootRefusal, { group, profile, problem, asset, cause }: BootErrorSubject = {}) {
    const { words } = bootRefusals[reason];
    super(asset === undefined ? words : `${words}: ${asset}`, { cause });
    this.reason = reason;
    this.group = group;
    this.profile = profile;
    this.problem = problem;
    this.asset = asset;
  }
}
