/** Puts into words what opens or refuses the install of a machine. */

import type { SpentGrant, Verdict } from "../../model/permits/permit.ts";
import { permitRefusals } from "../../model/refusals.ts";

/** Returns what a boot script would do to the machine's permit now. It quotes names of objects and no values. */
export function permitText(verdict: Verdict): string {
  switch (verdict.kind) {
    case "claim":
      return `open: the next boot installs the machine, and spends ${verdict.grants.map(grantText).join(" and ")}`;
    case "granted": {
      const { grant } = verdict.entry;
      return `claimed: the machine spent ${grant === undefined ? "a grant" : grantText(grant)}, and may ask again`;
    }
    case "disk": {
      const why = verdict.why === undefined ? "" : `: ${permitRefusals[verdict.why]}`;
      return `closed: the machine boots as spec.install.then of the Profile says${why}`;
    }
    case "refused":
      return `closed: ${permitRefusals[verdict.why]}`;
  }
}

function grantText({ key, generation }: SpentGrant): string {
  return `generation ${generation} of ${key}`;
}
