/** Options of the commands that work on manifests without a server. */

import type { Option } from "../../options/parsing.ts";
import { each, one, readNamespace, readText } from "../../options/readers.ts";

/** The value of `--manifests` that means standard input. */
export const inputMark = "-";

export const offlineOptions = {
  manifests: {
    flag: "manifests",
    value: "DIR",
    repeatable: true,
    help: "read Profiles, Groups, ConfigMaps and Secrets from this directory; -, or none: from standard input",
    read: each(readText),
    mustExist: { kind: "directory", stdin: inputMark },
  } satisfies Option<readonly string[]>,
  adminNamespace: {
    flag: "admin-namespace",
    value: "NAME",
    help: "as for davit serve: the only namespace in which matchAll and priority count",
    read: one(readNamespace),
  } satisfies Option<string>,
};
