/**
 * The boot service's own view of the store: every Profile and Group in memory, ready for selection.
 *
 * The index follows the documents below `/davit`, and finds a machine's Group and Profile. An answer comes from one
 * state of the store, never from half a change. The cost of an answer does not grow with the number of Groups. The
 * index answers nothing until the store has `/davit/synced` and the app has called `open`. If a document becomes
 * unreadable, its last readable version stays. The index never waits for a disk, a network or a timer.
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

/** The text of a template, as its object has it. */
export interface TemplateText {
  readonly text: string;
  /** True if the text is served as it is, without rendering. */
  readonly raw: boolean;
  readonly format?: GenericFormat;
}

/** The methods of the index that making a config needs. */
export type BootView = Pick<BootIndex, "selectGroup" | "select" | "template" | "defaultsOf">;

export interface BootIndexOptions {
  readonly log: Pick<Log, "error">;
  /** For the settling time. Absent if all documents are present from the start. */
  readonly clock?: Pick<Clock, "monotonicMs">;
  /** Says whether the last proof is too old for an `Install`. Absent if no proof is ever too old. */
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

  /** Allows answers. Called when davit has heard from the source since its start, or after the grace time. */
  open(): void {
    this.#isOpen = true;
  }

  /**
   * Restarts the settling time. Called when the first complete list since the start is, or soon will be, in the store.
   */
  listed(): void {
    this.#settling.begin();
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

  /**
   * The doubt that now keeps every machine from an Install; undefined if there is none. Doubts about single objects are
   * not included.
   */
  get doubt(): CommonDoubt | undefined {
    if (this.#known.synced?.half === true) return "half";
    if (this.#known.unreadable.size > 0) return "unreadable";
    return this.#freshness?.staleness;
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
   * Returns the group that a machine with these labels gets.
   * @throws {BootError} notReady, ambiguous, unreadable, withheld, bereft, noMatch, tied, oldProfile, refused or held.
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
   * Returns the group and Profile that a machine with these labels gets.
   * @throws {BootError} as `selectGroup`; also noProfile, vanished, failed, withheld and doubtful.
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

  /** Returns a group by its `namespace/name`, and its Profile; undefined if either is missing. */
  machineOf(groupId: string): Machine | undefined {
    const group = this.#known.groups.get(groupId);
    const profile = group && this.#known.profiles.get(group.profileId);
    return group && profile && { group, profile };
  }

  /**
   * Returns the Profile's defaults for a group's metadata; undefined without a Profile, or if it has no defaults.
   * @throws {BootError} failed or vanished, if the defaults are unknown.
   */
  defaultsOf(group: BootGroup): JsonObject | undefined {
    const profile = this.#known.profiles.get(group.profileId);
    const subject = { group: group.id, profile: group.profileId };
    if (profile?.hasFailed === true) throw new BootError("failed", subject);
    if (profile === undefined && this.#whyNoProfile(group) === "vanished") throw new BootError("vanished", subject);
    return profile?.content.metadata;
  }

  /**
   * Returns the text of one of a machine's templates.
   * @throws {BootError} noPart if there is no such template, broken if the template cannot be used or its text is
   * missing. For an `Install` also bereft, withheld and doubtful.
   */
  template(machine: Machine, part: TemplatePart, labels: Labels): TemplateText {
    const { group, profile } = machine;
    // The Profile now boots the machine from its disk. But an installer that started earlier may still ask for its
    // configs.
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

  /**
   * Refuses an Install that is not certain.
   * @throws {BootError} withheld and doubtful.
   */
  #assertCertain(machine: Machine, labels: Labels): void {
    const subject = { group: machine.group.id, profile: machine.profile.id };
    // A Group that names the machine is not enough for an Install: an unreadable Group may outrank it.
    if (this.isWithholding) throw new BootError("withheld", subject);
    const doubt = this.#doubtOf(machine, labels);
    if (doubt === undefined) return;
    const known = { ageSeconds: this.#freshness?.ageSeconds, flaw: machine.group.flaw };
    throw new BootError("doubtful", { ...subject, problem: doubtText(doubt, known) });
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

  /**
   * Refuses a machine whose identity is not clear. A machine with an unreadable name never boots like a machine without
   * a name.
   * @throws {BootError} ambiguous or unreadable.
   */
  #assertIdentity(flaws: LabelFlaws, group: BootGroup | undefined): void {
    const subject = group && { group: group.id };
    if (flaws.repeated.size > 0) throw new BootError("ambiguous", subject);
    if (!namesMachine(group) && this.#mayMatter(flaws)) throw new BootError("unreadable", subject);
  }

  /** True if a Group selects by one of the unreadable labels, or a Group that was removed a moment ago did. */
  #mayMatter({ unreadable }: LabelFlaws): boolean {
    return [...unreadable].some((label) => this.#selectors.speaksOf(label) || this.#known.hasTombstones(label));
  }

  /**
   * True for a Group that nothing in the source defines any more, unless another Group that is alike and has the same
   * outcome selects the machine. A user who renames a Group can create the new one before deleting the old one.
   */
  #mayBeGone(group: BootGroup, labels: Labels): boolean {
    if (!group.isLeaving) return false;
    const stays = (other: BootGroup) => !other.isLeaving && isAlike(group, other) && isSameOutcome(group, other);
    const isCopy = (other: BootGroup) => stays(other) && matches(other, labels);
    return !this.#selectors.listsFor(labels).some((groups) => groups.some(isCopy));
  }

  /** Returns why this Group and Profile may be wrong for the machine; undefined if nothing is in doubt. */
  #doubtOf({ group, profile }: Machine, labels: Labels): Doubt | undefined {
    if (group.flaw !== undefined) return "flawedGroup";
    if (group.isOutdated || this.#mayBeGone(group, labels)) return "outdatedGroup";
    if (profile.isOutdated) return "outdatedProfile";
    if (labels.flaws !== undefined && this.#mayMatter(labels.flaws)) return "identity";
    if (this.#selectors.namesakesOf(group, labels).some((other) => !isSameOutcome(group, other))) return "namesakes";
    return this.#settling.isUnderWay() && isCatchAll(group) ? "settling" : this.doubt;
  }

  /** Logs only the path, because the document contains its user's text. */
  #reportUnreadable(path: string): void {
    this.#log.error({ path }, "unreadable document in the store, the last readable one stays");
  }
}
