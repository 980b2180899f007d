import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readCommit } from "../../lib/files/commit.ts";
import { packageRoot } from "../../lib/package-root.ts";
import { isJsonObject } from "../../model/json.ts";
import type { CliCommand } from "./host.ts";

/** The commit that a bundle was built from. The bundler writes it here; in a checkout it does not exist. */
declare const DAVIT_COMMIT: string | undefined;

/** `davit version`: prints the version and the commit. */
export const version: CliCommand = {
  run: async (_args, host) => {
    const commit = typeof DAVIT_COMMIT === "string" ? DAVIT_COMMIT : readCommit(fileURLToPath(packageRoot));
    host.write(`davit ${readVersion()} (commit ${commit})\n`);
    return 0;
  },
};

/** Returns the version in package.json. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("package.json", packageRoot), "utf8"));
  return isJsonObject(manifest) && typeof manifest.version === "string" ? manifest.version : "unknown";
}
