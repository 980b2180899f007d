/** The Linux that machines boot, as boot-assets.sh builds it. */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

/** Of Debian. */
export type Architecture = "amd64" | "arm64";

/** @param directory what `/assets/quickstart/` serves. */
export async function buildBootAssets(directory: string, architecture: Architecture): Promise<void> {
  await promisify(execFile)(join(import.meta.dirname, "boot-assets.sh"), [directory, architecture]);
}

/** Where a file is that boot-assets.sh unpacked from a package which is not installed. */
export function packageCache(architecture: Architecture, path: string): string {
  const folder = architecture === "amd64" ? "boot-assets" : `boot-assets-${architecture}`;
  return join(import.meta.dirname, "../../.cache", folder, path);
}
