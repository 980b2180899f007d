/** Converts errors of renderers into refusals, which name the field and the variable that break a config. */

import type { Soon } from "../lib/soon.ts";
import { fieldOf, isOfSecret, partAt } from "../model/objects/profile.ts";
import { RenderError } from "../render/core/render-error.ts";
import { BootError } from "./core/boot-error.ts";
import type { BootGroup, BootProfile } from "./core/known-documents.ts";

/** Calls a renderer, and converts its error into a refusal. */
export function asBroken<Result>(asked: AskedConfig, render: () => Result): Result {
  try {
    return render();
  } catch (error) {
    if (error instanceof RenderError) throw brokenConfig(error, asked);
    throw error;
  }
}

/** As `asBroken`, for a result that may be a promise. */
export function asBrokenSoon<Result>(asked: AskedConfig, render: () => Soon<Result>): Soon<Result> {
  const result = asBroken(asked, render);
  if (!(result instanceof Promise)) return result;
  return result.catch((error: unknown) =>
    asBroken(asked, () => {
      throw error;
    }),
  );
}

/** The config that a machine asked for, with its Group and Profile. */
interface AskedConfig {
  readonly group: BootGroup;
  /** Undefined if the config does not use the Profile. */
  readonly profile: BootProfile | undefined;
  /** The endpoint, such as `cloud`. */
  readonly name: string;
}

/** Returns the refusal for a renderer's error. It names the field and the variable that break the config. */
function brokenConfig(error: RenderError, asked: AskedConfig): BootError {
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
  // The Profile's arguments come first, then those of the Group.
  const own = boot?.kind === "kernel" ? boot.args.length : 0;
  const ofGroup = new Map(group.args.map((_, at) => [`args[${own + at}]`, `spec.args[${at}] of the Group`]));
  return ofGroup.get(field) ?? `spec.boot.${field}`;
}
