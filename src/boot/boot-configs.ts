/**
 * Finds a machine's config: selects its Group, then renders. Each answer comes from one state of the store. As long as
 * the store does not change, equal requests get equal bytes.
 */

import { assert } from "../lib/errors.ts";
import { after, rescued, type Soon } from "../lib/soon.ts";
import type { Labels } from "../model/labels/labels.ts";
import {
  type GenericPart,
  isLoader,
  isSealed,
  type Loader,
  loaders,
  partAt,
  partEndpoints,
} from "../model/objects/profile.ts";
import type { PermitAsk, PermitPurpose, Verdict } from "../model/permits/permit.ts";
import type { DeskAnswer, DeskAsk, PermitDesk } from "../model/permits/permit-desk.ts";
import { type PermitRefusal, permitRefusals } from "../model/refusals.ts";
import type { ScriptAsset } from "../render/boot/named-assets.ts";
import type { Rendered } from "../render/core/rendered.ts";
import { BootError } from "./core/boot-error.ts";
import type { Candidate, Selected } from "./core/selected.ts";
import type { BootFiles, BootScriptsOptions } from "./making/boot-scripts.ts";
import { ConfigMaker, type Make } from "./making/config-maker.ts";
import type { SlowWork } from "./making/slow-work.ts";
import type { BootView } from "./selection/boot-index.ts";
import { type DavitUrlOptions, DavitUrls, type Transport } from "./transport.ts";

/**
 * Every config of a machine, named like its endpoint. The named parts of a Profile (`genericParts`) are not in this
 * list.
 */
export const configNames = [...loaders, ...partEndpoints, "metadata"] as const;
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

/** A config that needs a Profile. */
type MachineConfigName = Exclude<ConfigName, "metadata">;

/** A request, and how to answer it. */
interface AskedConfigRequest {
  readonly request: ConfigRequest;
  readonly make: Make;
  /** Undefined if the request spends no permit. */
  readonly desk: InstallDesk | undefined;
}

/** A candidate with a question. */
type AskedCandidate = Candidate & { readonly ask: PermitAsk };

/** Stands in for the token of a machine where nothing installs. */
const sampleToken = "x".repeat(32);

export class BootConfigs {
  readonly #index: BootView;
  readonly #permits: BootConfigsOptions["permits"];
  readonly #files: BootConfigsOptions["files"];
  readonly #urls: DavitUrls;
  readonly #maker: ConfigMaker;

  constructor(options: BootConfigsOptions) {
    const { index, slowWork, permits, files } = options;
    this.#index = index;
    this.#permits = permits;
    this.#files = files;
    this.#urls = new DavitUrls(options);
    this.#maker = new ConfigMaker({ ...options, slowWork, keeps: typeof permits !== "string" });
  }

  /**
   * Returns the config that a machine asks for. It is made in this call, however long that takes.
   * @throws {BootError} for every refusal.
   */
  render(name: ConfigName, request: ConfigRequest): MachineConfig {
    const config = this.#configOf(name, { request, make: this.#maker.atOnce, desk: undefined });
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
    return madeAnew(() => this.#configOf(name, { request, make: this.#maker.soon(request.client), desk }));
  }

  /**
   * Returns the files that a machine boots. Undefined if there are none, if they cannot be rendered, or if rendering
   * takes long.
   */
  bootFilesOf(selected: Selected): BootFiles | undefined {
    return this.#maker.files(selected, this.#urls.plain);
  }

  #configOf(name: ConfigName, asking: AskedConfigRequest): Soon<MachineConfig> {
    if (name === "metadata") return this.#metadata(asking);
    const candidate = this.#index.candidate(asking.request.labels, purposeOf(name));
    const { ask, isDisk } = candidate;
    this.#assertTransport(name, candidate, asking);
    if (ask === undefined) assertOpen(name, candidate);
    else if (isDisk) noteDisk(ask, asking);
    else if (asking.desk === undefined) return this.#shown(name, { ...candidate, ask }, asking);
    else return this.#claimed(name, { ...candidate, ask }, { ...asking, desk: asking.desk });
    return this.#served(name, candidate, asking);
  }

  #metadata({ request, make }: AskedConfigRequest): Soon<MachineConfig> {
    const { labels, transport } = request;
    const group = this.#index.selectGroup(labels);
    const profile = this.#index.profileOf(group);
    this.#urls.assertAllowed({ group, profile }, { isScript: false, transport });
    // Metadata is data: none of it is a template, so the URL is in none of it.
    const made = this.#maker.metadata({ group, profile }, { request, make, davitUrl: this.#urls.plain });
    const isCurrent = () => this.#index.selectGroup(labels) === group && this.#index.profileOf(group) === profile;
    return after(ifCurrent(made, isCurrent), (rendered) => ({ rendered, group: group.id, profile: undefined }));
  }

  /** Renders what was selected. @param reportToken of the open permit. */
  #served(
    name: MachineConfigName,
    selected: Selected,
    asking: AskedConfigRequest,
    reportToken?: string,
  ): Soon<MachineConfig> {
    const { group, profile } = selected;
    const { request, make } = asking;
    const davitUrl = this.#urls.for(selected, request.transport);
    const made = this.#maker.render(name, selected, { request, make, davitUrl, reportToken });
    return after(
      ifCurrent(made, () => this.#isCurrent(name, selected, request.labels)),
      (rendered) => {
        if (rendered === undefined) throw new BootError("noPart", { group: group.id, profile: profile.id });
        return { rendered, group: group.id, profile: profile.id };
      },
    );
  }

  /** @throws {BootError} if the machine gets no config now. */
  #isCurrent(name: MachineConfigName, { group, profile }: Selected, labels: Labels): boolean {
    const now = this.#index.candidate(labels, purposeOf(name));
    if (now.group !== group || now.profile !== profile) return false;
    const part = partAt(name);
    if (part !== undefined) this.#index.template(now, part, labels);
    return true;
  }

  /**
   * The config of an install that needs a permit: selected before, it is tried, then claimed, selected again and
   * served. A machine must not spend its permit on a config that davit cannot make. And the objects may have changed
   * while the desk decided.
   */
  #claimed(
    name: MachineConfigName,
    candidate: AskedCandidate,
    asking: AskedConfigRequest & { readonly desk: InstallDesk },
  ): Soon<MachineConfig> {
    const { request, desk } = asking;
    const { ask } = candidate;
    const isFor = isSealedFor(name, candidate);
    const claim = () => {
      const question = questionOf(ask, request, isFor);
      if (!isLoader(name)) return desk.ask(question);
      const assertFiles = () => this.#assertFiles(name, candidate, asking);
      return askWithFiles({ desk, question, verdict: this.#index.verdictOn(ask), assertFiles });
    };
    return after(after(this.#tried(name, candidate, asking), claim), (answer) => {
      const selected = this.#index.select(request.labels, { ask, answer });
      this.#assertTransport(name, selected, asking);
      if (!isFor && isSealedFor(name, selected))
        throw new BootError("late", { group: ask.group, profile: ask.profile });
      return this.#served(name, selected, asking, answer.kind === "granted" ? answer.reportToken : undefined);
    });
  }

  /** Finds faults before the desk is asked: in a script by making it, in a config only whether there is one. */
  #tried(name: MachineConfigName, selected: Selected, asking: AskedConfigRequest): Soon<unknown> {
    return isLoader(name)
      ? this.#served(name, selected, asking)
      : this.#maker.assertServed(name, selected, asking.request.labels);
  }

  /** @throws {BootError} assetMissing. */
  #assertFiles(name: Loader, selected: Selected, { request, make }: AskedConfigRequest): Soon<unknown> {
    const files = this.#files;
    if (files === undefined) return undefined;
    const davitUrl = this.#urls.for(selected, request.transport);
    const named = this.#maker.assets(name, selected, { make, davitUrl, davitUrls: this.#urls.own });
    const checked = after(named, async (assets) => {
      const asset = await files.firstMissing(assets);
      if (asset === undefined) return;
      throw new BootError("assetMissing", { group: selected.group.id, profile: selected.profile.id, asset });
    });
    return ifCurrent(checked, () => this.#isCurrent(name, selected, request.labels));
  }

  /**
   * Makes a config for people, by what the ledger permits now.
   * @throws {BootError} noPermit; also for a machine, if davit has no desk. assetMissing, if the claim had to wait.
   */
  #shown(name: MachineConfigName, candidate: AskedCandidate, asking: AskedConfigRequest): Soon<MachineConfig> {
    const { ask } = candidate;
    const why = this.#whyNotShown(ask, asking.request.labels);
    if (why !== undefined)
      throw new BootError("noPermit", { group: ask.group, profile: ask.profile, problem: permitRefusals[why] });
    const made = () => this.#served(name, candidate, asking, sampleToken);
    const isClaim = this.#permits === "shown" && this.#index.verdictOn(ask).kind === "claim";
    return isClaim && isLoader(name) ? after(this.#assertFiles(name, candidate, asking), made) : made();
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

  #assertTransport(name: MachineConfigName, selected: Selected, { request: { transport } }: AskedConfigRequest): void {
    this.#urls.assertAllowed(selected, { isScript: isLoader(name), transport });
  }
}

/** Scripts and configs need different permits. */
function purposeOf(name: MachineConfigName): PermitPurpose {
  return isLoader(name) ? "script" : "config";
}

/** @param isOnlyForInstalls see `DeskAsk.isSealed`. */
function questionOf(ask: PermitAsk, request: ConfigRequest, isOnlyForInstalls: boolean): DeskAsk {
  const { mayClaim = false, rawQuery, address } = request;
  return { ...ask, mayClaim, isSealed: isOnlyForInstalls, rawQuery, address: address?.() };
}

/** True for a config that is only for the address that has claimed the machine's install. */
function isSealedFor(name: MachineConfigName, { profile }: Selected): boolean {
  const part = partAt(name);
  return part !== undefined && isSealed(profile.content.templates[part]);
}

/** @throws {BootError} noPermit for a config that is only for installs, in a Profile without `install`. */
function assertOpen(name: MachineConfigName, selected: Selected): void {
  if (!isSealedFor(name, selected)) return;
  const { group, profile } = selected;
  throw new BootError("noPermit", { group: group.id, profile: profile.id, problem: permitRefusals.notClaimed });
}

/**
 * Reports a boot from the disk to the desk, which records a machine of an adopted Group. The machine does not wait for
 * the desk. The desk logs a failure. The machine asks again at its next boot.
 */
function noteDisk(ask: PermitAsk, { desk, request }: AskedConfigRequest): void {
  if (desk === undefined || request.mayClaim !== true) return;
  const answer = desk.ask(questionOf(ask, request, false));
  if (answer instanceof Promise) answer.catch(() => undefined);
}

/** The files that davit serves. */
export interface ServedFiles {
  /** Returns the path of the first file that davit would not send now, for people; undefined if it would send all. */
  firstMissing(assets: readonly ScriptAsset[]): Promise<string | undefined>;
}

interface ClaimQuestion {
  readonly desk: InstallDesk;
  readonly question: DeskAsk;
  /** What this process expects the desk to answer. */
  readonly verdict: Verdict;
  /** Checks the files of the script. It is called only before a claim. @throws {BootError} if one is missing. */
  readonly assertFiles: () => Soon<unknown>;
}

/**
 * Asks the desk for a script. The files are checked before the machine spends its permit: without a kernel, the machine
 * could not install, and would boot its empty disk.
 */
function askWithFiles({ desk, question, verdict, assertFiles }: ClaimQuestion): Soon<DeskAnswer> {
  const claim = () => after(assertFiles(), () => desk.ask(question));
  if (!question.mayClaim) return desk.ask(question);
  if (verdict.kind === "claim") return claim();
  if (verdict.kind !== "refused" || desk.isRemote !== true) return desk.ask(question);
  // The desk may know a newer ledger, in which the permit is open. So the first question must not claim.
  return after(desk.ask({ ...question, mayClaim: false }), (answer) => {
    if (answer.kind === "late") return answer;
    if (answer.kind !== "refused") return desk.ask(question);
    return answer.why === "notClaimed" ? claim() : answer;
  });
}

/** The objects changed while a config was made. */
class OutdatedConfig extends Error {
  override readonly name = "OutdatedConfig";
}

/** After so many attempts the machine asks again later. */
const maxAttempts = 3;

/**
 * Returns what was made. If that took another thread, it first checks the objects: meanwhile somebody may have held the
 * machine or changed its Profile, and an old config could still install it.
 * @param isCurrent false if the objects have changed. It may also throw why the machine gets no config now.
 */
function ifCurrent<Made>(made: Soon<Made>, isCurrent: () => boolean): Soon<Made> {
  if (!(made instanceof Promise)) return made;
  return after(made, (config) => {
    if (isCurrent()) return config;
    throw new OutdatedConfig();
  });
}

/**
 * Makes a config. If `ifCurrent` refuses the config, makes a new one.
 * @throws {BootError} busy, if the objects change during each attempt.
 */
function madeAnew<Made>(make: () => Soon<Made>, attempt = 1): Soon<Made> {
  return rescued(make, (error) => {
    if (!(error instanceof OutdatedConfig)) throw error;
    if (attempt === maxAttempts) throw new BootError("busy", { problem: "the objects changed during each attempt" });
    return madeAnew(make, attempt + 1);
  });
}
