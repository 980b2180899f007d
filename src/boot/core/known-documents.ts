/** The store's documents as the boot service knows them: decoded, by the names of their objects. */

import type { JsonObject } from "../../model/json.ts";
import type { Labels } from "../../model/labels/labels.ts";
import {
  decodeGroup,
  decodeProfile,
  decodeSynced,
  documentAddress,
  type SyncedDocument,
} from "../../model/objects/documents.ts";
import { type Group, isSelecting, toGroup } from "../../model/objects/group.ts";
import { installs, type ProfileContent, type TemplatePart } from "../../model/objects/profile.ts";
import type { SecretReader } from "../../model/objects/secret-texts.ts";
import type { GrubSource } from "../../render/boot/own-scripts.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import type { GroupLines } from "../../render/metadata/metadata.ts";
import { type BootMachine, KnownMachines } from "./known-machines.ts";
import { KnownSecrets } from "./known-secrets.ts";
import { KnownTombstones } from "./known-tombstones.ts";

/** A Group as selection needs it. A changed Group is a new object. */
export interface BootGroup extends Group, RenderedTexts {
  /** The variable `machine` of templates. Undefined unless the Group is that of one Machine (`MachineGroups`). */
  readonly machine: JsonObject | undefined;
}

/**
 * Texts of a Group that do not depend on the request. The Group itself holds them, not a map beside it. With 100,000
 * Groups, each further object on the way to a text costs a wait for memory. It would also use up part of the 2 KiB that
 * a Group may take.
 */
interface RenderedTexts {
  /** The script for iPXE. */
  script: KeptText | undefined;
  /** The source of the config for GRUB. The config also contains parts of the request. */
  boot: KeptBoot | undefined;
  /** The Group's part of `/metadata`. */
  lines: GroupLines | undefined;
  /** The Profile's metadata from which `lines` were made. */
  defaults: JsonObject | undefined;
  /** See `KeptConfigs`. Nearly every Group has one config or none. */
  configs: KeptConfig | readonly KeptConfig[] | undefined;
}

/** A text made from a Group and the version `profile` of its Profile. */
export interface KeptText extends Rendered {
  readonly profile: BootProfile;
  /** The URL of davit with which it was made: davit has two, for HTTP and HTTPS. */
  readonly davitUrl: string;
}

export interface KeptConfig extends KeptText {
  readonly part: TemplatePart;
}

/** A boot config made from a Group and the version `profile` of its Profile. */
interface KeptBoot {
  readonly profile: BootProfile;
  /** As `KeptText.davitUrl`. */
  readonly davitUrl: string;
  readonly boot: GrubSource;
}

/** A Profile as machines get it. A changed Profile is a new object. */
export interface BootProfile {
  /** `namespace/name`. */
  readonly id: string;
  /** See `ProfileDocument.revision`. */
  readonly revision: string;
  readonly content: ProfileContent;
  /** True if davit could prepare no version of the Profile so far: there is no content to serve. */
  readonly hasFailed: boolean;
  /** See `installs`. In doubt, the machines of such a Profile wait. */
  readonly isInstall: boolean;
  /** See `ProfileDocument.outdated`. */
  readonly isOutdated: boolean;
}

export class KnownDocuments {
  /** By `namespace/name`. */
  readonly groups = new Map<string, BootGroup>();
  /** By `namespace/name`. */
  readonly profiles = new Map<string, BootProfile>();
  readonly secrets: KnownSecrets;
  /**
   * One string for the name of each Profile, shared by thousands of Groups. To compare a string with itself, V8 reads
   * no characters.
   */
  readonly #profileIds = new Map<string, string>();
  readonly #tombstones = new KnownTombstones();
  readonly machines = new KnownMachines();
  /** Profiles that were removed a moment ago, by `namespace/name`. */
  readonly goneProfiles = new Set<string>();
  /** Paths whose newest text cannot be read. */
  readonly unreadable = new Set<string>();
  synced: SyncedDocument | undefined;

  constructor(secretReader: SecretReader) {
    this.secrets = new KnownSecrets(secretReader);
  }

  /**
   * Stores a document in place of the older one at its path. Ignores a path that holds no document.
   * @returns false if the text cannot be read. Then the older document stays.
   */
  learn(path: string, text: string): boolean {
    const isRead = this.#learn(path, text);
    if (!isRead) this.unreadable.add(path);
    else if (this.unreadable.size > 0) this.unreadable.delete(path);
    return isRead;
  }

  #learn(path: string, text: string): boolean {
    const address = documentAddress(path);
    switch (address?.kind) {
      case undefined:
        return true;
      case "profile":
        return this.#learnProfile(objectId(address), text);
      case "group":
        return this.#learnGroup(address.namespace, address.name, text);
      case "machine":
        return this.machines.learn(address.namespace, address.name, text);
      case "goneMachine":
        return this.machines.learnGone(address.namespace, address.name, text);
      case "secret":
        this.secrets.learn(path, text);
        return true;
      case "tombstone":
        return this.#tombstones.learn(address, text);
      case "goneProfile":
        this.goneProfiles.add(objectId(address));
        return true;
      case "synced": {
        const synced = decodeSynced(text);
        this.synced = synced ?? this.synced;
        return synced !== undefined;
      }
    }
  }

  /**
   * Takes over the document at a path from an older view, if that view has one. It takes over no tombstone. Two kinds
   * can be unreadable: of a Group that named no machine, and of a Machine. Both delay only Installs, and while a path
   * is in `unreadable`, every Install waits anyway.
   */
  inherit(path: string, older: KnownDocuments): void {
    const address = documentAddress(path);
    if (address?.kind === "synced") this.synced = older.synced;
    if (address?.kind === "profile") copy(older.profiles, this.profiles, objectId(address));
    if (address?.kind === "group") copy(older.groups, this.groups, objectId(address));
    if (address?.kind === "machine") this.machines.inherit(objectId(address), older.machines);
  }

  /** Forgets the document at a path. */
  forget(path: string): void {
    const address = documentAddress(path);
    this.unreadable.delete(path);
    if (address?.kind === "synced") this.synced = undefined;
    if (address?.kind === "profile") this.profiles.delete(objectId(address));
    if (address?.kind === "group") this.groups.delete(objectId(address));
    if (address?.kind === "secret") this.secrets.forget(path);
    if (address?.kind === "tombstone") this.#tombstones.forget(address);
    if (address?.kind === "goneProfile") this.goneProfiles.delete(objectId(address));
    if (address?.kind === "machine") this.machines.forget(objectId(address));
    if (address?.kind === "goneMachine") this.machines.forgetGone(objectId(address));
  }

  /**
   * True if the machine must wait for a Group that was just removed, instead of getting `group`.
   * @param asked what the machine asks for. `boot`: the boot script. `config`: a config. With `effect: Install`, a
   * config counts as an install even if the Profile has `boot.local`. `disk`: a boot from the disk by
   * `InstallPlan.then`, which is never an install.
   */
  waitsForRemovedGroup(labels: Labels, group: Group | undefined, asked: "boot" | "config" | "disk" = "boot"): boolean {
    if (this.#tombstones.isEmpty) return false;
    const isInstall = ({ profileId }: Group) => {
      if (asked === "disk") return false;
      const profile = this.profiles.get(profileId);
      return profile?.isInstall === true || (asked === "config" && profile?.content.effect === "Install");
    };
    return this.#tombstones.waitsForRemovedGroup(labels, group, isInstall);
  }

  /** True if a Group that selected by this label was removed a moment ago. */
  hasTombstones(label: string): boolean {
    return this.#tombstones.has(label);
  }

  /** For a person: a line for each Profile with a text that davit cannot decrypt. */
  get undecryptable(): readonly string[] {
    return [...this.profiles.values()].flatMap((profile) => {
      const problem = this.secrets.problemOf(profile);
      return problem === undefined ? [] : [`Profile ${profile.id}: ${problem}`];
    });
  }

  /** True if a Profile lets its machines report labels. It looks at each Profile. */
  get takesReports(): boolean {
    return [...this.profiles.values()].some(({ content }) => content.reports !== undefined);
  }

  /** Returns the group whose document is at a path; undefined for any other path. */
  groupAt(path: string): BootGroup | undefined {
    const address = documentAddress(path);
    return address?.kind === "group" ? this.groups.get(objectId(address)) : undefined;
  }

  #learnProfile(id: string, text: string): boolean {
    const document = decodeProfile(text);
    if (document !== undefined) {
      const { content, revision, failed, outdated } = document;
      const isInstall = installs(content);
      const flags = { hasFailed: failed === true, isInstall, isOutdated: outdated === true };
      this.profiles.set(id, { id, revision, content, ...flags });
    }
    return document !== undefined;
  }

  #learnGroup(namespace: string, name: string, text: string): boolean {
    const document = decodeGroup(text);
    if (document === undefined || !isSelecting(document.spec)) return false;
    const group = toGroup(namespace, name, document.spec, document);
    const profileId = this.#profileIds.get(group.profileId) ?? group.profileId;
    this.#profileIds.set(profileId, profileId);
    this.groups.set(group.id, toBootGroup(group, profileId));
    return true;
  }
}

/** What a copy of a Group has instead of the Group's own members. */
interface OfMachine {
  readonly metadata: JsonObject;
  readonly machine: JsonObject | undefined;
}

/**
 * Returns a Group ready for boots, without cached texts. It copies each member by name. With a spread, V8 would put
 * members into a second object, which each request would have to fetch.
 */
export function toBootGroup(
  group: Group,
  profileId = group.profileId,
  { metadata, machine }: OfMachine = { metadata: group.metadata, machine: undefined },
): BootGroup {
  const { id, selector, expressions, requirementCount, selectorText, priority, args, permits } = group;
  const { requiresTls, barrier, isOutdated, flaw, isLeaving, claimedAt, claimedLater, isTenant, rankCount } = group;
  return {
    id,
    profileId,
    selector,
    expressions,
    requirementCount,
    selectorText,
    priority,
    args,
    metadata,
    permits,
    requiresTls,
    machine,
    barrier,
    isOutdated,
    flaw,
    isLeaving,
    claimedAt,
    claimedLater,
    isTenant,
    rankCount,
    script: undefined,
    boot: undefined,
    lines: undefined,
    defaults: undefined,
    configs: undefined,
  };
}

function objectId({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

function copy<Value>(from: ReadonlyMap<string, Value>, to: Map<string, Value>, id: string): void {
  const value = from.get(id);
  if (value !== undefined) to.set(id, value);
}

/** With the texts of a small script, each takes 1 to 2 KiB. */
const maxGroups = 32_768;

interface Derived {
  readonly base: BootGroup;
  readonly group: BootGroup;
}

/**
 * Makes the Group that one Machine gets: with the Machine's metadata over its own, and with the variable `machine`. It
 * caches the result, because the Group holds the rendered texts of the Machine.
 */
export class MachineGroups {
  #groups = new Map<BootMachine, Derived>();

  /** Returns the Group for the Machine: the same object until the Group or the Machine changes. */
  of(base: BootGroup, machine: BootMachine): BootGroup {
    const known = this.#groups.get(machine);
    if (known !== undefined && known.base === base) return known.group;
    // Texts that are dropped are made again on request.
    if (this.#groups.size >= maxGroups) this.#groups = new Map();
    const metadata = { ...base.metadata, ...machine.document.spec.metadata };
    const group = toBootGroup(base, base.profileId, { metadata, machine: machine.variable });
    this.#groups.set(machine, { base, group });
    return group;
  }
}
