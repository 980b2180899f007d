/** What an object may say and yet hardly means: told in its status, and never in the way of a boot. Pure. */

import type { GroupSpec } from "../model/group.ts";
import type { JsonObject } from "../model/json.ts";
import type { KernelBoot, ProfileSpec } from "../model/profile.ts";
import { sharedNames } from "../render/metadata.ts";
import { RenderError } from "../render/render-error.ts";

const zeroUuid = "00000000-0000-0000-0000-000000000000";

/** Advice on a Profile, a sentence each. */
export function profileAdvice({ boot }: ProfileSpec): readonly string[] {
  return boot?.kind === "kernel" ? [...argumentAdvice(boot), ...initrdAdvice(boot)] : [];
}

/** Advice on a Group, a sentence each. */
export function groupAdvice({ selector, metadata }: GroupSpec): readonly string[] {
  const uuid = selector.uuid === zeroUuid ? ["selector uuid is all zeros, which many cheap boards share"] : [];
  return [...uuid, ...metadataAdvice(metadata)];
}

// A message has at most 32 KiB in the CRDs, and a name may be as long as its keys together.
const maxNames = 10;
const maxNameLength = 253;

function metadataAdvice(metadata: JsonObject): readonly string[] {
  const names = namesOrReason(metadata);
  if (typeof names === "string") return [`/metadata is answered 500: ${names}`];
  const told = names.slice(0, maxNames).map((name) => {
    const shown = name.length > maxNameLength ? `${name.slice(0, maxNameLength)}...` : name;
    return `metadata has more than one ${shown}, and /metadata shows one of them`;
  });
  return names.length > maxNames ? [...told, `so it is with ${names.length - maxNames} other names`] : told;
}

/** The names that several values share, or why the metadata cannot be written at all. */
function namesOrReason(metadata: JsonObject): readonly string[] | string {
  try {
    return sharedNames(metadata);
  } catch (error) {
    if (!(error instanceof RenderError)) throw error;
    return error.message;
  }
}

// iPXE splits a line into words, and takes these ones for its own (measured with iPXE 1.0.0+).
function argumentAdvice({ args }: KernelBoot): readonly string[] {
  return args.flatMap((arg, at) => {
    if (arg.startsWith("#")) return [`boot.args[${at}] begins with #: iPXE takes the rest of the line for a comment`];
    if (["||", "&&", ";"].includes(arg)) return [`boot.args[${at}] is ${arg}: iPXE ends the command there`];
    return [];
  });
}

function initrdAdvice({ initrd, args, efiInitrd }: KernelBoot): readonly string[] {
  if (initrd.length === 0 || efiInitrd || args.some((arg) => /(^|\s)initrd=/.test(arg))) return [];
  return ["boot.initrd is not found by kernels that an older UEFI iPXE starts: set boot.efiInitrd"];
}
