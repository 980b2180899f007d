/**
 * Translates a Butane document to an Ignition config. Every mistake is refused at its place: no machine gets a document
 * that is translated in part. The contents of units, and rules across partitions, are not checked.
 */

import { type Document, isMap, isScalar } from "yaml";
import { isJsonObject, type JsonObject, type JsonValue, objectOf, parseJsonObject } from "../../model/json.ts";
import { RenderError, type RenderReason } from "../core/render-error.ts";
import { positionAt } from "../core/text-position.ts";
import { isList, textOf } from "../core/values.ts";
import { bootDeviceConfig, bootDeviceFault, grubConfig, grubText } from "./boot-device.ts";
import { type ButaneMap, ButaneReader, firstRepeated } from "./butane-reader.ts";
import { merged } from "./merge.ts";
import { textOfScalar } from "./scalars.ts";
import { type ButaneSpec, features, specOf } from "./spec.ts";
import { mountUnit } from "./units.ts";

/** In characters. The result of a template has the same limit. */
const maxEmbedded = 8 * 1024 * 1024;

/** True for a document with a `variant` and without the version of an Ignition config. */
export function isButane({ contents }: Document.Parsed): boolean {
  return isMap(contents) && contents.has("variant") && typeof contents.getIn(["ignition", "version"]) !== "string";
}

/**
 * Translates a document for which `isButane` is true.
 * @param text the source of the document.
 * @throws {RenderError} with the place of the first mistake.
 */
export function translateButane(document: Document.Parsed, text: string): JsonObject {
  const { contents } = document;
  const [variant, version] = ["variant", "version"].map((name) => isMap(contents) && contents.get(name, true));
  const isNamed = isScalar(variant) && isScalar(version);
  const spec = isNamed ? specOf(textOfScalar(variant), textOfScalar(version)) : undefined;
  if (spec !== undefined) return new ButaneTranslation(text, spec).translate(document);
  const [offset = 0] = (isScalar(version) && version.range) || [];
  throw new RenderError("butaneVersion", positionAt(text, offset));
}

class ButaneTranslation {
  readonly #spec: ButaneSpec;
  readonly #reader: ButaneReader;
  /** The filesystems that want a mount unit. */
  readonly #mounts: JsonObject[] = [];
  #embeddedLength = 0;

  constructor(text: string, spec: ButaneSpec) {
    this.#spec = spec;
    this.#reader = new ButaneReader({ text, spec, finish: (members, map) => this.#finish(members, map) });
  }

  translate(document: Document.Parsed): JsonObject {
    return this.#reader.read(document);
  }

  /** Returns the members of a mapping without those that only Butane has. */
  #finish(members: JsonObject, map: ButaneMap): JsonObject {
    switch (map.path.at(-1)) {
      case undefined:
        return this.#config(members, map);
      case "storage":
        return this.#storage(members, map);
      case "files":
        if (members.overwrite === true && !hasText(objectOf(members.contents).source)) {
          this.#refuse("butaneOverwrite", map, "overwrite");
        }
        return members;
      case "user":
      case "group":
        return members.id === undefined || !hasText(members.name) ? members : this.#refuse("butaneOwner", map);
      case "partitions":
        return members.number || members.label !== undefined ? members : this.#refuse("butaneMissing", map);
      case "filesystems":
        return this.#filesystem(members, map);
      case "luks":
        return this.#luks(members, map);
      case "units":
      case "dropins":
        return this.#unit(members, map);
      case "users":
        return this.#user(members, map);
      case "trees":
        return members;
      case "kernelArguments":
        this.#refuseRepeated([members.shouldExist, members.shouldNotExist], map);
        return members;
      case "bootDevice":
        return this.#bootDevice(members, map);
      default:
        return this.#resource(members, map);
    }
  }

  #config({ variant: _, version: __, bootDevice, grub, ...own }: JsonObject, map: ButaneMap): JsonObject {
    const remote = this.#spec.minor >= features.remoteMounts ? devicesOfTang(listOf(objectOf(own.storage).luks)) : [];
    const remoteDevices = new Set<JsonValue | undefined>(remote);
    const units = this.#mounts.map((filesystem) =>
      mountUnit(filesystem, this.#isSwap(filesystem), remoteDevices.has(filesystem.device)),
    );
    const users = listOf(objectOf(grub).users);
    const parents = [
      units.length === 0 ? {} : { systemd: { units } },
      bootDeviceConfig(objectOf(bootDevice)),
      users.length === 0 ? {} : grubConfig(this.#embedded(grubText(users), map)),
    ];
    const config = merged({ ignition: { version: `3.${this.#spec.minor}.0` } }, own);
    return parents.reduce<JsonObject>((child, parent) => merged(parent, child), config);
  }

  #storage({ trees, ...own }: JsonObject, map: ButaneMap): JsonObject {
    if (trees !== undefined) this.#refuse("butaneTree", map, "trees");
    const nodes = [own.files, own.directories, own.links].flatMap(listOf);
    this.#refuseRepeated([nodes.map(({ path = "" }) => path)], map);
    return own;
  }

  #filesystem({ withMountUnit, ...own }: JsonObject, map: ButaneMap): JsonObject {
    const needFormat = [own.path, own.label, own.uuid, own.options, own.mountOptions, own.wipeFilesystem || ""];
    if (!hasText(own.format) && needFormat.some(hasText)) this.#refuse("butaneMissing", map);
    if (withMountUnit !== true) return own;
    const path = textOf(own.path);
    const values = [textOf(own.format), this.#isSwap(own) ? "-" : path, textOf(own.device), textOf(own.mountOptions)];
    const isWritable = values.slice(0, 2).every((value) => value !== "") && !/\p{Cc}/u.test(values.join(""));
    if (!isWritable) this.#refuse("butaneMount", map, "with_mount_unit");
    const isElsewhere = path !== "" && !/^\/(?:etc|var)(?:\/|$)/.test(path);
    if (this.#spec.limitsMounts === true && isElsewhere) this.#refuse("butaneMountPath", map, "path");
    this.#mounts.push(own);
    return own;
  }

  #isSwap({ format }: JsonObject): boolean {
    return format === "swap" && this.#spec.minor >= features.swapUnits;
  }

  #luks(members: JsonObject, map: ButaneMap): JsonObject {
    if (this.#spec.lacksClevis === true && members.clevis !== undefined) this.#refuse("butaneClevis", map, "clevis");
    return members;
  }

  #unit(members: JsonObject, map: ButaneMap): JsonObject {
    if (members.contentsLocal !== undefined) this.#refuse("butaneLocal", map, "contents_local");
    return members;
  }

  #user(members: JsonObject, map: ButaneMap): JsonObject {
    const { sshAuthorizedKeysLocal, name, passwordHash } = members;
    if (sshAuthorizedKeysLocal !== undefined) this.#refuse("butaneLocal", map, "ssh_authorized_keys_local");
    const isSafe = [name, passwordHash].every((value) => /^[\w.@+=/-]*$/.test(textOf(value)));
    return map.path[0] === "grub" && !isSafe ? this.#refuse("butaneGrub", map) : members;
  }

  #bootDevice(members: JsonObject, map: ButaneMap): JsonObject {
    const fault = bootDeviceFault(members, this.#spec.minor >= features.mainframes);
    return fault === undefined ? members : this.#refuse(fault.reason, map, fault.member);
  }

  #resource({ inline, local, ...own }: JsonObject, map: ButaneMap): JsonObject {
    if (local !== undefined) this.#refuse("butaneLocal", map, "local");
    if (inline === undefined) return own;
    if (own.source !== undefined) this.#refuse("butaneSources", map, "source");
    const text = textOf(inline);
    const isConfig = map.path[0] === "ignition" && map.path[1] === "config";
    if (isConfig && !isIgnitionText(text)) this.#refuse("butaneMerge", map, "inline");
    return { ...own, ...this.#embedded(text, map, own.compression) };
  }

  /**
   * Returns a resource with a text. Butane compresses long texts. davit does not, because the bytes that a compressor
   * makes differ between machines, and every replica must answer with the same ones.
   */
  #embedded(text: string, map: ButaneMap, compression: JsonValue = ""): JsonObject {
    const escaped = `,${encodeURIComponent(text)}`;
    const encoded = `;base64,${Buffer.from(text).toString("base64")}`;
    const source = `data:${encoded.length < escaped.length ? encoded : escaped}`;
    this.#embeddedLength += source.length;
    if (this.#embeddedLength > maxEmbedded) this.#refuse("butaneTooLarge", map);
    // Set even if empty: a config that merges this one must not pass its compression on.
    return this.#spec.minor >= features.compressionOfTexts || compression !== "" ? { source, compression } : { source };
  }

  #refuseRepeated(lists: readonly (JsonValue | undefined)[], map: ButaneMap): void {
    if (firstRepeated(lists.flatMap((list) => (isList(list) ? list : []))) !== -1) this.#refuse("butaneDuplicate", map);
  }

  /** @throws {RenderError} with the place of a member, or of the whole mapping. */
  #refuse(reason: RenderReason, { node }: ButaneMap, member?: string): never {
    const pair = node.items.find(({ key }) => isScalar(key) && textOfScalar(key) === member);
    return this.#reader.refuse(reason, pair?.key ?? node);
  }
}

/** Returns the devices that a Tang server unlocks. */
function devicesOfTang(luks: readonly JsonObject[]): readonly string[] {
  return luks
    .filter(({ clevis }) => objectOf(clevis).tang !== undefined)
    .flatMap(({ name }) => [`/dev/mapper/${textOf(name)}`, `/dev/disk/by-id/dm-name-${textOf(name)}`]);
}

function listOf(value: JsonValue | undefined): readonly JsonObject[] {
  return isList(value) ? value.filter(isJsonObject) : [];
}

function hasText(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== "";
}

function isIgnitionText(text: string): boolean {
  return typeof objectOf(parseJsonObject(text)?.ignition).version === "string";
}
