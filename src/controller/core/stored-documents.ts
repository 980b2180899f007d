/**
 * Holds the controller's documents in memory. `Documents` follows the store with it. Commands without a store give it
 * the documents that they have.
 */

import type { DocumentChange, FeedListener } from "../../model/feed.ts";
import {
  decodeGroup,
  decodeProfile,
  decodeSynced,
  documentAddress,
  type GroupDocument,
  groupPath,
  groupsRoot,
  machinePath,
  machinesRoot,
  ownerName,
  type ProfileDocument,
  profilePath,
  profilesRoot,
} from "../../model/objects/documents.ts";
import { decodeMachine, type MachineDocument } from "../../model/objects/machine.ts";
import type { ObjectName, OwnName } from "../../model/objects/source.ts";
import { type StoredSecret, StoredSecrets } from "./stored-secrets.ts";

/** What the store holds of a Profile now. */
export interface StoredProfile {
  readonly document: ProfileDocument | undefined;
  /** Its texts of Secrets, by the names that they have. */
  readonly secrets: ReadonlyMap<string, StoredSecret>;
}

export class StoredDocuments implements FeedListener {
  readonly #storeIndex: () => number;
  protected readonly texts = new Map<string, string>();
  protected readonly secrets: StoredSecrets;
  /**
   * `complete` of the stored sync mark. It is decoded when the mark changes, because every Group of a step reads it.
   */
  #isComplete = false;
  /** The document that was decoded last, and its text. */
  #lastProfile: { readonly text: string; readonly document: ProfileDocument | undefined } | undefined;

  /** @param storeIndex returns the index of the last change. */
  constructor(storeIndex: () => number, secrets = new StoredSecrets()) {
    this.#storeIndex = storeIndex;
    this.secrets = secrets;
  }

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    this.texts.clear();
    this.secrets.clear();
    this.#isComplete = false;
    for (const [path, text] of documents) this.take(path, text);
  }

  changed(changes: readonly DocumentChange[]): void {
    for (const { path, text } of changes) this.take(path, text);
  }

  /**
   * The index for claims made now: the store's index. It is 0 until the whole source was read once, because a part that
   * is read late may hold the older Groups. So all claims that are made before that are equally old.
   */
  get claimIndex(): number {
    return this.#isComplete ? this.#storeIndex() : 0;
  }

  profile(namespace: string, name: string): StoredProfile {
    const text = this.texts.get(profilePath(namespace, name));
    const secrets = this.secrets.of(namespace, name);
    return { document: text === undefined ? undefined : this.#decoded(text), secrets };
  }

  /** Keeps the last one: each Group of a step reads its Profile's document, and thousands may have one Profile. */
  #decoded(text: string): ProfileDocument | undefined {
    if (this.#lastProfile?.text !== text) this.#lastProfile = { text, document: decodeProfile(text) };
    return this.#lastProfile.document;
  }

  group(namespace: string, name: string): GroupDocument | undefined {
    const text = this.texts.get(groupPath(namespace, name));
    return text === undefined ? undefined : decodeGroup(text);
  }

  machine(namespace: string, name: string): MachineDocument | undefined {
    const text = this.texts.get(machinePath(namespace, name));
    return text === undefined ? undefined : decodeMachine(text);
  }

  /** The names of all Profiles, Groups and Machines that have a document. A Group with a twin is returned twice. */
  *names(): Iterable<ObjectName> {
    for (const path of this.texts.keys()) {
      const name = objectAt(path);
      if (name !== undefined) yield name;
    }
  }

  /** The text at a path; undefined for a secret's text. */
  textAt(path: string): string | undefined {
    return this.texts.get(path);
  }

  /** Path and text of every document of an object, sorted by path. A sync's revision is their hash. */
  contents(): readonly (readonly [path: string, text: string])[] {
    const own = [...this.texts].filter(([path]) => isObjectPath(path));
    return own.toSorted(([a], [b]) => (a < b ? -1 : 1));
  }

  protected take(path: string, text: string | undefined): void {
    const address = documentAddress(path);
    if (address?.kind === "synced") this.#isComplete = decodeSynced(text ?? "")?.complete === true;
    if (address?.kind === "secret") {
      this.secrets.take(path, text);
    } else if (text === undefined) {
      this.texts.delete(path);
    } else {
      this.texts.set(path, text);
    }
  }
}

/** Returns the object whose document is at a path; for a twin its Group. */
export function objectAt(path: string): OwnName | undefined {
  const address = documentAddress(path);
  if (address?.kind === "profile") return { kind: "Profile", namespace: address.namespace, name: address.name };
  if (address?.kind === "machine") return { kind: "Machine", namespace: address.namespace, name: address.name };
  if (address?.kind !== "group") return undefined;
  return { kind: "Group", namespace: address.namespace, name: ownerName(address.name) };
}

function isObjectPath(path: string): boolean {
  return [profilesRoot, groupsRoot, machinesRoot].some((root) => path.startsWith(`${root}/`));
}
