/**
 * Finds a machine's config: selects its Group, then renders. Each answer comes from one state of the store. As long as
 * the store does not change, equal requests get equal bytes.
 */

import { hash } from "node:crypto";
import { assert } from "../lib/errors.ts";
import { after, type Soon } from "../lib/soon.ts";
import type { Labels } from "../model/labels.ts";
import { fieldOf, type GenericPart, isOfSecret, partAt, partEndpoints, type TemplatePart } from "../model/profile.ts";
import { RenderError } from "../render/core/render-error.ts";
import type { Rendered } from "../render/core/rendered.ts";
import { renderMetadata } from "../render/metadata/metadata.ts";
import { RenderBudget } from "../render/template/limits.ts";
import { RequestReads } from "../render/template/variables.ts";
import { BootError } from "./boot-error.ts";
import type { BootView, Machine } from "./boot-index.ts";
import { type BootJob, BootMaker } from "./boot-maker.ts";
import { type BootFiles, BootScripts, type BootScriptsOptions } from "./boot-scripts.ts";
import { KeptConfigs } from "./kept-configs.ts";
import type { BootGroup, BootProfile } from "./known-documents.ts";
import type { MadeFor, SlowWork, Subject } from "./slow-work.ts";

/**
 * Every config of a machine, named like its endpoint. The named parts of a Profile (`genericParts`) are not in this
 * list.
 */
export const configNames = ["ipxe", "grub", ...partEndpoints, "metadata"] as const;
export type ConfigName = (typeof configNames)[number] | GenericPart;

export interface BootConfigsOptions extends BootScriptsOptions {
  readonly index: BootView;
  /** Makes slow configs for `answer` in another thread. Undefined: the calling thread makes every config. */
  readonly slowWork?: Pick<SlowWork, "make"> | undefined;
}

export interface ConfigRequest {
  readonly labels: Labels;
  /** The query as sent, without the `?`. */
  readonly rawQuery: string;
  /** Empty when the client sends none. */
  readonly userAgent: string;
  /** Returns the client that sent the request. Called only for slow configs. Absent for a request without a client. */
  readonly client?: (() => string | undefined) | undefined;
  /** True for a request that may spend a permit: no HEAD, and none for a signature. False unless given. */
  readonly mayClaim?: boolean;
  /** Returns the address of the machine. Called only for an install. */
  readonly address?: (() => string | undefined) | undefined;
}

/** A machine's config, with its Group and Profile. */
export interface MachineConfig {
  readonly rendered: Rendered;
  /** The Group's `namespace/name`. */
  readonly group: string;
  /** The Profile's `namespace/name`; undefined if the config does not use the Profile. */
  readonly profile: string | undefined;
}

/** The cache has room for 8,000 configs of 4 KiB each, or for 100,000 of 200 bytes: enough for a booting fleet. */
const keptConfigBytes = 64 * 1024 * 1024;

/** Does a job: now, or in another thread. */
type Make = (job: BootJob, subject: Subject) => Soon<MadeFor>;

export class BootConfigs {
  readonly #index: BootView;
  readonly #scripts: BootScripts;
  readonly #slowWork: BootConfigsOptions["slowWork"];
  readonly #davitUrl: string;
  readonly #maker = new BootMaker({ sha256 });
  readonly #kept = new KeptConfigs({ limitBytes: keptConfigBytes });

  constructor(options: BootConfigsOptions) {
    this.#index = options.index;
    this.#slowWork = options.slowWork;
    this.#scripts = new BootScripts(options);
    this.#davitUrl = `http://${options.authority}`;
  }

  /**
   * Returns the config that a machine asks for. It is made in this call, however long that takes.
   * @throws {BootError} for every refusal.
   */
  render(name: ConfigName, request: ConfigRequest): MachineConfig {
    const config = this.#configOf(name, request, this.#atOnce);
    assert(!(config instanceof Promise), "What is made at once is there at once");
    return config;
  }

  /**
   * As `render`, but returns a promise for a slow config, so that no other machine waits for it.
   * @throws {BootError} as `render`; also busy, and notReady during a stop.
   */
  answer(name: ConfigName, request: ConfigRequest): Soon<MachineConfig> {
    return this.#configOf(name, request, this.#soon(request.client));
  }

  /**
   * Returns the files that a machine boots. Undefined if there are none, if they cannot be rendered, or if rendering
   * takes long.
   */
  bootFilesOf(machine: Machine): BootFiles | undefined {
    try {
      return asBroken({ ...machine, name: "ipxe" }, () =>
        this.#scripts.files(machine, ofMachine(this.#soon(), "files")),
      );
    } catch (error) {
      if (error instanceof BootError) return undefined;
      throw error;
    }
  }

  #configOf(name: ConfigName, request: ConfigRequest, make: Make): Soon<MachineConfig> {
    if (name === "metadata") {
      const group = this.#index.selectGroup(request.labels);
      return after(
        asBrokenSoon({ group, profile: undefined, name }, () => this.#metadata(group, request, make)),
        (rendered) => ({ rendered, group: group.id, profile: undefined }),
      );
    }
    const machine = this.#index.select(request.labels);
    const { group, profile } = machine;
    return after(
      asBrokenSoon({ group, profile, name }, () => this.#renderFor(name, machine, request, make)),
      (rendered) => {
        if (rendered === undefined) throw new BootError("noPart", { group: group.id, profile: profile.id });
        return { rendered, group: group.id, profile: profile.id };
      },
    );
  }

  #renderFor(
    name: Exclude<ConfigName, "metadata">,
    machine: Machine,
    request: ConfigRequest,
    make: Make,
  ): Soon<Rendered | undefined> {
    switch (name) {
      case "ipxe":
        return this.#scripts.ipxe(machine, ofMachine(make, name));
      case "grub":
        return this.#scripts.grub(machine, request, ofMachine(make, name));
      default:
        return this.#config(partAt(name), machine, request, make);
    }
  }

  #config(part: TemplatePart, machine: Machine, request: ConfigRequest, make: Make): Soon<Rendered | undefined> {
    assertUsable(machine, part);
    const template = this.#index.template(machine, part, request.labels);
    const kept = this.#kept.get(machine, part);
    if (kept !== undefined) return kept;
    const { group, profile } = machine;
    const { labels, rawQuery } = request;
    const scope = { group, defaults: profile.content.metadata, davitUrl: this.#davitUrl };
    const job = { ...template, kind: "part", part, ...scope, labels, rawQuery } as const;
    return after(make(job, { group, version: profile, key: part }), ({ made: { rendered }, isOfRequest }) =>
      isOfRequest || rendered === undefined ? rendered : this.#kept.keep(machine, part, rendered),
    );
  }

  #metadata(group: BootGroup, { labels, rawQuery }: ConfigRequest, make: Make): Soon<Rendered> {
    const defaults = this.#index.defaultsOf(group);
    if (group.lines !== undefined && group.defaults === defaults) return renderMetadata(group.lines, labels, rawQuery);
    const job = { kind: "metadata", group, defaults, davitUrl: this.#davitUrl, labels, rawQuery } as const;
    return after(make(job, { group, version: defaults, key: "metadata" }), ({ made: { rendered, lines } }) => {
      if (rendered !== undefined) return rendered;
      assert(lines !== undefined, "Metadata is made as lines, or as a whole");
      group.lines = lines;
      group.defaults = defaults;
      return renderMetadata(lines, labels, rawQuery);
    });
  }

  readonly #atOnce: Make = (job) => {
    const reads = new RequestReads();
    const made = this.#maker.make(job, new RenderBudget(), reads);
    return { made, isOfRequest: reads.isAny };
  };

  #soon(client?: ConfigRequest["client"]): Make {
    const slowWork = this.#slowWork;
    if (slowWork === undefined) return this.#atOnce;
    return (job, subject) => slowWork.make(job, this.#maker, subject, () => client?.() ?? "");
  }
}

function ofMachine(make: Make, key: string) {
  return (job: BootJob, { group, profile }: Machine) =>
    after(make(job, { group, version: profile, key }), ({ made }) => made);
}

/**
 * Refuses a part that cannot be used. The Profile's status shows the problem; the store does not contain it.
 * @throws {BootError} broken.
 */
function assertUsable({ group, profile }: Machine, part: TemplatePart): void {
  const template = profile.content.templates[part];
  if (template?.kind !== "broken") return;
  const problem = template.withdrawn === true ? withdrawn(part) : unusable(part);
  throw new BootError("broken", { group: group.id, profile: profile.id, problem });
}

function unusable(part: TemplatePart): string {
  return `spec.${fieldOf(part)} cannot be used: the conditions of the Profile say why`;
}

function withdrawn(part: TemplatePart): string {
  const what = `the Secret of spec.${fieldOf(part)}, its key or its label`;
  return `${what} was taken away: the conditions of the Profile say which`;
}

function sha256(text: string): string {
  return hash("sha256", text, "hex");
}

/** Calls a renderer, and converts its error into a refusal. */
function asBroken<Result>(asked: AskedConfig, render: () => Result): Result {
  try {
    return render();
  } catch (error) {
    if (error instanceof RenderError) throw brokenConfig(error, asked);
    throw error;
  }
}

/** As `asBroken`, for a result that may be a promise. */
function asBrokenSoon<Result>(asked: AskedConfig, render: () => Soon<Result>): Soon<Result> {
  const result = asBroken(asked, render);
  if (!(result instanceof Promise)) return result;
  return result.catch((error: unknown) =>
    asBroken(asked, () => {
      throw error;
    }),
  );
}

/** The config that a machine asked for, with its Group and Profile. */
interface AskedConfig {
  readonly group: BootGroup;
  /** Undefined if the config does not use the Profile. */
  readonly profile: BootProfile | undefined;
  /** The endpoint, such as `cloud`. */
  readonly name: string;
}

/** Returns the refusal for a renderer's error. It names the field and the variable that break the config. */
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
