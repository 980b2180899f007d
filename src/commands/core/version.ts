import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
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

/**
 * Reads the commit of a checkout from git.
 * @param root the checkout's directory.
 * @returns 40 hexadecimal digits, with `-dirty` behind them if tracked files differ; `unknown` outside of a checkout.
 */
export function readCommit(root: string): string {
  const git = (...words: readonly string[]) =>
    execFileSync("git", ["-C", root, ...words], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  try {
    // A copy of the sources inside of another repository has a prefix: the commit is not its own.
    if (git("rev-parse", "--show-prefix") !== "") return "unknown";
    const commit = git("rev-parse", "--verify", "HEAD");
    return git("status", "--porcelain", "--untracked-files=no") === "" ? commit : `${commit}-dirty`;
  } catch {
    // There is no git, no repository, or no commit.
    return "unknown";
  }
}
