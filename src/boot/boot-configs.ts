/**
 * Finds a machine's config: selects its Group, then renders. Each answer comes from one state of the store. As long as
 * the store does not change, equal requests get equal bytes.
 */

import { hash } from "node:crypto";
import { claimTokenOf } from "../lib/claim-token.ts";
import { assert } from "../lib/errors.ts";
import { after, type Soon } from "../lib/soon.ts";
import type { Labels } from "../model/labels/labels.ts";
import { fieldOf, type GenericPart, partAt, partEndpoints, type TemplatePart } from "../model/objects/profile.ts";
import type { PermitAsk } from "../model/permits/permit.ts";
import type { PermitDesk } from "../model/permits/permit-desk.ts";
import { type PermitRefusal, permitRefusals } from "../model/refusals.ts";
import type { Rendered } from "../render/core/rendered.ts";
import { renderMetadata } from "../render/metadata/metadata.ts";
import { RenderBudget } from "../render/template/limits.ts";
import { RequestReads } from "../render/template/request-reads.ts";
import { asBroken, asBrokenSoon } from "./broken-config.ts";
import { assertOpen, isSealedFor, noteDisk, purposeOf, questionOf } from "./config-questions.ts";
import { BootError } from "./core/boot-error.ts";
import type { BootGroup, BootProfile } from "./core/known-documents.ts";
import type { Selected } from "./core/selected.ts";
import { type BootJob, BootMaker } from "./making/boot-maker.ts";
import { type AddressedMachine, type BootFiles, BootScripts, type BootScriptsOptions } from "./making/boot-scripts.ts";
import { askWithFiles, type ServedFiles } from "./making/claim-files.ts";
import { KeptConfigs } from "./making/kept-configs.ts";
import type { MadeFor, SlowWork, Subject } from "./making/slow-work.ts";
import { ifCurrent, madeAnew } from "./making/still-current.ts";
import type { BootView } from "./selection/boot-index.ts";
import { type DavitUrlOptions, DavitUrls, type Transport } from "./transport.ts";

/**
 * Every config of a machine, named like its endpoint. The named parts of a Profile (`genericParts`) are not in this
 * list.
 */
export const configNames = ["ipxe", "grub", ...partEndpoints, "metadata"] as const;
export type ConfigName = (typeof configNames)[number] | GenericPart;

export interface BootConfigsOptions extends BootScriptsOptions, DavitUrlOptions {
  readonly index: BootView;
  /** Makes slow configs for `answer` in another thread. Undefined: the calling thread makes every config. */
  readonly slowWork?: Pick<SlowWork, "make"> | undefined;
  /** Decides about installs that need a permit. Without it, davit refuses them. */
  readonly permits?: Permits | undefined;
  /** The files that machines load. A machine spends no permit while a file of its script is missing. */
  readonly files?: ServedFiles | undefined;
}

/**
 * Where the permits of installs come from:
 *
 * - A desk: `answer` asks it, and it may spend a permit. `render` refuses such installs.
 * - `shown`: for previews. What the ledger would now permit is shown, and nothing is spent.
 * - `assumed`: for manifests without a server. Each install is shown as if its permit were open.
 */
export type Permits = InstallDesk | "shown" | "assumed";

type InstallDesk = Pick<PermitDesk, "ask" | "isRemote">;

export interface ConfigRequest {
  readonly labels: Labels;
  /** The query as sent, without the `?`. */
  readonly rawQuery: string;
  /** Empty when the client sends none. */
  readonly userAgent: string;
  /** Returns the client that sent the request. Called only for slow configs. Absent for a request without a client. */
  readonly client?: (() => string | undefined) | undefined;
  /** True if the request may spend a permit. False, as for HEAD and signatures, if it is absent. */
  readonly mayClaim?: boolean | undefined;
  /** Undefined for a request that no machine has sent: then davit shows what the machine would get. */
  readonly transport?: Transport | undefined;
  /** Returns the client's address. Called only for installs that need a permit. */
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

/** A config that needs a Profile. */
type MachineConfigName = Exclude<ConfigName, "metadata">;

/** A request, and how to answer it. */
interface AskedConfigRequest {
  readonly request: ConfigRequest;
  readonly make: Make;
  /** Undefined if the request spends no permit. */
  readonly desk: InstallDesk | undefined;
  /** Names the install for which the config is. Undefined unless a permit is open. */
  readonly reportToken?: string | undefined;
}

/** A candidate with a question. */
interface AskedCandidate {
  readonly machine: Selected;
  readonly ask: PermitAsk;
}

/** Stands in for the token of a machine where nothing installs. */
const sampleToken = "x".repeat(32);

export class BootConfigs {
  readonly #index: BootView;
  readonly #scripts: BootScripts;
  readonly #slowWork: BootConfigsOptions["slowWork"];
  readonly #permits: BootConfigsOptions["permits"];
  readonly #files: BootConfigsOptions["files"];
  readonly #urls: DavitUrls;
  readonly #maker = new BootMaker({ sha256 });
  readonly #kept: KeptConfigs;

  constructor(options: BootConfigsOptions) {
    this.#index = options.index;
    this.#slowWork = options.slowWork;
    this.#permits = options.permits;
    this.#files = options.files;
    this.#scripts = new BootScripts(options);
    this.#urls = new DavitUrls(options);
    // What is shown to people is not cached: each preview has its own limit, and its Groups may be those of machines.
    this.#kept = new KeptConfigs({ limitBytes: typeof options.permits === "string" ? 0 : keptConfigBytes });
  }

  /**
   * Returns the config that a machine asks for. It is made in this call, however long that takes.
   * @throws {BootError} for every refusal.
   */
  render(name: ConfigName, request: ConfigRequest): MachineConfig {
    const config = this.#configOf(name, { request, make: this.#atOnce, desk: undefined });
    assert(!(config instanceof Promise), "What is made at once is there at once");
    return config;
  }

  /**
   * As `render`, but returns a promise for a slow config, so that no other machine waits for it. It also asks the desk
   * for permits.
   * @throws {BootError} as `render`; also busy, and notReady during a stop.
   */
  answer(name: ConfigName, request: ConfigRequest): Soon<MachineConfig> {
    const desk = typeof this.#permits === "object" ? this.#permits : undefined;
    return madeAnew(() => this.#configOf(name, { request, make: this.#soon(request.client), desk }));
  }

  /**
   * Returns the files that a machine boots. Undefined if there are none, if they cannot be rendered, or if rendering
   * takes long.
   */
  bootFilesOf(machine: Selected): BootFiles | undefined {
    try {
      return asBroken({ ...machine, name: "ipxe" }, () =>
        this.#scripts.files({ ...machine, davitUrl: this.#urls.plain }, ofMachine(this.#soon(), "files")),
      );
    } catch (error) {
      if (error instanceof BootError) return undefined;
      throw error;
    }
  }

  #configOf(name: ConfigName, asking: AskedConfigRequest): Soon<MachineConfig> {
    const { request, make } = asking;
    if (name === "metadata") {
      const group = this.#index.selectGroup(request.labels);
      const profile = this.#index.profileOf(group);
      this.#urls.assertAllowed({ group, profile }, { isScript: false, transport: request.transport });
      const made = asBrokenSoon({ group, profile: undefined, name }, () =>
        this.#metadata({ group, profile }, request, make),
      );
      const isCurrent = () =>
        this.#index.selectGroup(request.labels) === group && this.#index.profileOf(group) === profile;
      return after(ifCurrent(made, isCurrent), (rendered) => ({ rendered, group: group.id, profile: undefined }));
    }
    const machine = this.#index.candidate(request.labels, purposeOf(name));
    const { ask, isDisk } = machine;
    this.#assertTransport(name, machine, asking);
    if (ask === undefined) {
      assertOpen(name, machine);
      return this.#made(name, machine, asking);
    }
    const { desk } = asking;
    if (isDisk) {
      if (desk !== undefined && request.mayClaim === true) noteDisk(desk, questionOf(ask, request, false));
      return this.#made(name, machine, asking);
    }
    if (desk === undefined) return this.#shown(name, { machine, ask }, asking);
    // First without the permit: a machine must not spend it on a config that davit cannot make.
    return after(this.#tried(name, machine, asking), () =>
      this.#permitted(name, { machine, ask }, { ...asking, desk }),
    );
  }

  #made(name: MachineConfigName, machine: Selected, asking: AskedConfigRequest): Soon<MachineConfig> {
    const { group, profile } = machine;
    const made = asBrokenSoon({ group, profile, name }, () => this.#renderFor(name, machine, asking));
    return after(
      ifCurrent(made, () => this.#isCurrent(name, machine, asking.request.labels)),
      (rendered) => {
        if (rendered === undefined) throw new BootError("noPart", { group: group.id, profile: profile.id });
        return { rendered, group: group.id, profile: profile.id };
      },
    );
  }

  /** @throws {BootError} if the machine gets no config now. */
  #isCurrent(name: MachineConfigName, { group, profile }: Selected, labels: Labels): boolean {
    const machine = this.#index.candidate(labels, purposeOf(name));
    if (machine.group !== group || machine.profile !== profile) return false;
    const part = partAt(name);
    if (part !== undefined) this.#index.template(machine, part, labels);
    return true;
  }

  /** Finds faults before the desk is asked: in a script by making it, in a config only whether there is one. */
  #tried(name: MachineConfigName, machine: Selected, asking: AskedConfigRequest): Soon<unknown> {
    if (name === "ipxe" || name === "grub") return this.#made(name, machine, asking);
    const part = partAt(name);
    assertUsable(machine, part);
    return this.#index.template(machine, part, asking.request.labels);
  }

  /** Asks the desk, and selects again: the objects may have changed while it decided. */
  #permitted(
    name: MachineConfigName,
    { machine: candidate, ask }: AskedCandidate,
    asking: AskedConfigRequest & { readonly desk: InstallDesk },
  ): Soon<MachineConfig> {
    const { request, desk } = asking;
    const isFor = isSealedFor(name, candidate);
    const question = questionOf(ask, request, isFor);
    const asked =
      name === "ipxe" || name === "grub"
        ? askWithFiles({
            desk,
            question,
            verdict: this.#index.verdictOn(ask),
            assertFiles: () => this.#assertFiles(name, candidate, asking),
          })
        : desk.ask(question);
    return after(asked, (answer) => {
      const machine = this.#index.select(request.labels, { ask, answer });
      this.#assertTransport(name, machine, asking);
      if (!isFor && isSealedFor(name, machine)) throw new BootError("late", { group: ask.group, profile: ask.profile });
      const reportToken = answer.kind === "granted" ? answer.reportToken : undefined;
      return this.#made(name, machine, { ...asking, reportToken });
    });
  }

  /** @throws {BootError} assetMissing. */
  #assertFiles(name: "ipxe" | "grub", candidate: Selected, { request, make }: AskedConfigRequest): Soon<unknown> {
    const files = this.#files;
    if (files === undefined) return undefined;
    const { group, profile } = candidate;
    const machine = { group, profile, davitUrl: this.#urls.for(candidate, request.transport) };
    const making = { davitUrls: this.#urls.own, make: ofMachine(make, name) };
    const checked = after(this.#scripts.assets(name, machine, making), async (assets) => {
      const asset = await files.firstMissing(assets);
      if (asset !== undefined) throw new BootError("assetMissing", { group: group.id, profile: profile.id, asset });
    });
    return ifCurrent(checked, () => this.#isCurrent(name, candidate, request.labels));
  }

  /**
   * Makes a config for people, by what the ledger permits now.
   * @throws {BootError} noPermit; also for a machine, if davit has no desk. assetMissing, if the claim had to wait.
   */
  #shown(name: MachineConfigName, { machine, ask }: AskedCandidate, asking: AskedConfigRequest): Soon<MachineConfig> {
    const why = this.#whyNotShown(ask, asking.request.labels);
    if (why !== undefined)
      throw new BootError("noPermit", { group: ask.group, profile: ask.profile, problem: permitRefusals[why] });
    const made = () => this.#made(name, machine, { ...asking, reportToken: sampleToken });
    const isClaim = this.#permits === "shown" && this.#index.verdictOn(ask).kind === "claim";
    if (!isClaim || (name !== "ipxe" && name !== "grub")) return made();
    return after(this.#assertFiles(name, machine, asking), made);
  }

  #whyNotShown(ask: PermitAsk, labels: Labels): PermitRefusal | undefined {
    if (this.#permits === "assumed") return undefined;
    if (this.#permits !== "shown") return "noDesk";
    const verdict = this.#index.verdictOn(ask);
    if (verdict.kind !== "refused") return verdict.kind === "disk" ? "over" : undefined;
    // The config of an install that the machine may begin now.
    const script = ask.purpose === "config" ? this.#index.candidate(labels, "script").ask : undefined;
    const isOpen = script !== undefined && this.#index.verdictOn(script).kind === "claim";
    return isOpen ? undefined : verdict.why;
  }

  #assertTransport(name: MachineConfigName, machine: Selected, { request: { transport } }: AskedConfigRequest): void {
    this.#urls.assertAllowed(machine, { isScript: purposeOf(name) === "script", transport });
  }

  #renderFor(name: MachineConfigName, candidate: Selected, asking: AskedConfigRequest): Soon<Rendered | undefined> {
    const { request, make, reportToken } = asking;
    const { group, profile } = candidate;
    const claim = reportToken && claimTokenOf(reportToken);
    const machine = { group, profile, davitUrl: this.#urls.for(candidate, request.transport), claim };
    switch (name) {
      case "ipxe":
        return this.#scripts.ipxe(machine, ofMachine(make, name));
      case "grub":
        return this.#scripts.grub(machine, request, ofMachine(make, name));
      default:
        return this.#config(partAt(name), machine, asking);
    }
  }

  #config(part: TemplatePart, machine: AddressedMachine, asking: AskedConfigRequest): Soon<Rendered | undefined> {
    const { request, make, reportToken } = asking;
    assertUsable(machine, part);
    const template = this.#index.template(machine, part, request.labels);
    const kept = this.#kept.get(machine, part);
    if (kept !== undefined) return kept;
    const { group, profile, davitUrl } = machine;
    const { labels, rawQuery } = request;
    const reportUrl = reportToken === undefined ? undefined : `${davitUrl}/report/${reportToken}`;
    const scope = { group, defaults: profile.content.metadata, davitUrl };
    const job = { ...template, kind: "part", part, ...scope, labels, rawQuery, reportUrl } as const;
    return after(make(job, { group, version: profile, key: part, davitUrl }), ({ made: { rendered }, isOfRequest }) =>
      isOfRequest || rendered === undefined ? rendered : this.#kept.keep(machine, part, rendered),
    );
  }

  #metadata(
    { group, profile }: { readonly group: BootGroup; readonly profile: BootProfile | undefined },
    { labels, rawQuery }: ConfigRequest,
    make: Make,
  ): Soon<Rendered> {
    const defaults = profile?.content.metadata;
    if (group.lines !== undefined && group.defaults === defaults) return renderMetadata(group.lines, labels, rawQuery);
    // Metadata is data: none of it is a template, so the URL is in none of it.
    const davitUrl = this.#urls.plain;
    const job = { kind: "metadata", group, defaults, davitUrl, labels, rawQuery } as const;
    return after(
      make(job, { group, version: defaults, key: "metadata", davitUrl }),
      ({ made: { rendered, lines } }) => {
        if (rendered !== undefined) return rendered;
        assert(lines !== undefined, "Metadata is made as lines, or as a whole");
        group.lines = lines;
        group.defaults = defaults;
        return renderMetadata(lines, labels, rawQuery);
      },
    );
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
