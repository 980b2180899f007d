/**
 * Makes the scripts for iPXE and GRUB. Their templates read only a Group and its Profile. So each script is rendered
 * once for each version of the two, and is kept in the Group. A GRUB config gets its last parts for each request:
 * values of tokens, separators and the guard.
 */

import type { Soon } from "../../lib/soon.ts";
import { after } from "../../lib/soon.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { Boot, Loader } from "../../model/objects/profile.ts";
import { scriptWithClaim, withClaim } from "../../render/boot/claimed-file.ts";
import { assetsIn, type ScriptAsset } from "../../render/boot/named-assets.ts";
import type { GrubSource } from "../../render/boot/own-scripts.ts";
import { textOf } from "../../render/boot/pieces.ts";
import { counted, type Rendered } from "../../render/core/rendered.ts";
import { type GrubCommands, type GrubSeparator, isGrub, renderGrub } from "../../render/grub/grub.ts";
import { type GrubGuard, guardedScript, guardOf } from "../../render/grub/guard.ts";
import { BootError } from "../core/boot-error.ts";
import type { KeptText } from "../core/known-documents.ts";
import type { Selected } from "../core/selected.ts";
import type { BootJob, GrubJob, Made } from "./boot-maker.ts";

export interface BootScriptsOptions {
  /** See `DavitUrlOptions`. GRUB gets assets from there, by HTTP: it knows no HTTPS. */
  readonly authority: string;
  readonly grub: { readonly separator: GrubSeparator; readonly commands: GrubCommands };
  /** True if GRUB's configs are signed. Then the config of an Install runs only on the machine that asked for it. */
  readonly isSigned?: boolean;
}

/** A machine, the URL of davit in its texts, and the token of its claim if it installs by a permit. */
export type AddressedMachine = Selected & { readonly davitUrl: string; readonly claim?: string | undefined };

/** Does a job for a machine: now, or in another thread. */
type MakeScript = (job: BootJob, machine: AddressedMachine) => Soon<Made>;

/** The files that a boot section names. */
export interface BootFiles {
  readonly kernel: string;
  readonly initrd: readonly string[];
}

/** The part of a request that GRUB configs use. */
interface GrubRequest {
  readonly labels: Labels;
  readonly userAgent: string;
}

export class BootScripts {
  readonly #options: BootScriptsOptions;

  constructor(options: BootScriptsOptions) {
    this.#options = options;
  }

  /**
   * Returns the script for iPXE; undefined for a machine that must get none (local boot by `notFound`).
   * @throws {BootError} noPart or broken.
   * @throws {RenderError} if the script cannot be made.
   */
  ipxe(machine: AddressedMachine, make: MakeScript): Soon<Rendered | undefined> {
    const { group } = machine;
    if (isFor(group.script, machine)) return claimedScript(group.script, machine);
    const job = { kind: "ipxe", boot: bootOf(machine), args: group.args, ...scopeOf(machine) } as const;
    return after(make(job, machine), ({ rendered }) => {
      group.script = rendered && keptText(rendered, machine);
      return group.script && claimedScript(group.script, machine);
    });
  }

  /** Returns the config for GRUB; undefined and errors as for `ipxe`. */
  grub(machine: AddressedMachine, request: GrubRequest, make: MakeScript): Soon<Rendered | undefined> {
    return after(this.#grubSource(machine, make), (source) => source && this.#grubConfig(source, machine, request));
  }

  /**
   * Returns the files of davit that the script of a machine names.
   * @param davitUrls see `assetsIn`.
   * @throws {BootError} as `ipxe`.
   * @throws {RenderError} as `ipxe`.
   */
  assets(
    name: Loader,
    machine: AddressedMachine,
    { davitUrls, make }: { readonly davitUrls: readonly string[]; readonly make: MakeScript },
  ): Soon<readonly ScriptAsset[]> {
    if (name === "ipxe") return after(this.ipxe(machine, make), (script) => assetsIn(script?.body ?? "", davitUrls));
    return after(this.#grubSource(machine, make), (source) => assetsIn(source ? textsOf(source) : "", davitUrls));
  }

  /**
   * Returns kernel and initrds as scripts name them. Undefined for a Profile's own script, for a boot from disk, and if
   * rendering takes long.
   * @throws {BootError} as `ipxe`.
   * @throws {RenderError} as `ipxe`.
   */
  files(machine: AddressedMachine, make: MakeScript): BootFiles | undefined {
    const boot = bootOf(machine);
    if (boot.kind !== "kernel") return undefined;
    const made = make({ kind: "grub", boot, args: [], ...scopeOf(machine) }, machine);
    if (made instanceof Promise) return undefined;
    return made.source?.kind === "kernel" ? made.source : undefined;
  }

  #grubSource(machine: AddressedMachine, make: MakeScript): Soon<GrubSource | undefined> {
    const { group, profile, davitUrl } = machine;
    if (isFor(group.boot, machine)) return group.boot.boot;
    const job = { kind: "grub", boot: grubBootOf(machine), args: group.args, ...scopeOf(machine) } as const;
    return after(make(job, machine), ({ source }) => {
      if (source !== undefined) group.boot = { profile, davitUrl, boot: source };
      return source;
    });
  }

  #grubConfig(source: GrubSource, machine: AddressedMachine, request: GrubRequest): Rendered | undefined {
    const { labels, userAgent } = request;
    const boot = claimedSource(source, machine);
    const guard = this.#guard(machine, labels);
    if (boot.kind === "config") return guard === undefined ? boot.config : guardedConfig(boot.config, guard);
    const title = machine.profile.content.displayName;
    const { authority, grub } = this.#options;
    return renderGrub({ title, boot, labels, authority, isGrubClient: isGrub(userAgent), guard, ...grub });
  }

  #guard({ group, profile }: Selected, labels: Labels): GrubGuard | undefined {
    if (this.#options.isSigned !== true || !profile.isInstall) return undefined;
    const { selector, expressions } = group;
    return guardOf(labels, (name) => Object.hasOwn(selector, name) || expressions.some(({ key }) => key === name));
  }
}

/** Returns the texts of a boot section, one a line, or the Profile's own config. */
function textsOf(source: GrubSource): string {
  switch (source.kind) {
    case "kernel":
      return [source.kernel, ...source.initrd, ...source.args.map(textOf)].join("\n");
    case "config":
      return source.config.body;
    case "local":
      return "";
  }
}

function scopeOf({ group, profile, davitUrl }: AddressedMachine) {
  return { group, defaults: profile.content.metadata, davitUrl };
}

/** True if davit made the text from this version of the Profile, with this URL. */
function isFor<Text extends Pick<KeptText, "profile" | "davitUrl">>(
  text: Text | undefined,
  { profile, davitUrl }: AddressedMachine,
): text is Text {
  return text?.profile === profile && text.davitUrl === davitUrl;
}

/** Names the claim in a script that davit has written. It does not know the files of a Profile's own script. */
function claimedScript(script: KeptText, { profile, davitUrl, claim }: AddressedMachine): Rendered {
  if (claim === undefined || profile.content.boot?.kind !== "kernel") return script;
  return { body: scriptWithClaim(script.body, claim, davitUrl), contentType: script.contentType };
}

function claimedSource(source: GrubSource, { davitUrl, claim }: AddressedMachine): GrubSource {
  if (claim === undefined || source.kind !== "kernel") return source;
  const [kernel = "", ...initrd] = withClaim([source.kernel, ...source.initrd], claim, davitUrl);
  return { ...source, kernel, initrd };
}

function guardedConfig({ body, contentType }: Rendered, guard: GrubGuard): Rendered {
  return { body: guardedScript(body, guard), contentType };
}

/** Copies each member by name. With a spread, V8 would put the last member into a second object. */
function keptText(script: Rendered, { profile, davitUrl }: AddressedMachine): KeptText {
  const { body, contentType, byteLength } = counted(script);
  return { body, contentType, byteLength, isShared: true, profile, davitUrl };
}

/**
 * Returns the boot section.
 * @throws {BootError} noPart if the Profile has none, broken if no version of it was usable.
 */
function bootOf(machine: Selected): Boot {
  const { boot } = machine.profile.content;
  if (boot === undefined) throw new BootError("noPart", subjectOf(machine));
  if (boot.kind !== "broken") return boot;
  const problem = "spec.boot cannot be used: the conditions of the Profile say why";
  throw new BootError("broken", { ...subjectOf(machine), problem });
}

/**
 * Returns what GRUB boots: the Profile's own config, or its boot section.
 * @throws {BootError} as `bootOf`; noPart also for a Profile that has only a script for iPXE.
 */
function grubBootOf(machine: Selected): GrubJob["boot"] {
  const { boot, grubScript } = machine.profile.content;
  if (grubScript !== undefined && boot?.kind !== "broken") return { kind: "config", config: grubScript };
  const own = bootOf(machine);
  if (own.kind === "script") throw new BootError("noPart", subjectOf(machine));
  return own;
}

function subjectOf({ group, profile }: Selected) {
  return { group: group.id, profile: profile.id };
}
