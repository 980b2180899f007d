/** When a boot of a machine begins: for the ids of boots (`boot-ids.ts`) and the boots of the history (`boots.ts`). */

import { isLoader } from "../../model/objects/profile.ts";
import { firstRefusal, type SeenRequest } from "./request.ts";

/**
 * A longer pause between requests ends a boot. It is so long because some servers test memory for minutes, and a large
 * initrd takes minutes on a slow link.
 */
export const bootGapMs = 10 * 60_000;

/** The endpoints that firmware requests first. */
const firstStages: ReadonlySet<string> = new Set(["boot.ipxe", "boot.ipxe.0", "chain.ipxe"]);

/** True for an endpoint that firmware requests first. */
export function isFirstStage(endpoint: string): boolean {
  return firstStages.has(endpoint);
}

/** True if the machine got a script that boots it. */
export function isScriptGiven({ endpoint, isHead, status }: Pick<SeenRequest, "endpoint" | "isHead" | "status">) {
  return isLoader(endpoint) && !isHead && status < firstRefusal;
}

/** What is known of a machine's boot before a request. */
interface BootSoFar {
  /** The time since its last request began or its last answer ended. */
  readonly silentMs: number;
  /** True if the machine got a script that boots it. */
  readonly hasScript: boolean;
}

/**
 * True for a request with which a new boot begins. A script request begins one only if the boot so far has a script.
 * Otherwise it belongs to this boot: a refused client retries, UEFI sends HEAD first, and GRUB itself may be fetched
 * from the assets.
 */
export function beginsBoot(endpoint: string, { silentMs, hasScript }: BootSoFar): boolean {
  return silentMs > bootGapMs || firstStages.has(endpoint) || (isLoader(endpoint) && hasScript);
}
