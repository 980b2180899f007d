import { expect } from "vitest";
import type { Stage } from "./stage.ts";

/** Appends arguments to the quickstart's Profile, and waits until machines get them. */
export async function editProfile(stage: Stage, words: readonly string[]): Promise<void> {
  const patch = words.map((value) => ({ op: "add", path: "/spec/boot/args/-", value }));
  await stage.release.kubectl([
    "patch",
    "profiles.davit.dev",
    "quickstart",
    "--type=json",
    `--patch=${JSON.stringify(patch)}`,
  ]);
  await expect.poll(() => stage.script()).toContain(words.at(-1));
}
