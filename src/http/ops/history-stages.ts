/** Tells kernels and initrds among the assets that machines fetched: by the paths that their Group's Profile names. */

import type { BootFiles } from "../../boot/boot-scripts.ts";
import { plainStage, type StageOf } from "../../history/boots.ts";
import { parseInitrd } from "../../render/initrd.ts";

/** The files that a Group's machines are told now; undefined when it has none, or is gone. */
export type BootFilesOf = (group: string) => BootFiles | undefined;

/**
 * Names stages by what Profiles say now: a file that they named before, or that they leave to the client to name, goes by
 * its path.
 */
export function stagesBy(bootFilesOf: BootFilesOf): StageOf {
  // Asked once for each Group, however many requests its machines have made.
  const known = new Map<string, BootFiles | undefined>();
  return (request, group) => {
    const { path, endpoint } = request;
    if (endpoint !== "assets" || path === undefined || group === undefined) return plainStage(request);
    if (!known.has(group)) known.set(group, bootFilesOf(group));
    const files = known.get(group);
    if (files !== undefined && pathOf(files.kernel) === path) return "kernel";
    const isInitrd = files?.initrd.some((text) => pathOf(parseInitrd(text).location) === path) === true;
    return isInitrd ? "initrd" : plainStage(request);
  };
}

/** A location's path, without the server before it and the query behind it. */
function pathOf(location: string): string {
  return location.replace(/^[a-z]+:\/\/[^/]*/i, "").replace(/[?#].*$/s, "");
}
