/**
 * The boot service's own view of the store: every Profile and Group in memory, ready for selection.
 *
 * The index follows the documents below `/davit`, and finds a machine's Group and Profile. An answer comes from one
 * state of the store, never from half a change. The cost of an answer does not grow with the number of Groups. The
 * index answers nothing until the store has `/davit/synced` and the app has called `open`. If a document becomes
 * unreadable, its last readable version stays. The index never waits for a disk, a network or a timer.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { DocumentChange, FeedListener } from "../../model/feed.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { isCatchAll } from "../../model/objects/group.ts";
import type { TemplatePart } from "../../model/objects/profile.ts";
import { clearReader, type SecretReader } from "../../model/objects/secret-texts.ts";
import {
  type InstallPlan,
  type PermitAsk,
  type PermitPurpose,
  type ReportRules,
  type Verdict,
  verdictOf,
} from "../../model/permits/permit.ts";
import { type BootRefusal, type CommonDoubt, type Doubt, doubtText, permitRefusals } from "../../model/refusals.ts";
import { SelectorIndex } from "../../model/selection/selector-index.ts";
import { namesMachine } from "../../model/selection/specificity.ts";
import { BootError } from "../core/boot-error.ts";
import { type BootGroup, type BootProfile, KnownDocuments } from "../core/known-documents.ts";
import { type BootMachine, mergedLabels, type SoleMachine } from "../core/known-machines.ts";
import type { TemplateText } from "../core/known-secrets.ts";
import { MachineGroups } from "../core/machine-groups.ts";
import type { BootLedger, Candidate, Selected } from "../core/selected.ts";
import type { Freshness } from "./freshness.ts";
import { askOf, DiskBoots, openedBy, type Pass, planOf } from "./gate.ts";
import { assertIdentity, doubtOf } from "./install-doubts.ts";
import { assertSole, type ChosenGroup, type LabelledRequest, soleFor } from "./selection.ts";
import { Settling } from "./settling.ts";
import { unclearDisk } from "./unclear-machine.ts";

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
  readonly #freshness: BootIndexOptions["freshness"];
  readonly ledger: BootIndexOptions["ledger"];
  readonly #machineGroups = new MachineGroups();
  readonly #disks = new DiskBoots();
  #known: KnownDocuments;
  #selectors = new SelectorIndex<BootGroup>();
  #isOpen = false;
  #revision = 0;

  constructor({ log, clock, freshness, ledger, secretReader = clearReader }: BootIndexOptions) {
    this.#log = log;
    this.settling = new Settling(clock);
    this.#freshness = freshness;
    this.ledger = ledger;
    this.#known = new KnownDocuments(secretReader);
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
    return this.#known.synced?.complete === false;
  }

  /** The doubt that keeps every machine from an Install now; undefined if there is none. */
  get doubt(): CommonDoubt | undefined {
    const { half = false, changing = false } = this.#known.synced ?? {};
    if (half || changing) return half ? "half" : "changing";
    if (this.#known.unreadable.size > 0) return "unreadable";
    return this.#freshness?.staleness;
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

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    this.#revision += 1;
    const known = new KnownDocuments(this.#known.secrets.reader);
    for (const [path, text] of documents) {
      if (known.learn(path, text)) continue;
      this.#reportUnreadable(path);
      known.inherit(path, this.#known);
    }
    this.#selectors = new SelectorIndex(known.groups.values());
    this.settling.note(known.synced);
    this.#known = known;
  }

  changed(changes: readonly DocumentChange[]): void {
    this.#revision += 1;
    for (const { path, text } of changes) {
      const before = this.#known.groupAt(path);
      if (text === undefined) this.#known.forget(path);
      else if (!this.#known.learn(path, text)) this.#reportUnreadable(path);
      const after = this.#known.groupAt(path);
      if (before === after) continue;
      if (before !== undefined) this.#selectors.remove(before);
      if (after !== undefined) this.#selectors.add(after);
    }
    this.settling.note(this.#known.synced);
  }

  /**
   * Returns the group that a machine with these labels gets. It may get metadata without a permit.
   * @throws {BootError} notReady, ambiguous, unreadable, withheld, bereft, noMatch, tied, oldProfile, refused, held or
   * unapproved.
   */
  selectGroup(labels: Labels): BootGroup {
    const seen = this.#see(labels);
    this.#assertPresent(seen);
    return this.#groupOf(this.#choose(seen));
  }

  /**
   * Returns the group and Profile that a machine with these labels may get, and the question that the desk must answer
   * first. A machine that boots from its disk by `InstallPlan.then` needs no answer, and no fresh objects.
   * @throws {BootError} as `selectGroup`; also noProfile, vanished, failed, withheld and doubtful.
   */
  candidate(labels: Labels, purpose: PermitPurpose): Candidate {
    const seen = this.#see(labels, true);
    const plan = this.#planOf(seen, purpose);
    if (seen.sole.isAmbiguous) return this.#unclear(seen, purpose === "script" ? plan : undefined);
    if (plan !== undefined) return this.#planned(seen, purpose, plan);
    return { machine: this.#free(seen), ask: undefined, isDisk: false };
  }

  /**
   * Returns the group and Profile that a machine with these labels gets.
   * @param pass the desk's answer to the question of `candidate`. Without it, no install of a Profile with a plan is
   * returned.
   * @throws {BootError} as `candidate`; also noPermit and late.
   */
  select(labels: Labels, pass?: Pass): Selected {
    const purpose = pass?.ask.purpose ?? "script";
    const seen = this.#see(labels, true);
    const plan = this.#planOf(seen, purpose);
    if (seen.sole.isAmbiguous) return this.#unclear(seen, purpose === "script" ? plan : undefined).machine;
    if (plan === undefined) return this.#free(seen);
    const { machine, ask, isDisk } = this.#planned(seen, purpose, plan, pass?.answer.kind === "disk");
    if (isDisk || ask === undefined) return machine;
    const subject = { group: machine.group.id, profile: machine.profile.id };
    if (pass === undefined) throw new BootError("noPermit", { ...subject, problem: permitRefusals.noDesk });
    return openedBy(ask, pass, this.ledger) === "disk" ? this.#disks.of(machine, plan) : machine;
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
    if (profile === undefined && this.#whyNoProfile(group) === "vanished") throw new BootError("vanished", subject);
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
    if (profile.content.effect === "Install" && !profile.isInstall) {
      const chosen = this.#choose(this.#see(labels));
      this.#assertPresent(chosen, "config");
      this.#assertCertain(chosen, profile);
    }
    return this.#known.secrets.template(machine, part);
  }

  /** @throws {BootError} notReady, tied, held, ambiguous (a Machine: not if `seesUnclear`), unreadable, withheld. */
  #see(asked: Labels, seesUnclear = false): LabelledRequest {
    const { synced, machines } = this.#known;
    if (synced === undefined || !this.#isOpen) throw new BootError("notReady");
    const sole = machines.soleOf(asked, undefined);
    const reported = this.ledger?.reportedLabels(asked, sole.machine?.spec.identities);
    const labels = mergedLabels(asked, sole.machine, reported);
    const group = this.#winner(labels);
    if (sole.isHeld || !seesUnclear) assertSole(sole, group);
    assertIdentity(asked, group, this.#known, this.#selectors);
    // An unreadable object may be this machine's own group.
    if (!synced.complete && !namesMachine(group)) throw new BootError("withheld", group && { group: group.id });
    return { asked, labels, sole, group };
  }

  /** @throws {BootError} noMatch, tied, oldProfile, refused, held, ambiguous or unapproved. */
  #choose(seen: LabelledRequest): ChosenGroup {
    const { group } = seen;
    if (group === undefined) throw new BootError("noMatch");
    if (group.barrier !== undefined) throw new BootError(group.barrier, { group: group.id });
    const sole = soleFor(seen, group, this.#known.machines);
    if (group.permits?.approval !== undefined && sole.machine?.isApproved !== true)
      throw new BootError("unapproved", { group: group.id });
    return { ...seen, group, machine: sole.machine };
  }

  /** Returns the group with the metadata of the Machine. */
  #groupOf({ group, machine }: ChosenGroup): BootGroup {
    return machine === undefined ? group : this.#machineGroups.of(group, machine);
  }

  /** Returns the plan if the machine needs a permit; undefined also without a usable Profile. */
  #planOf({ group }: LabelledRequest, purpose: PermitPurpose): InstallPlan | undefined {
    const profile = group && this.#known.profiles.get(group.profileId);
    return profile === undefined || profile.hasFailed ? undefined : planOf(profile, purpose);
  }

  /** Returns what a machine gets that needs no permit. */
  #free(seen: LabelledRequest): Selected {
    this.#assertPresent(seen);
    const chosen = this.#choose(seen);
    const profile = this.#profileOf(chosen);
    if (profile.isInstall) this.#assertCertain(chosen, profile);
    return { group: this.#groupOf(chosen), profile };
  }

  /** Like `candidate`, for a machine that needs a permit. @param isSentToDisk by the desk. */
  #planned(seen: LabelledRequest, purpose: PermitPurpose, plan: InstallPlan, isSentToDisk = false): Candidate {
    const chosen = this.#choose(seen);
    const profile = this.#profileOf(chosen);
    const machine = { group: this.#groupOf(chosen), profile };
    const ask = askOf(machine, { labels: seen.asked, machine: chosen.machine }, purpose, plan);
    const isKnown = this.ledger !== undefined && verdictOf(ask, this.ledger).kind === "disk";
    if (isKnown || isSentToDisk) {
      this.#assertPresent(seen, "disk");
      return { machine: isKnown ? this.#disks.of(machine, plan) : machine, ask, isDisk: isKnown };
    }
    this.#assertPresent(seen);
    this.#assertCertain(chosen, profile);
    return { machine, ask, isDisk: false };
  }

  /** @param plan see `unclearDisk`. @throws {BootError} ambiguous or bereft. */
  #unclear(seen: LabelledRequest, plan: InstallPlan | undefined): Candidate {
    const found = unclearDisk(seen, plan, { known: this.#known, ledger: this.ledger, disks: this.#disks });
    this.#assertPresent(seen, "disk");
    return found;
  }

  #presentDoubt(group: BootGroup): Doubt | undefined {
    return this.settling.isUnderWay() && isCatchAll(group) ? "settling" : this.doubt;
  }

  /** @throws {BootError} noProfile, vanished, withheld or failed. */
  #profileOf({ group }: ChosenGroup): BootProfile {
    const profile = this.#known.profiles.get(group.profileId);
    const subject = { group: group.id, profile: group.profileId };
    if (profile === undefined) throw new BootError(this.#whyNoProfile(group), subject);
    if (profile.hasFailed) throw new BootError("failed", subject);
    return profile;
  }

  /**
   * Refuses a machine that waits for a Group that was just removed.
   * @param asked see `KnownDocuments.waitsForRemovedGroup`.
   * @throws {BootError} bereft.
   */
  #assertPresent({ labels, group }: LabelledRequest, asked?: "config" | "disk"): void {
    if (this.#known.waitsForRemovedGroup(labels, group, asked))
      throw new BootError("bereft", group && { group: group.id });
  }

  /** Refuses an Install that is not certain. @throws {BootError} withheld, undecryptable and doubtful. */
  #assertCertain(chosen: ChosenGroup, profile: BootProfile): void {
    const { group } = chosen;
    const subject = { group: group.id, profile: profile.id };
    // A Group that names the machine is not enough for an Install: an unreadable Group may outrank it.
    if (this.isWithholding) throw new BootError("withheld", subject);
    // An installer without one of its configs may do something else than the objects say.
    this.#known.secrets.assertDecryptable({ group, profile });
    const knowledge = { known: this.#known, selectors: this.#selectors, ledger: this.ledger };
    const doubt = doubtOf(chosen, profile, knowledge) ?? this.#presentDoubt(group);
    if (doubt === undefined) return;
    const problem = doubtText(doubt, { ageSeconds: this.#freshness?.ageSeconds, flaw: group.flaw });
    throw new BootError(doubt === "changing" ? "changing" : "doubtful", { ...subject, problem });
  }

  /**
   * Returns why a group has no Profile. While an unreadable object may be the Profile, the reason is withheld. With a
   * 404, the machine would go on to its next boot device.
   */
  #whyNoProfile({ profileId }: BootGroup): BootRefusal {
    if (this.isWithholding) return "withheld";
    return this.#known.goneProfiles.has(profileId) ? "vanished" : "noProfile";
  }

  /**
   * Returns the group that wins the machine; undefined if no group matches.
   * @throws {BootError} tied.
   */
  #winner(labels: Labels): BootGroup | undefined {
    const first = this.#selectors.find(labels);
    if (first === undefined || !this.#selectors.hasRival(first, labels)) return first;
    const { winner, rivals } = this.#selectors.settle(labels);
    if (rivals.length > 0) throw new BootError("tied", winner && { group: winner.id });
    return winner;
  }

  /** Logs only the path, because the document contains its user's text. */
  #reportUnreadable(path: string): void {
    this.#log.error({ path }, "unreadable document in the store, the last readable one stays");
  }
}
