/**
 * Checks where kernels and initrds come from, as far as a spec alone shows: it finds HTTP URLs that no client can
 * follow. Values from templates and the client's own tokens are unknown here, and other schemes are left to the client.
 * Pure.
 */

import { parseInitrd } from "../../render/boot/initrd.ts";
import type { Finding } from "../status/conditions.ts";

/** What is wrong with a kernel's or an initrd's location; undefined for a location that may be good. */
export function locationFinding(text: string): Finding | undefined {
  if (/\{\{|\$\{/.test(text)) return undefined;
  const [location = ""] = parseInitrd(text).location.split(/\s/, 1);
  if (!/^https?:/i.test(location)) return undefined;
  // `URL` forgives missing slashes, as browsers do; firmware does not.
  if (/^https?:\/\/[^/]/i.test(location) && URL.canParse(location)) return undefined;
  const message = "is no URL that a machine can follow: write http://HOST:PORT/PATH";
  return { type: "Accepted", reason: "InvalidURL", message, code: "invalid-url", place: { field: "" } };
}
