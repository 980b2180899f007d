/**
 * Renders a config from a machine's Group and Profile, or takes it from the caches of the Group. An error of a renderer
 * becomes a refusal that names the field and the variable that break the config.
 */

import { hash } from "node:crypto";
import { claimTokenOf } from "../../lib/claim-token.ts";
import { assert } from "../../lib/errors.ts";
import { after, rescued, type Soon } from "../../lib/soon.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { fieldOf, isOfSecret, type Loader, partAt, type TemplatePart } from "../../model/objects/profile.ts";
import { RenderError } from "../../render/core/render-error.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import { renderMetadata } from "../../render/metadata/metadata.ts";
import { RenderBudget } from "../../render/template/limits.ts";
import { RequestReads } from "../../render/template/request-reads.ts";
import { BootError } from "../core/boot-error.ts";
import type { BootGroup, BootProfile, KeptConfig } from "../core/known-documents.ts";
import type { TemplateText } from "../core/known-secrets.ts";
import type { Selected } from "../core/selected.ts";
import { type BootJob, BootMaker } from "./boot-maker.ts";
import { type AddressedMachine, type BootFiles, BootScripts, type BootScriptsOptions } from "./boot-scripts.ts";
import type { MadeFor, SlowWork, Subject } from "./slow-work.ts";

/** Does a job: now, or in another thread. */
export type Make = (job: BootJob, subject: Subject) => Soon<MadeFor>;

/** What a config takes from the request. */
interface RenderedRequest {
  readonly labels: Labels;
  readonly rawQuery: string;
  readonly userAgent: string;
}

interface ConfigRendering {
  readonly request: RenderedRequest;
  readonly make: Make;
  /** The URL of davit in the config. */
  readonly davitUrl: string;
  /** Names the install for which the config is. Undefined unless a permit is open. */
  readonly reportToken?: string | undefined;
}

/** A Group, and its Profile if the config needs it or the Profile exists. */
interface Described {
  readonly group: BootGroup;
  readonly profile: BootProfile | undefined;
}

/** See `BootIndex`. */
interface BootTemplates {
  template(selected: Selected, part: TemplatePart, labels: Labels): TemplateText;
}

interface ConfigMakerOptions extends BootScriptsOptions {
  readonly index: BootTemplates;
  readonly slowWork: Pick<SlowWork, "make"> | undefined;
  /** False for what is shown to people: each preview has its own limit, and its Groups may be those of machines. */
  readonly keeps: boolean;
}

/** The cache has room for 8,000 configs of 4 KiB each, or for 100,000 of 200 bytes: enough for a booting fleet. */
const keptConfigBytes = 64 * 1024 * 1024;

export class ConfigMaker {
  readonly #index: ConfigMakerOptions["index"];
  readonly #slowWork: ConfigMakerOptions["slowWork"];
  readonly #scripts: BootScripts;
  readonly #maker = new BootMaker({ sha256: (text) => hash("sha256", text, "hex") });
  readonly #kept: KeptConfigs;

  constructor(options: ConfigMakerOptions) {
    this.#index = options.index;
    this.#slowWork = options.slowWork;
    this.#scripts = new BootScripts(options);
    this.#kept = new KeptConfigs({ limitBytes: options.keeps ? keptConfigBytes : 0 });
  }

  /** Makes each config in the call, however long that takes. */
  readonly atOnce: Make = (job) => {
    const reads = new RequestReads();
    const made = this.#maker.make(job, new RenderBudget(), reads);
    return { made, isOfRequest: reads.isAny };
  };

  /** Makes slow configs in the other thread, if there is one. @param client see `ConfigRequest`. */
  soon(client?: () => string | undefined): Make {
    const slowWork = this.#slowWork;
    if (slowWork === undefined) return this.atOnce;
    return (job, subject) => slowWork.make(job, this.#maker, subject, () => client?.() ?? "");
  }

  /**
   * Returns a script or config; undefined for a machine that must get none.
   * @param name of the endpoint.
   * @throws {BootError} noPart, broken, undecryptable, busy or notReady.
   */
  render(name: string, selected: Selected, rendering: ConfigRendering): Soon<Rendered | undefined> {
    const { request, make, davitUrl, reportToken } = rendering;
    const { group, profile } = selected;
    const machine = { group, profile, davitUrl, claim: reportToken && claimTokenOf(reportToken) };
    return broken({ group, profile, name }, () => {
      if (name === "ipxe") return this.#scripts.ipxe(machine, ofMachine(make, name));
      if (name === "grub") return this.#scripts.grub(machine, request, ofMachine(make, name));
      return this.#part(partOf(name), machine, rendering);
    });
  }

  /** @throws {BootError} as `render`. */
  metadata({ group, profile }: Described, { request, make, davitUrl }: ConfigRendering): Soon<Rendered> {
    const { labels, rawQuery } = request;
    const defaults = profile?.content.metadata;
    if (group.lines !== undefined && group.defaults === defaults) return renderMetadata(group.lines, labels, rawQuery);
    const job = { kind: "metadata", group, defaults, davitUrl, labels, rawQuery } as const;
    const subject = { group, version: defaults, key: "metadata", davitUrl };
    return broken({ group, profile: undefined, name: "metadata" }, () =>
      after(make(job, subject), ({ made: { rendered, lines } }) => {
        if (rendered !== undefined) return rendered;
        assert(lines !== undefined, "Metadata is made as lines, or as a whole");
        group.lines = lines;
        group.defaults = defaults;
        return renderMetadata(lines, labels, rawQuery);
      }),
    );
  }

  /** See `BootScripts.assets`. @param davitUrls every URL of davit. */
  assets(
    name: Loader,
    selected: Selected,
    {
      make,
      davitUrl,
      davitUrls,
    }: Pick<ConfigRendering, "make" | "davitUrl"> & { readonly davitUrls: readonly string[] },
  ) {
    return this.#scripts.assets(name, { ...selected, davitUrl }, { davitUrls, make: ofMachine(make, name) });
  }

  /** See `BootConfigs.bootFilesOf`. */
  files(selected: Selected, davitUrl: string): BootFiles | undefined {
    try {
      return this.#scripts.files({ ...selected, davitUrl }, ofMachine(this.soon(), "files"));
    } catch (error) {
      if (error instanceof BootError || error instanceof RenderError) return undefined;
      throw error;
    }
  }

  /**
   * Checks a config without making it.
   * @throws {BootError} noPart, broken, undecryptable. For an `Install` also the refusals of `BootIndex.template`.
   */
  assertServed(name: string, selected: Selected, labels: Labels): void {
    const part = partOf(name);
    assertUsable(selected, part);
    this.#index.template(selected, part, labels);
  }

  #part(part: TemplatePart, machine: AddressedMachine, rendering: ConfigRendering): Soon<Rendered | undefined> {
    const { request, make, reportToken } = rendering;
    const { labels, rawQuery } = request;
    const { group, profile, davitUrl } = machine;
    assertUsable(machine, part);
    const template = this.#index.template(machine, part, labels);
    const kept = this.#kept.get(machine, part);
    if (kept !== undefined) return kept;
    const reportUrl = reportToken === undefined ? undefined : `${davitUrl}/report/${reportToken}`;
    const scope = { group, defaults: profile.content.metadata, davitUrl };
    const job = { ...template, kind: "part", part, ...scope, labels, rawQuery, reportUrl } as const;
    return after(make(job, { group, version: profile, key: part, davitUrl }), ({ made: { rendered }, isOfRequest }) =>
      isOfRequest || rendered === undefined ? rendered : this.#kept.keep(machine, part, rendered),
    );
  }
}

function partOf(name: string): TemplatePart {
  const part = partAt(name);
  assert(part !== undefined, "Only scripts, metadata and parts are configs");
  return part;
}

function ofMachine(make: Make, key: string) {
  return (job: BootJob, { group, profile, davitUrl }: AddressedMachine) =>
    after(make(job, { group, version: profile, key, davitUrl }), ({ made }) => made);
}

/**
 * Refuses a part that cannot be used. The Profile's status shows the problem; the store does not contain it.
 * @throws {BootError} broken.
 */
function assertUsable({ group, profile }: Selected, part: TemplatePart): void {
  const template = profile.content.templates[part];
  if (template?.kind !== "broken") return;
  const field = `spec.${fieldOf(part)}`;
  const problem =
    template.withdrawn === true
      ? `the Secret of ${field}, its key or its label was taken away: the conditions of the Profile say which`
      : `${field} cannot be used: the conditions of the Profile say why`;
  throw new BootError("broken", { group: group.id, profile: profile.id, problem });
}

/** The config that a machine asked for. `profile`: undefined if the config does not use it. */
interface AskedConfig extends Described {
  readonly name: string;
}

/** Calls a renderer, and converts its error into a refusal. */
function broken<Result>(asked: AskedConfig, render: () => Soon<Result>): Soon<Result> {
  return rescued(render, (error) => {
    throw error instanceof RenderError ? brokenConfig(error, asked) : error;
  });
}

function brokenConfig(error: RenderError, asked: AskedConfig): BootError {
  const { group, profile, name } = asked;
  const part = partAt(name);
  const isSecret = part !== undefined && isOfSecret(profile?.content.templates[part]);
  const field = profile && (part === undefined ? bootField(error, asked, profile) : `spec.${fieldOf(part)}`);
  const problem = `${field === undefined ? "" : `${field}: `}${error.problem(isSecret)}`;
  return new BootError("broken", { group: group.id, ...(profile && { profile: profile.id }), problem, cause: error });
}

function bootField({ field }: RenderError, { name, group }: AskedConfig, { content }: BootProfile): string {
  const { boot, grubScript } = content;
  if (name === "grub" && grubScript !== undefined) return "spec.boot.grubScript";
  if (boot?.kind === "script") return "spec.boot.script";
  if (field === undefined) return "spec.boot";
  // The Profile's arguments come first, then those of the Group.
  const own = boot?.kind === "kernel" ? boot.args.length : 0;
  const ofGroup = new Map(group.args.map((_, at) => [`args[${own + at}]`, `spec.args[${at}] of the Group`]));
  return ofGroup.get(field) ?? `spec.boot.${field}`;
}

/**
 * Caches configs that are the same for every request, such as an Ignition config that prints only metadata. Each config
 * is cached in its Group, like the boot script. If all cached configs together exceed a limit, davit drops them all,
 * and makes each again on request.
 */
export class KeptConfigs {
  readonly #limitBytes: number;
  /** Groups with cached configs. Groups that the index has dropped stay here until all configs are dropped. */
  #groups: BootGroup[] = [];
  #sizeBytes = 0;

  /** @param options.limitBytes the most bytes of all configs, with the overhead of each. */
  constructor({ limitBytes }: { readonly limitBytes: number }) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Returns the cached config of a part; undefined unless it was made from this version of the Profile, with this URL
   * of davit. A version fixes the text of every template. If the text is in a Secret, the version has its hash.
   */
  get({ group, profile, davitUrl }: AddressedMachine, part: TemplatePart): Rendered | undefined {
    const kept = keptOf(group, part);
    return kept?.profile === profile && kept.davitUrl === davitUrl ? kept : undefined;
  }

  /**
   * Caches a config.
   * @param rendered the same for every request.
   * @returns the cached object, which `get` returns from now on. If the config is too large to cache, it returns a copy
   * that is not cached. Both are marked as shared.
   */
  keep({ group, profile, davitUrl }: AddressedMachine, part: TemplatePart, rendered: Rendered): Rendered {
    const bytes = sizeOf(rendered);
    if (bytes > this.#limitBytes) return { ...rendered, isShared: true };
    if (this.#sizeBytes + bytes > this.#limitBytes) this.#letGo();
    if (group.configs === undefined) this.#groups.push(group);
    const { body, contentType, byteLength } = rendered;
    const kept = { body, contentType, byteLength, isShared: true, profile, davitUrl, part } as const;
    put(group, kept);
    // If a config replaces an older one, both are counted until all are dropped. So the sum can be too large, but never
    // too small.
    this.#sizeBytes += bytes;
    return kept;
  }

  #letGo(): void {
    for (const group of this.#groups) {
      group.configs = undefined;
    }
    this.#groups = [];
    this.#sizeBytes = 0;
  }
}

/** Returns the config that a Group caches for a part, made from any version of its Profile. */
function keptOf({ configs }: BootGroup, part: TemplatePart): KeptConfig | undefined {
  if (configs === undefined) return undefined;
  if ("part" in configs) return configs.part === part ? configs : undefined;
  return configs.find((kept) => kept.part === part);
}

/** Stores a single config without a list: a list takes as much memory as three members of the Group. */
function put(group: BootGroup, kept: KeptConfig): void {
  const { configs = [] } = group;
  const others = ("part" in configs ? [configs] : configs).filter(({ part }) => part !== kept.part);
  group.configs = others.length === 0 ? kept : [...others, kept];
}

/** The memory that an entry takes beside its text, in bytes. */
const entryBytes = 200;

/**
 * Returns the memory that a config takes. V8 stores Latin-1 text in one byte for each character, and other text in two.
 * So two is never too little.
 */
function sizeOf({ body }: Rendered): number {
  return body.length * 2 + entryBytes;
}
