/** Options of the commands that work on manifests without a server, see `options/serve.ts`. */

import { each, type Option, one, readNamespace, readText } from "../options/parsing.ts";
import type { Paths } from "../options/serve.ts";

/** The mark of standard input in `--manifests`. */
export const inputMark = "-";

export const offlineOptions = {
  manifests: {
    flag: "manifests",
    value: "DIR",
    repeatable: true,
    help: "read Profiles, Groups, ConfigMaps and Secrets from this directory; -, or none: from standard input",
    read: each(readText),
  } satisfies Option<readonly string[]>,
  adminNamespace: {
    flag: "admin-namespace",
    value: "NAME",
    help: "as for davit serve: the only namespace in which matchAll and priority count",
    read: one(readNamespace),
  } satisfies Option<string>,
};

/** Directories that do not exist. */
export function manifestProblems(manifests: readonly string[], { isDirectory }: Paths): readonly string[] {
  return manifests
    .filter((path) => path !== inputMark && !isDirectory(path))
    .map((path) => `No directory "${path}": --manifests needs one that exists`);
}
