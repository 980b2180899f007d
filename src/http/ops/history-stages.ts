/** Recognises kernels and initrds among fetched assets, by the paths in the Profile of the machine's Group. */

import type { BootFiles } from "../../boot/boot-scripts.ts";
import { plainStage, type StageOf } from "../../history/boots.ts";
import { parseInitrd } from "../../render/boot/initrd.ts";

/** The files that a Group's machines get now; undefined when it has none, or is gone. */
export type BootFilesOf = (group: string) => BootFiles | undefined;

/**
 * Names stages by the Profiles of now. A file of an earlier Profile, or one that the client names, is shown by its
 * path.
 */
export function stagesBy(bootFilesOf: BootFilesOf): StageOf {
  // Looked up once for each Group, however many requests its machines have made.
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

/** A location's path, without server and query. */
function pathOf(location: string): string {
  return location.replace(/^[a-z]+:\/\/[^/]*/i, "").replace(/[?#].*$/s, "");
}
