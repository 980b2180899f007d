import { execFileSync } from "node:child_process";

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
