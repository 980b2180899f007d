/** The assets that the Profiles in the store want. Followers know the same documents, so they want the same files. */

import { decodeProfile, documentAddress } from "../model/documents.ts";
import type { DocumentChange, FeedListener } from "../model/feed.ts";
import type { ProfileAsset } from "../model/profile-asset.ts";

/** One file that Profiles ask for. Different files can have one name: then the Profiles contradict each other. */
export interface AssetClaim {
  readonly name: string;
  readonly sha256: string;
  /** Each place once, as the Profiles name them. */
  readonly urls: readonly string[];
  /** `namespace/name` of each Profile. */
  readonly profiles: readonly string[];
}

export class WantedAssets implements FeedListener {
  readonly #noteChange: () => void;
  #byProfile = new Map<string, readonly ProfileAsset[]>();

  /** @param noteChange is called after `claims` may have changed. */
  constructor(noteChange: () => void) {
    this.#noteChange = noteChange;
  }

  /** By name and digest. */
  get claims(): ReadonlyMap<string, AssetClaim> {
    const claims = new Map<string, AssetClaim>();
    for (const [profile, assets] of this.#byProfile) {
      for (const { name, sha256, url } of assets) {
        const { urls = [], profiles = [] } = claims.get(claimKey({ name, sha256 })) ?? {};
        const claim = { name, sha256, urls: [...new Set([...urls, url])], profiles: [...profiles, profile] };
        claims.set(claimKey(claim), claim);
      }
    }
    return claims;
  }

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    const former = this.#byProfile;
    this.#byProfile = new Map();
    for (const [path, text] of documents) this.#learn(path, text, former);
    this.#noteChange();
  }

  changed(changes: readonly DocumentChange[]): void {
    let isAny = false;
    for (const { path, text } of changes) isAny = this.#learn(path, text, this.#byProfile) || isAny;
    if (isAny) this.#noteChange();
  }

  /** Learns a document. What was known of it stays while it is unreadable. @returns true if it may matter. */
  #learn(path: string, text: string | undefined, former: ReadonlyMap<string, readonly ProfileAsset[]>): boolean {
    const address = documentAddress(path);
    if (address?.kind !== "profile") return false;
    const key = `${address.namespace}/${address.name}`;
    const before = former.get(key);
    const assets = text === undefined ? [] : (assetsIn(text) ?? before ?? []);
    if (assets.length > 0) this.#byProfile.set(key, assets);
    else this.#byProfile.delete(key);
    return before !== undefined || assets.length > 0;
  }
}

export function claimKey({ name, sha256 }: Pick<ProfileAsset, "name" | "sha256">): string {
  return `${sha256} ${name}`;
}

/** Returns undefined for an unreadable document. Most documents have no assets, and are not parsed. */
function assetsIn(text: string): readonly ProfileAsset[] | undefined {
  if (!text.includes('"assets":[')) return [];
  const document = decodeProfile(text);
  return document && (document.content.assets ?? []);
}
