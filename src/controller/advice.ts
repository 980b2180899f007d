/** What an object may say and yet hardly means: told in its status, and never in the way of a boot. Pure. */

import type { GroupSpec } from "../model/group.ts";
import type { KernelBoot, ProfileSpec } from "../model/profile.ts";
import { sharedNames } from "../render/metadata.ts";

const zeroUuid = "00000000-0000-0000-0000-000000000000";

/** Advice on a Profile, a sentence each. */
export function profileAdvice({ boot }: ProfileSpec): readonly string[] {
  return boot?.kind === "kernel" ? [...argumentAdvice(boot), ...initrdAdvice(boot)] : [];
}

/** Advice on a Group, a sentence each. */
export function groupAdvice({ selector, metadata }: GroupSpec): readonly string[] {
  const uuid = selector.uuid === zeroUuid ? ["selector uuid is all zeros, which many cheap boards share"] : [];
  const names = sharedNames(metadata).map(
    (name) => `metadata has more than one ${name}, and /metadata shows one of them`,
  );
  return [...uuid, ...names];
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
