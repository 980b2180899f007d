/** The options of the assets directory. */

import type { Address } from "../lib/text/address.ts";
import type { Option } from "./parsing.ts";
import { directoryOption, each, readServers, switchOption } from "./readers.ts";

const needsDirectory = [{ name: "assetsDir", lack: "No assets directory" }];

export const assetOptions = {
  assetsDir: directoryOption(
    "assets-dir",
    "directory of kernels and initrds, served below /assets/; default: none, and /assets/ answers 404",
  ),
  assetsDotfiles: {
    ...switchOption(
      "assets-dotfiles",
      "serve files whose names begin with a dot, such as .treeinfo, in directories below --assets-dir; never " +
        "directories such as .git, or usual names of credentials such as .netrc",
    ),
    needs: needsDirectory,
  },
};

/** Of `davit serve`. */
export const fetchAssetsFrom = {
  flag: "fetch-assets-from",
  value: "HOST[:PORT]",
  repeatable: true,
  help:
    "server from which davit may fetch spec.assets of Profiles into --assets-dir, which it must be able to write; " +
    "without PORT on ports 80 and 443; default: none, and davit fetches nothing",
  read: each(readServers),
  needs: needsDirectory,
} satisfies Option<readonly (readonly Address[])[]>;

/** Of `davit boot`. */
export const fetchAssets = {
  ...switchOption(
    "fetch-assets",
    "fetch spec.assets of Profiles from the store at --store into --assets-dir, which davit must be able to write",
  ),
  needs: needsDirectory,
};
