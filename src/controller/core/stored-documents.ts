/**
 * Holds the controller's documents in memory. `Documents` fills it from the store, and follows the store. Commands
 * without a store fill it with the documents that they have.
 */

import { hash } from "node:crypto";
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
import { clearTexts, type SecretTexts } from "../../model/objects/secret-texts.ts";
import type { ObjectName, OwnName } from "../../model/objects/source.ts";

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
  /** The Profiles' documents that were read since they changed, by path: thousands of Groups may have one Profile. */
  readonly #profiles = new Map<string, ProfileDocument | undefined>();

  /** @param storeIndex returns the index of the last change. */
  constructor(storeIndex: () => number, secrets = new StoredSecrets()) {
    this.#storeIndex = storeIndex;
    this.secrets = secrets;
  }

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    this.texts.clear();
    this.secrets.clear();
    this.#profiles.clear();
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

  /** Returns what the store holds of a Profile: the same document until it changes. */
  profile(namespace: string, name: string): StoredProfile {
    const path = profilePath(namespace, name);
    const text = this.texts.get(path);
    if (text !== undefined && !this.#profiles.has(path)) this.#profiles.set(path, decodeProfile(text));
    return { document: this.#profiles.get(path), secrets: this.secrets.of(namespace, name) };
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
    if (this.texts.get(path) !== text) this.#profiles.delete(path);
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

/** What the store holds of a Secret's text. */
interface StoredSecret {
  /** False if davit lacks the key, or cannot decrypt the text by it. */
  readonly isReadable: boolean;
  /** Reads the text, with the name that the text gets now. Undefined if `isReadable` is false. */
  readonly read: () => NamedText | undefined;
}

/** A Secret's text, and its name in the store. */
interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** How the texts are stored. */
export type StoredTexts = Pick<SecretTexts, "nameOf" | "encode" | "decode">;

const inTheClear: StoredTexts = clearTexts((text) => hash("sha256", text, "hex"));
const none: ReadonlyMap<string, StoredSecret> = new Map();

/** The texts of Secrets as the store has them, by the Profiles that serve them. */
export class StoredSecrets {
  readonly #texts: StoredTexts;
  /** By namespace/profile, then by the name of the text. */
  readonly #secrets = new Map<string, Map<string, StoredSecret>>();

  constructor(texts = inTheClear) {
    this.#texts = texts;
  }

  clear(): void {
    this.#secrets.clear();
  }

  /** Returns the texts of a Profile, by their names. */
  of(namespace: string, profile: string): ReadonlyMap<string, StoredSecret> {
    return this.#secrets.get(`${namespace}/${profile}`) ?? none;
  }

  /** @param stored what the store has at the path of a text now; undefined if it was removed. */
  take(path: string, stored: string | undefined): void {
    const address = documentAddress(path);
    if (address?.kind !== "secret") return;
    const id = `${address.namespace}/${address.profile}`;
    const secrets = this.#secrets.get(id) ?? new Map<string, StoredSecret>();
    if (stored === undefined) secrets.delete(address.text);
    else secrets.set(address.text, this.#stored(path, stored));
    if (secrets.size === 0) this.#secrets.delete(id);
    else this.#secrets.set(id, secrets);
  }

  /** Encrypts the text of a Secret. So it is encrypted wherever the store puts it, or sends it. */
  asStored<Change extends DocumentChange>(change: Change): Change {
    const { path, text } = change;
    if (text === undefined || documentAddress(path)?.kind !== "secret") return change;
    return { ...change, text: this.#texts.encode(path, text) };
  }

  #stored(path: string, stored: string): StoredSecret {
    const read = () => {
      const decoded = this.#texts.decode(path, stored);
      return "text" in decoded ? { name: this.#texts.nameOf(decoded.text), text: decoded.text } : undefined;
    };
    return { isReadable: "text" in this.#texts.decode(path, stored), read };
  }
}
