/**
 * The boot service's own view of the store: every Profile and Group in memory, ready for selection.
 *
 * The index follows the documents below `/davit`, and finds a machine's Group and Profile. An answer comes from one
 * state of the store, never from half a change. The cost of an answer does not grow with the number of Groups. The
 * index answers nothing until the store has `/davit/synced` and the app has called `open`. If a document becomes
 * unreadable, its last readable version stays. The index never waits for a disk, a network or a timer.
 */

import type { Clock } from "../../lib/clock.ts";
import { assert } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { DocumentChange, FeedListener } from "../../model/feed.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { GroupPermits } from "../../model/objects/group.ts";
import type { MachineDocument } from "../../model/objects/machine.ts";
import type { TemplatePart } from "../../model/objects/profile.ts";
import { clearReader, type SecretReader } from "../../model/objects/secret-texts.ts";
import {
  type NamedGrant,
  type PermitAsk,
  type PermitPurpose,
  type ReportRules,
  type Verdict,
  verdictOf,
} from "../../model/permits/permit.ts";
import { type CommonDoubt, permitRefusals } from "../../model/refusals.ts";
import { SelectorIndex } from "../../model/selection/selector-index.ts";
import { BootError } from "../core/boot-error.ts";
import { type BootGroup, type BootProfile, KnownDocuments, MachineGroups } from "../core/known-documents.ts";
import type { BootMachine, SoleMachine } from "../core/known-machines.ts";
import type { TemplateText } from "../core/known-secrets.ts";
import type { BootLedger, Candidate, Selected } from "../core/selected.ts";
import { type SeenAsker, see, type World } from "./asker.ts";
import {
  checks,
  checksFor,
  chosenOf,
  firstRefusal,
  isWithholding,
  type SelectionCheck,
  whyNoProfile,
} from "./checks.ts";
import { commonDoubt } from "./doubts.ts";
import { type Freshness, Settling } from "./freshness.ts";
import { DiskBoots, openedBy, type Pass } from "./gate.ts";

/** The methods of the index that making a config needs. */
export type BootView = Pick<BootIndex, "selectGroup" | "candidate" | "select" | "verdictOn" | "template" | "profileOf">;

export interface BootIndexOptions {
  readonly log: Pick<Log, "error">;
  /** For the settling time. Absent if all documents are present from the start. */
  readonly clock?: Pick<Clock, "monotonicMs">;
  /** Says whether the last proof is too old for an `Install`. Absent if no proof is ever too old. */
  readonly freshness?: Pick<Freshness, "staleness" | "ageSeconds">;
  /** Absent while davit knows no ledger: no machine then has reported labels, and every install needs the desk. */
  readonly ledger?: BootLedger | undefined;
  /** Absent if there is no key: then no encrypted text is served. */
  readonly secretReader?: SecretReader;
}

export class BootIndex implements FeedListener {
  readonly #log: Pick<Log, "error">;
  readonly settling: Settling;
  readonly ledger: BootIndexOptions["ledger"];
  readonly #machineGroups = new MachineGroups();
  readonly #disks = new DiskBoots();
  #world: World;
  #isOpen = false;
  #revision = 0;

  constructor({ log, clock, freshness, ledger, secretReader = clearReader }: BootIndexOptions) {
    this.#log = log;
    this.settling = new Settling(clock);
    this.ledger = ledger;
    const known = new KnownDocuments(secretReader);
    this.#world = { known, selectors: new SelectorIndex(), ledger, settling: this.settling, freshness };
  }

  get #known(): KnownDocuments {
    return this.#world.known;
  }

  /** Allows answers. Called when davit has heard from the source since its start, or after the grace time. */
  open(): void {
    this.#isOpen = true;
  }

  /**
   * Restarts the settling time. Called when the first complete list since the start is, or soon will be, in the store.
   */
  listed(): void {
    this.settling.begin();
  }

  /** True if davit answers machines. */
  get isReady(): boolean {
    return this.#isOpen && this.#known.synced !== undefined;
  }

  /**
   * True while the sync in the store is incomplete: davit has not yet read the whole source. It then answers only
   * machines whose Group names them.
   */
  get isWithholding(): boolean {
    return isWithholding(this.#known);
  }

  /** The doubt that keeps every machine from an Install now; undefined if there is none. */
  get doubt(): CommonDoubt | undefined {
    return commonDoubt(this.#world);
  }

  /** Reads the texts of Secrets again. Call it when keys came or went. */
  keysChanged(): void {
    this.#revision += 1;
    this.#known.secrets.readAgain();
  }

  /** Counts changes of the documents. */
  get revision(): number {
    return this.#revision;
  }

  /** For a person: a line for each Profile with a text that davit cannot decrypt. */
  get undecryptable(): readonly string[] {
    return this.#known.undecryptable;
  }

  get groupCount(): number {
    return this.#known.groups.size;
  }

  get profileCount(): number {
    return this.#known.profiles.size;
  }

  /** Every group by its `namespace/name`. The map is live: it changes with the store. */
  get groups(): ReadonlyMap<string, BootGroup> {
    return this.#known.groups;
  }

  /** Machine objects by `namespace/name`, wherever they count. */
  *machines(): Iterable<readonly [name: string, document: MachineDocument]> {
    for (const [name, { document }] of this.#known.machines.all) yield [name, document];
  }

  /** The grants of all objects, also of those that are refused. */
  get grants(): readonly NamedGrant[] {
    const grants: NamedGrant[] = [];
    for (const [id, { permits }] of this.#known.groups)
      if (permits?.install !== undefined) grants.push({ key: `group/${id}`, grant: permits.install });
    for (const [id, { spec }] of this.machines())
      if (spec.install !== undefined) grants.push({ key: `machine/${id}`, grant: spec.install });
    return grants;
  }

  /** Returns what an object grants; undefined if there is no such object. @param key as in `NamedGrant`. */
  grantingAt(key: string): Pick<GroupPermits, "install"> | undefined {
    const [kind, ...id] = key.split("/");
    const name = id.join("/");
    if (kind === "machine") return this.#known.machines.all.get(name)?.document.spec;
    const group = kind === "group" ? this.#known.groups.get(name) : undefined;
    return group && (group.permits ?? {});
  }

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    this.#revision += 1;
    const known = new KnownDocuments(this.#known.secrets.reader);
    for (const [path, text] of documents) {
      if (known.learn(path, text)) continue;
      this.#reportUnreadable(path);
      known.inherit(path, this.#known);
    }
    this.#world = { ...this.#world, known, selectors: new SelectorIndex(known.groups.values()) };
    this.settling.note(known.synced);
  }

  changed(changes: readonly DocumentChange[]): void {
    this.#revision += 1;
    for (const { path, text } of changes) {
      const before = this.#known.groupAt(path);
      if (text === undefined) this.#known.forget(path);
      else if (!this.#known.learn(path, text)) this.#reportUnreadable(path);
      const after = this.#known.groupAt(path);
      if (before === after) continue;
      if (before !== undefined) this.#world.selectors.remove(before);
      if (after !== undefined) this.#world.selectors.add(after);
    }
    this.settling.note(this.#known.synced);
  }

  /**
   * Returns the group that a machine with these labels gets. It may get metadata without a permit.
   * @throws {BootError} see `checks.metadata`; also notReady, as for all methods below.
   */
  selectGroup(labels: Labels): BootGroup {
    const seen = this.#see(labels, undefined);
    this.#pass(checks.metadata, seen);
    return this.#groupOf(seen);
  }

  /**
   * Returns the group and Profile that a machine with these labels may get, and the question that the desk must answer
   * first. A machine that boots from its disk by `InstallPlan.then` needs no answer, and no fresh objects.
   * @throws {BootError} see `checksFor`.
   */
  candidate(labels: Labels, purpose: PermitPurpose): Candidate {
    const seen = this.#see(labels, purpose);
    this.#pass(checksFor(seen), seen);
    const { group, profile } = this.#selected(seen);
    return { group, profile, ask: seen.ask, isDisk: seen.isDisk };
  }

  /**
   * Returns the group and Profile that a machine with these labels gets.
   * @param pass the desk's answer to the question of `candidate`. Without it, no install of a Profile with a plan is
   * returned.
   * @throws {BootError} as `candidate`; also noPermit and late.
   */
  select(labels: Labels, pass?: Pass): Selected {
    const seen = this.#see(labels, pass?.ask.purpose ?? "script");
    this.#pass(checksFor(seen, pass?.answer.kind === "disk"), seen);
    const { ask, plan, isDisk } = seen;
    const selected = this.#selected(seen);
    if (isDisk || ask === undefined || plan === undefined) return selected;
    const subject = { group: ask.group, profile: ask.profile };
    if (pass === undefined) throw new BootError("noPermit", { ...subject, problem: permitRefusals.noDesk });
    return openedBy(ask, pass, this.ledger) === "disk" ? this.#disks.of(selected, plan) : selected;
  }

  /** Returns the Machines that a request names, wherever they count. */
  machinesOf(labels: Labels): readonly BootMachine[] {
    return this.#known.machines.of(labels);
  }

  /** Returns the Machine that takes part in selection. */
  soleMachineOf(labels: Labels): SoleMachine {
    return this.#known.machines.soleOf(labels, undefined);
  }

  /** Decides a question by what this process knows of the ledger. It changes nothing. */
  verdictOn(ask: PermitAsk): Verdict {
    return this.ledger === undefined ? { kind: "refused", why: "noLedger" } : verdictOf(ask, this.ledger);
  }

  /** Returns which labels the machines of a Profile (`namespace/name`) may report; undefined for none. */
  reportRulesOf(profileId: string): ReportRules | undefined {
    return this.#known.profiles.get(profileId)?.content.reports;
  }

  /** Returns a group by its `namespace/name`, and its Profile; undefined if either is missing. */
  machineOf(groupId: string): Selected | undefined {
    const group = this.#known.groups.get(groupId);
    const profile = group && this.#known.profiles.get(group.profileId);
    return group && profile && { group, profile };
  }

  /**
   * Returns the Profile of a group, for what every machine gets of it; undefined if it does not exist.
   * @throws {BootError} failed or vanished, if its content is unknown.
   */
  profileOf(group: BootGroup): BootProfile | undefined {
    const profile = this.#known.profiles.get(group.profileId);
    const subject = { group: group.id, profile: group.profileId };
    if (profile?.hasFailed === true) throw new BootError("failed", subject);
    if (profile === undefined && whyNoProfile(group.profileId, this.#known) === "vanished")
      throw new BootError("vanished", subject);
    return profile;
  }

  /**
   * Returns the text of one of a machine's templates.
   * @throws {BootError} noPart if there is no such template, broken if the template cannot be used or its text is
   * missing, undecryptable. For an `Install` also bereft, withheld and doubtful.
   */
  template(machine: Selected, part: TemplatePart, labels: Labels): TemplateText {
    const { profile } = machine;
    // The Profile now boots from the disk. But an installer that started earlier may still ask for its configs.
    if (profile.content.effect === "Install" && !profile.isInstall)
      this.#pass(checks.formerInstall, { ...this.#see(labels, undefined), profile });
    return this.#known.secrets.template(machine, part);
  }

  #see(labels: Labels, purpose: PermitPurpose | undefined): SeenAsker {
    if (!this.isReady) throw new BootError("notReady");
    return see(labels, purpose, this.#world);
  }

  /** @throws {BootError} the first refusal of the checks. */
  #pass(checks: readonly SelectionCheck[], seen: SeenAsker): void {
    const refusal = firstRefusal(checks, seen, this.#world);
    if (refusal !== undefined) throw new BootError(refusal.reason, refusal);
  }

  /** Returns what a machine gets that has passed its checks. */
  #selected(seen: SeenAsker): Selected {
    const { profile, plan } = chosenOf(seen);
    const selected = { group: this.#groupOf(seen), profile };
    return seen.isDisk && plan !== undefined ? this.#disks.of(selected, plan) : selected;
  }

  /** Returns the Group with the metadata of the Machine. */
  #groupOf({ group, own: { machine } }: SeenAsker): BootGroup {
    assert(group !== undefined, "A machine without a Group is refused before");
    return machine === undefined ? group : this.#machineGroups.of(group, machine);
  }

  /** Logs only the path, because the document contains its user's text. */
  #reportUnreadable(path: string): void {
    this.#log.error({ path }, "unreadable document in the store, the last readable one stays");
  }
}
