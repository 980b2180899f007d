/** The assets that Profiles in the store list. Followers have the same documents, so they fetch the same files. */

import type { DocumentChange, FeedListener } from "../model/feed.ts";
import { decodeProfile, documentAddress } from "../model/objects/documents.ts";
import { installs, type ProfileAsset } from "../model/objects/profile.ts";

/** One file that Profiles list. If Profiles list different files of one name, they contradict each other. */
export interface AssetDemand {
  readonly name: string;
  readonly sha256: string;
  /** Distinct, in the order of the Profiles. */
  readonly urls: readonly string[];
  /** `namespace/name` of each Profile. */
  readonly profiles: readonly string[];
}

interface ProfileAssets {
  readonly assets: readonly ProfileAsset[];
  readonly isInstall: boolean;
  /** By name, the digest of the file that davit checked last for this Profile. */
  readonly checked: Map<string, string>;
}

/** A file that davit has checked, and the Profiles that wanted it then. */
export type CheckedDemand = Pick<AssetDemand, "name" | "sha256" | "profiles">;

export class ProfileAssetIndex implements FeedListener {
  readonly #noteChange: () => void;
  readonly #checkListeners = new Set<(demand: CheckedDemand) => void>();
  #byProfile = new Map<string, ProfileAssets>();
  /** By name, the digests that each Profile accepts. Undefined until they are needed. */
  #accepted: ReadonlyMap<string, readonly ReadonlySet<string>[]> | undefined;

  /** @param noteChange is called after `demands` may have changed. */
  constructor(noteChange: () => void) {
    this.#noteChange = noteChange;
  }

  /** By name and digest. */
  get demands(): ReadonlyMap<string, AssetDemand> {
    const demands = new Map<string, AssetDemand>();
    for (const [profile, { assets }] of this.#byProfile) {
      for (const { name, sha256, url } of assets) {
        const { urls = [], profiles = [] } = demands.get(demandKey({ name, sha256 })) ?? {};
        const demand = { name, sha256, urls: [...new Set([...urls, url])], profiles: [...profiles, profile] };
        demands.set(demandKey(demand), demand);
      }
    }
    return demands;
  }

  /** True for a name that a Profile lists. */
  lists(name: string): boolean {
    return this.#acceptedByName().has(name);
  }

  /**
   * True if davit may send a file under this name: each Profile that lists the name lists this digest. A Profile that
   * does not install may also have listed it when davit last checked a file of this name. True for any file under a
   * name that no Profile lists.
   */
  accepts(name: string, sha256: string): boolean {
    return (this.#acceptedByName().get(name) ?? []).every((digests) => digests.has(sha256));
  }

  /**
   * Records that davit has checked the file of a demand. If one of its Profiles later lists another digest, the
   * machines of that Profile may still get this file, until davit has checked the next one or restarts. Profiles that
   * install accept only what they list now.
   */
  noteChecked({ name, sha256, profiles }: CheckedDemand): void {
    for (const profile of profiles) this.#byProfile.get(profile)?.checked.set(name, sha256);
    this.#accepted = undefined;
    for (const listener of this.#checkListeners) listener({ name, sha256, profiles });
  }

  /** Calls `listener` for each checked file, now and later. @returns a function that ends these calls. */
  onChecked(listener: (demand: CheckedDemand) => void): () => void {
    for (const [profile, { checked }] of this.#byProfile) {
      for (const [name, sha256] of checked) listener({ name, sha256, profiles: [profile] });
    }
    this.#checkListeners.add(listener);
    return () => this.#checkListeners.delete(listener);
  }

  #acceptedByName(): ReadonlyMap<string, readonly ReadonlySet<string>[]> {
    if (this.#accepted !== undefined) return this.#accepted;
    const accepted = new Map<string, readonly ReadonlySet<string>[]>();
    for (const profile of this.#byProfile.values()) {
      for (const [name, digests] of acceptedBy(profile)) accepted.set(name, [...(accepted.get(name) ?? []), digests]);
    }
    this.#accepted = accepted;
    return accepted;
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

  /** Takes over a document. An unreadable one changes nothing. @returns true if demands may have changed. */
  #learn(path: string, text: string | undefined, former: ReadonlyMap<string, ProfileAssets>): boolean {
    const address = documentAddress(path);
    if (address?.kind !== "profile") return false;
    const key = `${address.namespace}/${address.name}`;
    const before = former.get(key);
    const now = text === undefined ? noAssets : (assetsIn(text) ?? before ?? noAssets);
    this.#accepted = undefined;
    if (now.assets.length === 0) return this.#byProfile.delete(key) || before !== undefined;
    const names = new Set(now.assets.map(({ name }) => name));
    const checked = new Map([...(before?.checked ?? [])].filter(([name]) => names.has(name)));
    this.#byProfile.set(key, { ...now, checked });
    return true;
  }
}

export function demandKey({ name, sha256 }: Pick<ProfileAsset, "name" | "sha256">): string {
  return `${sha256} ${name}`;
}

/** Returns, for each name that a Profile lists, the digests of the files that its machines may get. */
function acceptedBy({ assets, checked, isInstall }: ProfileAssets): ReadonlyMap<string, ReadonlySet<string>> {
  const accepted = new Map<string, Set<string>>();
  for (const { name, sha256 } of assets) {
    const last = isInstall ? undefined : checked.get(name);
    accepted.set(name, new Set([...(accepted.get(name) ?? []), sha256, last ?? sha256]));
  }
  return accepted;
}

/** Returns undefined for an unreadable document. Most documents have no assets, and are not parsed. */
function assetsIn(text: string): Omit<ProfileAssets, "checked"> | undefined {
  if (!text.includes('"assets":[')) return noAssets;
  const document = decodeProfile(text);
  return document && { assets: document.content.assets ?? [], isInstall: installs(document.content) };
}

const noAssets: Omit<ProfileAssets, "checked"> = { assets: [], isInstall: false };
