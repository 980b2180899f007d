/** What the chart renders for dnsmasq: the files of its ConfigMap, its pod, and the GRUBs that the pod makes. */

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { manifestsOf, type RenderOptions, rendered, within } from "./helm.ts";

/** The way of the chart to give addresses, with the image's loaders. */
export const ranges = "dnsmasq-ranges";

interface PodSpec {
  readonly initContainers: readonly Container[];
  readonly containers: readonly Container[];
}

interface Container {
  readonly command: readonly string[];
}

/** Of the DaemonSet with ranges. */
export async function dnsmasqPod(args: readonly string[]): Promise<PodSpec> {
  const all = manifestsOf(await rendered({ way: ranges, args }));
  const set = all.find(({ kind }) => kind === "DaemonSet") ?? fail("DaemonSet");
  return JSON.parse(JSON.stringify(within(within(within(set, "spec"), "template"), "spec")));
}

/** A file of its ConfigMap. */
export async function dnsmasqFile(name: string, options: RenderOptions): Promise<string> {
  const manifests = manifestsOf(await rendered(options));
  const text = manifests.map((manifest) => within(manifest, "data")[name]).find((found) => found !== undefined);
  return typeof text === "string" ? text : fail(name);
}

function fail(name: string): never {
  throw new Error(`The rendering has no ${name}`);
}

/**
 * Makes the GRUBs as the pod does, with the GRUB of this computer.
 * @param modules a directory with another GRUB's modules.
 * @returns their files.
 */
export async function makePodGrubs(
  directory: string,
  args: readonly string[],
  modules?: string,
): Promise<readonly string[]> {
  writeFileSync(join(directory, "grub.cfg"), await dnsmasqFile("grub.cfg", { way: ranges, args }));
  const { initContainers } = await dnsmasqPod(args);
  return initContainers.map(({ command: [program = "", ...words] }) => {
    const placed = words.map((word) => word.replace(/=\/(etc\/davit-dnsmasq|run)\//, `=${directory}/`));
    const own = modules === undefined ? [] : [`--directory=${modules}`];
    execFileSync(basename(program), [...placed, ...own], { stdio: "pipe" });
    return String(placed.find((word) => word.startsWith("--output="))?.slice("--output=".length));
  });
}
