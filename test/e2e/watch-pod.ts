import { expect } from "vitest";
import type { Release } from "./release.ts";

/** @returns a wait for another pod of this name that is ready. */
export async function watchPod(release: Release, name: string): Promise<() => Promise<void>> {
  const path = '{.metadata.uid} {.status.conditions[?(@.type=="Ready")].status}';
  const look = async () => await release.look(`pod/${name}`, path).catch(() => "");
  const [before = ""] = (await look()).split(" ");
  return async () => {
    await expect.poll(look).toMatch(new RegExp(`^(?!${before}).+ True$`));
  };
}
