/** Files and programs of a package that is built. */

import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";

/** The checkout. */
export const root = join(import.meta.dirname, "../..");

/** What Node calls it. */
export type Processor = "x64" | "arm64";

/** Copies a file, or a directory with what is in it. */
export function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, dereference: true });
}

/** Modes that do not depend on the umask: everyone reads, nobody executes. */
export function setModes(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) setModes(path);
    else if (!entry.isSymbolicLink()) chmodSync(path, 0o644);
  }
}

/** Runs a program in the checkout, and returns what it prints. */
export function run(program: string, ...words: readonly string[]): string {
  return execFileSync(program, words, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
}
