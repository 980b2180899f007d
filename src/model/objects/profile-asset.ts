/** Files of the assets directory that davit fetches for Profiles, and the port by which the controller knows them. */

/** An entry of `spec.assets`. */
export interface ProfileAsset {
  /** The path below `/assets/`. */
  readonly name: string;
  /** Where the file is. Its query may be a secret, so no message quotes it. */
  readonly url: string;
  /** 64 hexadecimal digits in lower case. */
  readonly sha256: string;
}

/** How far davit is with an asset. The reasons are those of the condition `AssetsReady`, the worst first. */
export const assetReasons = ["Conflict", "HostNotAllowed", "FetchFailed", "Waiting", "Fetching", "Fetched"] as const;

export interface AssetState {
  readonly reason: (typeof assetReasons)[number];
  /** What follows the name of the asset in a sentence. It changes at most every ten seconds. */
  readonly message: string;
}

export interface AssetStates {
  /** Undefined for an asset that davit does not know yet. */
  stateOf(asset: Pick<ProfileAsset, "name" | "sha256">): AssetState | undefined;
}

/** The files that davit lacked when a machine wanted to install, whether Profiles list them or not. */
export interface MissingFiles {
  /** Returns the paths, such as `/assets/linux`, that keep machines of a Profile (`namespace/name`) waiting now. */
  of(profile: string): readonly string[];
  /** The Profiles with such files. */
  readonly profiles: readonly string[];
}

/** The path of the store's listener below which followers get assets. */
export const storeAssetsPrefix = "/davit/v1/assets/";

/** Returns the name of an asset as a part of a URL. */
export function assetPath(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}
