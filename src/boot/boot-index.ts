/**
 * The boot service's own view of the store: every Profile and Group in memory, ready for selection.
 *
 * It follows the documents below `/davit` and finds a machine's Group and Profile. An answer comes from one state of
 * the store, never from half a change, and costs the same for any number of groups. It answers nothing until the store
 * holds a complete first sync and the app has called `open`. It never drops what it knows because of an unreadable
 * document. It never waits: no disk, no network, no timer.
 */

import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { isAlike, isSameOutcome } from "../model/contest.ts";
import type { DocumentChange, FeedListener } from "../model/feed.ts";
import { isCatchAll, matches } from "../model/group.ts";
import type { JsonObject } from "../model/json.ts";
import type { LabelFlaws, Labels } from "../model/labels.ts";
import type { GenericFormat, TemplatePart } from "../model/profile.ts";
import { SelectorIndex } from "../model/selector-index.ts";
import { namesMachine } from "../model/specificity.ts";
import { BootError, type BootRefusal } from "./boot-error.ts";
import { type CommonDoubt, type Doubt, doubtText } from "./doubt.ts";
import type { Freshness } from "./freshness.ts";
import { type BootGroup, type BootProfile, KnownDocuments, secretId } from "./known-documents.ts";
import { Settling } from "./settling.ts";

/** A machine's Group and Profile. */
export interface Machine {
  readonly group: BootGroup;
  readonly profile: BootProfile;
}

/** A template's text, as its object has it. */
export interface TemplateText {
  readonly text: string;
  /** Served as it is, without rendering. */
  readonly raw: boolean;
  readonly format?: GenericFormat;
}

/** The view that configs are made from. */
export type BootView = Pick<BootIndex, "selectGroup" | "select" | "template" | "defaultsOf">;

export interface BootIndexOptions {
  readonly log: Pick<Log, "error">;
  /** Absent if all documents are present from the start. */
  readonly clock?: Pick<Clock, "monotonicMs">;
  /** Checked before the index returns a Profile that installs. Without it, no proof is too old. */
  readonly freshness?: Pick<Freshness, "staleness" | "ageSeconds">;
}

export class BootIndex implements FeedListener {
  readonly #log: Pick<Log, "error">;
  readonly #settling: Settling;
  readonly #freshness: BootIndexOptions["freshness"];
  #known = new KnownDocuments();
  #selectors = new SelectorIndex<BootGroup>();
  #isOpen = false;

  constructor({ log, clock, freshness }: BootIndexOptions) {
    this.#log = log;
    this.#settling = new Settling(clock);
    this.#freshness = freshness;
  }

  /** Allows serving: the source was heard in this run, or the grace time is over. */
  open(): void {
    this.#isOpen = true;
  }

  /** Notes that this run's first complete list of the source is stored, or is about to be. */
  listed(): void {
    this.#settling.begin();
  }

  /** True when machines are answered. */
  get isReady(): boolean {
    return this.#isOpen && this.#known.synced !== undefined;
  }

  /** True while no sync has been complete yet, and only groups that name a machine are answered. */
  get isWithholding(): boolean {
    return this.#known.synced?.complete === false;
  }

  /** The doubt that keeps all machines from an Install now; undefined if only single objects may be in doubt. */
  get doubt(): CommonDoubt | undefined {
    if (this.#known.synced?.half === true) return "half";
    if (this.#known.unreadable.size > 0) return "unreadable";
    return this.#freshness?.staleness;
  }

  get groupCount(): number {
    return this.#known.groups.size;
  }

  /** Every group by its `namespace/name`. It is live: a change of the store changes it. */
  get groups(): ReadonlyMap<string, BootGroup> {
    return this.#known.groups;
  }

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    const known = new KnownDocuments();
    for (const [path, text] of documents) {
      if (known.learn(path, text)) continue;
      this.#reportUnreadable(path);
      known.inherit(path, this.#known);
    }
    this.#selectors = new SelectorIndex(known.groups.values());
    this.#settling.note(known.synced);
    this.#known = known;
  }

  changed(changes: readonly DocumentChange[]): void {
    for (const { path, text } of changes) {
      const before = this.#known.groupAt(path);
      if (text === undefined) this.#known.forget(path);
      else if (!this.#known.learn(path, text)) this.#reportUnreadable(path);
      const after = this.#known.groupAt(path);
      if (before === after) continue;
      if (before !== undefined) this.#selectors.remove(before);
      if (after !== undefined) this.#selectors.add(after);
    }
    this.#settling.note(this.#known.synced);
  }

  /**
   * The group that a machine with these labels gets.
   * @throws {BootError} notReady, ambiguous, unreadable, withheld, bereft, noMatch, tied, refused or held.
   */
  selectGroup(labels: Labels): BootGroup {
    const { synced } = this.#known;
    if (synced === undefined || !this.#isOpen) throw new BootError("notReady");
    const group = this.#winner(labels);
    if (labels.flaws !== undefined) this.#assertIdentity(labels.flaws, group);
    // An unreadable object may be this machine's own group.
    if (!synced.complete && !namesMachine(group)) throw new BootError("withheld", group && { group: group.id });
    if (this.#known.waitsForRemovedGroup(labels, group)) throw new BootError("bereft", group && { group: group.id });
    if (group === undefined) throw new BootError("noMatch");
    if (group.barrier !== undefined) throw new BootError(group.barrier, { group: group.id });
    return group;
  }

  /**
   * The group and Profile that a machine with these labels gets.
   * @throws {BootError} as `selectGroup`, noProfile, vanished, failed, withheld and doubtful.
   */
  select(labels: Labels): Machine {
    const group = this.selectGroup(labels);
    const profile = this.#known.profiles.get(group.profileId);
    const subject = { group: group.id, profile: group.profileId };
    if (profile === undefined) throw new BootError(this.#whyNoProfile(group), subject);
    if (profile.hasFailed) throw new BootError("failed", subject);
    const machine = { group, profile };
    if (profile.isInstall) this.#assertCertain(machine, labels);
    return machine;
  }

  /** A group by its name, and its Profile; undefined if either is missing. */
  machineOf(groupId: string): Machine | undefined {
    const group = this.#known.groups.get(groupId);
    const profile = group && this.#known.profiles.get(group.profileId);
    return group && profile && { group, profile };
  }

  /**
   * The Profile's defaults for a group's metadata; undefined also without a Profile.
   * @throws {BootError} failed or vanished, when the defaults are unknown.
   */
  defaultsOf(group: BootGroup): JsonObject | undefined {
    const profile = this.#known.profiles.get(group.profileId);
    const subject = { group: group.id, profile: group.profileId };
    if (profile?.hasFailed === true) throw new BootError("failed", subject);
    if (profile === undefined && this.#whyNoProfile(group) === "vanished") throw new BootError("vanished", subject);
    return profile?.content.metadata;
  }

  /**
   * The text of one of a machine's templates.
   * @throws {BootError} noPart without such a template, broken without its text; withheld and doubtful.
   */
  template(machine: Machine, part: TemplatePart, labels: Labels): TemplateText {
    const { group, profile } = machine;
    // A machine that boots from its disk now may still run an installer, which asks for its configs.
    if (profile.content.effect === "Install" && !profile.isInstall) {
      if (this.#known.waitsForRemovedGroup(labels, group, true)) throw new BootError("bereft", { group: group.id });
      this.#assertCertain(machine, labels);
    }
    const template = profile.content.templates[part];
    if (template === undefined) throw new BootError("noPart", { group: group.id, profile: profile.id });
    if (template.kind === "text") return template;
    const text =
      template.kind === "secret" ? this.#known.secrets.get(secretId(profile.id, template.sha256)) : undefined;
    if (template.kind === "broken" || text === undefined)
      throw new BootError("broken", { group: group.id, profile: profile.id });
    return { text, raw: template.raw, ...(template.format && { format: template.format }) };
  }

  /** @throws {BootError} withheld and doubtful. */
  #assertCertain(machine: Machine, labels: Labels): void {
    const subject = { group: machine.group.id, profile: machine.profile.id };
    // Even a Group that names the machine is not enough: an unreadable object may be a Group that outranks it.
    if (this.isWithholding) throw new BootError("withheld", subject);
    const doubt = this.#doubtOf(machine, labels);
    if (doubt === undefined) return;
    const known = { ageSeconds: this.#freshness?.ageSeconds, flaw: machine.group.flaw };
    throw new BootError("doubtful", { ...subject, problem: doubtText(doubt, known) });
  }

  /** An unreadable object may be the Profile; a 404 would send the machine to its next boot device. */
  #whyNoProfile({ profileId }: BootGroup): BootRefusal {
    if (this.isWithholding) return "withheld";
    return this.#known.goneProfiles.has(profileId) ? "vanished" : "noProfile";
  }

  /** @throws {BootError} tied. */
  #winner(labels: Labels): BootGroup | undefined {
    const first = this.#selectors.find(labels);
    if (first === undefined || !this.#selectors.hasRival(first, labels)) return first;
    const { winner, rivals } = this.#selectors.settle(labels);
    if (rivals.length > 0) throw new BootError("tied", winner && { group: winner.id });
    return winner;
  }

  /**
   * @throws {BootError} ambiguous or unreadable: a machine with an unreadable name never boots like one without a name.
   */
  #assertIdentity(flaws: LabelFlaws, group: BootGroup | undefined): void {
    const subject = group && { group: group.id };
    if (flaws.repeated.size > 0) throw new BootError("ambiguous", subject);
    if (!namesMachine(group) && this.#mayMatter(flaws)) throw new BootError("unreadable", subject);
  }

  /** True when a Group selects by a label that cannot be read, or did so until a moment ago. */
  #mayMatter({ unreadable }: LabelFlaws): boolean {
    return [...unreadable].some((label) => this.#selectors.speaksOf(label) || this.#known.hasTombstones(label));
  }

  /** True for a Group that is being deleted, unless a copy stays: a Group renamed by create-then-delete has one. */
  #mayBeGone(group: BootGroup, labels: Labels): boolean {
    if (!group.isLeaving) return false;
    const stays = (other: BootGroup) => !other.isLeaving && isAlike(group, other) && isSameOutcome(group, other);
    const isCopy = (other: BootGroup) => stays(other) && matches(other, labels);
    return !this.#selectors.listsFor(labels).some((groups) => groups.some(isCopy));
  }

  /** Why the answer may be wrong: newer versions, missing Groups, or a label that cannot be read. */
  #doubtOf({ group, profile }: Machine, labels: Labels): Doubt | undefined {
    if (group.flaw !== undefined) return "flawedGroup";
    if (group.isOutdated || this.#mayBeGone(group, labels)) return "outdatedGroup";
    if (profile.isOutdated) return "outdatedProfile";
    if (labels.flaws !== undefined && this.#mayMatter(labels.flaws)) return "identity";
    if (this.#selectors.namesakesOf(group, labels).some((other) => !isSameOutcome(group, other))) return "namesakes";
    return this.#settling.isUnderWay() && isCatchAll(group) ? "settling" : this.doubt;
  }

  /** Logs only the path: a document holds its user's text. */
  #reportUnreadable(path: string): void {
    this.#log.error({ path }, "unreadable document in the store, the last readable one stays");
  }
}
