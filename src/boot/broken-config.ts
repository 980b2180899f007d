/** Names the field and the variable that break a config. */

import { fieldOf, isOfSecret, partAt } from "../model/profile.ts";
import type { RenderError } from "../render/core/render-error.ts";
import { BootError } from "./boot-error.ts";
import type { BootGroup, BootProfile } from "./known-documents.ts";

/** The config that a machine asked for, with its Group and Profile. */
export interface AskedConfig {
  readonly group: BootGroup;
  /** Undefined if the config does not use it. */
  readonly profile: BootProfile | undefined;
  /** The endpoint, such as `cloud`. */
  readonly name: string;
}

/** The refusal for a renderer's error. */
export function brokenConfig(error: RenderError, asked: AskedConfig): BootError {
  const { group, profile, name } = asked;
  const part = partAt(name);
  const isSecret = part !== undefined && isOfSecret(profile?.content.templates[part]);
  const field = profile && (part === undefined ? bootField(error, asked, profile) : `spec.${fieldOf(part)}`);
  const problem = `${field === undefined ? "" : `${field}: `}${error.problem(isSecret)}`;
  return new BootError("broken", { group: group.id, ...(profile && { profile: profile.id }), problem, cause: error });
}

function bootField({ field }: RenderError, { name, group }: AskedConfig, { content }: BootProfile): string {
  const { boot, grubScript } = content;
  if (name === "grub" && grubScript !== undefined) return "spec.boot.grubScript";
  if (boot?.kind === "script") return "spec.boot.script";
  if (field === undefined) return "spec.boot";
  // The Group's arguments follow those of its Profile.
  const own = boot?.kind === "kernel" ? boot.args.length : 0;
  const ofGroup = new Map(group.args.map((_, at) => [`args[${own + at}]`, `spec.args[${at}] of the Group`]));
  return ofGroup.get(field) ?? `spec.boot.${field}`;
}
