/**
 * Checks a Profile together with each of its Groups (a pair) before a newer version of either takes effect. A Group
 * loses a config if the config worked before and would now fail for every request, because of an undefined variable or
 * an invalid result. davit does not accept a newer version by which a Group loses a config. Instead, the Profile keeps
 * its whole last good content, or the Group keeps its last good metadata and arguments. davit first tries the newest
 * versions of both, so a variable that is renamed on both sides changes in one step.
 *
 * This check compares variable names, which takes milliseconds for thousands of Groups. It also renders for as many
 * Groups as its budget allows. The trials (`trials.ts`) find the rest after the step.
 */

import type { GroupDocument, ProfileDocument } from "../../model/objects/documents.ts";
import type { ProfileContent } from "../../model/objects/profile.ts";
import { type ObjectName, objectKey, type SourceView } from "../../model/objects/source.ts";
import type { Judge, PartFault, Renderable } from "../../render/judge/judge.ts";
import { RenderBudget } from "../../render/template/limits.ts";
import type { Documents } from "../core/documents.ts";
import { addTo, ByReference, byKey } from "../core/names.ts";
import { type GroupDraft, lastAccepted, stateBefore } from "../reconcile/draft-group.ts";
import type { Finding, Outcome, SyncState } from "../status/conditions.ts";
import { Flaws, isOpen, isSameForAll } from "./flaws.ts";
import {
  foundBy,
  isSameGiven,
  Judges,
  type JudgesOptions,
  type NewContent,
  type Way,
  ways,
  withinBudget,
} from "./judges.ts";
import { OlderProfiles, specIfHad, takesOthers } from "./older-profiles.ts";
import { faultText, harmFinding, keptFinding, lateFinding, profileFindings } from "./pair-findings.ts";

interface PairsOptions extends JudgesOptions {
  readonly view: () => Pick<SourceView, "get">;
  readonly documents: Pick<Documents, "profile" | "group">;
  /** The Groups that name a Profile. */
  readonly groupsOf: (profile: ObjectName) => Iterable<ObjectName>;
}

/** A Group that the step plans. */
interface PairedGroup {
  readonly id: ObjectName;
  readonly stored: GroupDocument | undefined;
  /** Undefined if the Group is gone or not in view now, or if davit failed on it. */
  readonly draft: GroupDraft | undefined;
  /** The document that the store should have. */
  readonly document: GroupDocument | undefined;
}

/** A Group's newer spec, its older metadata and arguments to fall back to, and the judge of its Profile. */
interface Metadata {
  readonly judge: Judge;
  readonly spec: GroupDocument["spec"];
  readonly older: Renderable;
}

/** A Group that keeps older metadata and arguments. */
interface Kept {
  readonly id: ObjectName;
  readonly document: GroupDocument;
  readonly flaw: string;
  /** Undefined, like `fault`, if the step had no time to look and kept an earlier flaw. */
  readonly about?: Metadata;
  readonly fault?: PartFault | undefined;
}

type SettledGroup = Pick<PairedGroup, "draft" | "document">;

interface ShownGroup extends PairedGroup {
  readonly draft: GroupDraft;
  readonly document: GroupDocument;
}

// In units of a budget. A million units take about 50 ms, and all other work waits meanwhile. The trials do the rest.
const profileWork = 1_000_000;
const groupWork = 100_000;

/** A Group, and what it would lose. */
interface Harm {
  readonly name: ObjectName;
  readonly fault: PartFault;
}

/**
 * Separate budgets for newer and older versions: after a failure in the newer version, davit must also look at the
 * older one.
 */
interface Budgets {
  readonly newer: RenderBudget;
  readonly older: RenderBudget;
}

interface Versions extends Budgets {
  readonly way: Way;
  readonly next: Judge;
  readonly before: Judge;
}

export class Pairs {
  readonly #options: PairsOptions;
  readonly #judges: Judges;
  readonly #flaws: Flaws;
  readonly #older: OlderProfiles;
  /**
   * By a Profile's key: the Groups that keep its newest version from being served, and what each of them would lose.
   */
  readonly #harmed = new Map<string, ReadonlyMap<string, Harm>>();
  /** Groups that keep older metadata and arguments. */
  readonly #kept = new ByReference<Kept>();
  /** One budget for rendering all Groups of this step, because a step may change all of them. */
  #groupRenders = budgets(profileWork);
  /** Groups that kept a stored flaw because this step had no time to look at them. */
  #open: ObjectName[] = [];

  constructor(options: PairsOptions) {
    this.#options = options;
    this.#judges = new Judges(options);
    this.#flaws = new Flaws({ ...options, judges: this.#judges });
    this.#older = new OlderProfiles(options.documents);
  }

  /**
   * The Groups to look at again after this step, because it had no time for them and kept their stored flaws. A Group
   * that takes longer than a whole step is not among them: it waits for the next change or resync.
   */
  get open(): readonly ObjectName[] {
    return this.#open;
  }

  /** Looks again at all Profiles, because Machines define other names of variables now. */
  machinesChanged(): void {
    this.#judges.forgetAll();
  }

  /**
   * Begins a step, and adds names that must be in the same step. For each Profile, it adds the Groups that keep older
   * metadata. For each Group, it adds the Profile if some Group keeps the Profile's newest version from being served.
   */
  addBound(names: ReadonlyMap<string, ObjectName>, add: (name: ObjectName) => void): void {
    this.#groupRenders = budgets(profileWork);
    this.#open = [];
    // A `for` loop over a map also visits names that are added during the loop.
    for (const name of names.values()) {
      if (name.kind === "Profile") for (const { id } of this.#kept.of(name)) add(id);
      if (name.kind !== "Group") continue;
      const profile = this.#profileOf(name);
      if (profile !== undefined && this.#harmed.has(objectKey(profile))) add(profile);
    }
  }

  /**
   * The findings that keep davit from accepting a Profile's new content; empty if no Group loses a config by it.
   * @param before the document with the last good content.
   */
  judge(profile: ObjectName, next: NewContent, before: ProfileDocument): readonly Finding[] {
    const key = objectKey(profile);
    const harmed = this.#harmedBy(profile, this.#judges.of(profile, next), this.#judges.of(profile, before));
    if (harmed.size === 0) return [];
    this.#harmed.set(key, harmed);
    return profileFindings([...harmed.values()]);
  }

  /**
   * Runs `look`, which may call `judge` for this Profile.
   * @param concerned receives the Groups whose `Harm` changed. It receives no others, because each Group in `concerned`
   *   makes davit plan the Profile again.
   */
  judging(profile: ObjectName, concerned: Map<string, ObjectName>, look: () => Outcome): Outcome {
    const key = objectKey(profile);
    const before = this.#harmed.get(key);
    this.#harmed.delete(key);
    const outcome = look();
    const after = this.#harmed.get(key);
    for (const [group, { name }] of [...(before ?? []), ...(after ?? [])]) {
      if (JSON.stringify(before?.get(group)) !== JSON.stringify(after?.get(group))) addTo(concerned, name);
    }
    this.#older.note(profile, outcome);
    if (outcome.status === undefined) this.#judges.forget(profile);
    return outcome;
  }

  /**
   * Brings a Group's document and status in line with its Profile.
   * @param contents the planned contents, by the keys of their Profiles. For other Profiles, davit uses the stored
   *   content.
   */
  settle(pair: PairedGroup, contents: ReadonlyMap<string, ProfileContent>): SettledGroup {
    const { id, stored, draft, document } = pair;
    if (stored !== undefined && stored.spec.profile !== document?.spec.profile) this.#forget(id, stored);
    if (draft === undefined || document === undefined) return { draft, document };
    const profile: ObjectName = { kind: "Profile", namespace: id.namespace, name: document.spec.profile };
    const judge = this.#judges.ofNewest(profile, contents);
    const { settled, flaw, fault } = this.#found({ ...pair, draft, document }, profile, judge);
    const findings = [...draft.findings, ...this.#findings(profile, id, fault)];
    const oldProfile = this.#older.lateness(id, document, stored);
    if (oldProfile !== undefined) {
      const late = { ...draft, sync: "notServed" as const, findings: [...findings, lateFinding(profile)] };
      return { document: asFlawed({ ...settled, refused: true, oldProfile }, flaw), draft: late };
    }
    const sync = settled !== document && draft.sync === "synced" ? "servingLastGood" : draft.sync;
    return {
      document: asFlawed(settled, flaw),
      draft: { ...draft, sync: judge?.isInstall === true ? syncOfInstall(sync) : sync, findings },
    };
  }

  /** Returns the document to use (perhaps with older metadata), its flaw, and what the newer metadata would lose. */
  #found(pair: ShownGroup, profile: ObjectName, judge: Judge | undefined) {
    const { id, stored, draft, document } = pair;
    const { isUnused } = this.#groupRenders.newer;
    const kept = document.refused === true ? undefined : this.#keep(profile, pair, document, judge);
    this.#kept.note(profile, id, kept);
    const settled = kept?.document ?? document;
    const before = stateBefore(stored, document).flaw;
    const budgets = { names: new RenderBudget(groupWork), renders: this.#groupRenders.newer };
    const verdict = this.#flaws.of(profile, id, { judge, spec: settled.spec, flaw: before }, budgets);
    if (!isUnused && (isOpen(verdict) || isOpen(kept))) this.#open.push(id);
    // A refused version proves nothing, and neither does a Profile that is gone: the earlier flaw stays.
    const stays = draft.refusal !== undefined || judge === undefined ? before : undefined;
    return { settled, flaw: kept?.flaw ?? verdict?.flaw ?? stays, fault: kept?.fault };
  }

  #findings(profile: ObjectName, id: ObjectName, kept: PartFault | undefined): readonly Finding[] {
    const harm = this.#harmed.get(objectKey(profile))?.get(objectKey(id));
    return [
      ...(harm === undefined ? [] : [harmFinding(profile, harm.fault)]),
      ...(kept === undefined ? [] : [keptFinding(profile, kept)]),
    ];
  }

  /**
   * The Groups whose documents change with new content of their Profile: their flaw changes, or they waited for the
   * newest version.
   */
  doubted(profile: ObjectName, content: ProfileContent): Iterable<ObjectName> {
    const names = new RenderBudget(profileWork);
    const flawed = this.#flaws.changedBy(profile, content, { names, renders: this.#groupRenders.newer });
    return byKey([...flawed, ...this.#older.released(profile)]).values();
  }

  #forget(id: ObjectName, { spec }: GroupDocument): void {
    const profile: ObjectName = { kind: "Profile", namespace: id.namespace, name: spec.profile };
    this.#kept.note(profile, id, undefined);
    this.#flaws.forget(profile, id);
    this.#older.forget(profile, id);
  }

  #harmedBy(profile: ObjectName, next: Judge, before: Judge) {
    const harmed = new Map<string, Harm>();
    for (const way of ways) {
      const pair = { way, next, before, ...budgets(profileWork) };
      withinBudget(() => {
        for (const name of this.#options.groupsOf(profile)) {
          const fault = harmed.has(objectKey(name)) ? undefined : this.#harmOf(name, pair);
          if (fault !== undefined) harmed.set(objectKey(name), { name, fault });
        }
      });
    }
    return harmed;
  }

  /**
   * What a Group loses by the new content of its Profile. The Group loses nothing if this content works with the
   * Group's newest metadata, or with its last good metadata.
   */
  #harmOf(id: ObjectName, { way, next, before, newer, older }: Versions): PartFault | undefined {
    const { view, documents } = this.#options;
    const newest = view().get("Group", id.namespace, id.name)?.spec;
    const faults = newest === undefined ? [] : next[way](newest, newer);
    if (newest === undefined || faults.length === 0) return undefined;
    const document = documents.group(id.namespace, id.name);
    const stored = document && specIfHad(document);
    if (stored === undefined || stored.profile !== newest.profile) return undefined;
    const known = partsOf(before[way](stored, older));
    const [lost] = without(faults, known);
    return lost !== undefined && without(next[way](mixed(newest, stored), older), known).length > 0 ? lost : undefined;
  }

  #profileOf({ namespace, name }: ObjectName): ObjectName | undefined {
    const spec =
      this.#options.view().get("Group", namespace, name)?.spec ?? this.#options.documents.group(namespace, name)?.spec;
    return spec && { kind: "Profile", namespace, name: spec.profile };
  }

  /**
   * The document with older metadata and arguments, if the Group loses a config by the newer ones; otherwise undefined.
   */
  #keep(
    profile: ObjectName,
    { id, stored }: PairedGroup,
    document: GroupDocument,
    judge: Judge | undefined,
  ): Kept | undefined {
    const before = stored?.uid === document.uid ? lastAccepted(stored)?.spec : undefined;
    const { spec } = document;
    if (judge === undefined || before === undefined || before.profile !== spec.profile) return undefined;
    if (isSameGiven(before, spec) || takesOthers(before, spec)) return undefined;
    const older = mixed(spec, before);
    const about = { judge, spec, older };
    const lost = this.#lost(this.#kept.get(profile, id), about);
    const flaw = lost === undefined ? stateBefore(stored, document).flaw : lost[0] && faultText(lost[0]);
    if (flaw === undefined) return undefined;
    // A Group that either version holds stays held, as with a refused version.
    const hold = spec.hold || before.hold;
    const kept: GroupDocument = { ...document, spec: { ...older, hold }, outdated: true };
    return { id, document: kept, flaw, ...(lost && { about, fault: lost[0] }) };
  }

  /** What the Group loses by newer metadata and arguments; undefined if this step has no time to look. */
  #lost(known: Kept | undefined, about: Metadata): readonly PartFault[] | undefined {
    if (known?.fault !== undefined && isSameMetadata(known.about, about)) return [known.fault];
    const { judge, spec, older } = about;
    const works = { names: budgets(groupWork), renders: this.#groupRenders };
    return foundBy((way) =>
      lostBy((given, budget) => judge[way](given, budget), { next: spec, before: older }, works[way]),
    );
  }
}

/**
 * Sorts Groups with a stored flaw first. A step may not have time to look at all Groups, and it must not overlook a
 * known flaw.
 */
export function flawedFirst<Pair extends Pick<PairedGroup, "stored">>(pairs: readonly Pair[]): readonly Pair[] {
  const rank = ({ stored }: Pair) => (stored?.flaw === undefined ? 1 : 0);
  return pairs.toSorted((a, b) => rank(a) - rank(b));
}

function isSameMetadata(a: Metadata | undefined, b: Metadata): boolean {
  return a?.judge === b.judge && isSameForAll(a.spec, b.spec) && isSameForAll(a.older, b.older);
}

function asFlawed(document: GroupDocument, flaw: string | undefined): GroupDocument {
  if (flaw === undefined) return document;
  // With `outdated`, `lastAccepted` would take a refused version for an accepted one.
  return { ...document, ...(document.refused !== true && { outdated: true }), flaw };
}

/** The state for an installing Profile: machines wait instead of installing an older version. */
function syncOfInstall(sync: SyncState): SyncState {
  return sync === "servingLastGood" ? "waiting" : sync;
}

function budgets(work: number): Budgets {
  return { newer: new RenderBudget(work), older: new RenderBudget(work) };
}

/** What a Group loses by newer metadata and arguments. @throws {TooLongHere} */
function lostBy(
  judge: (group: Renderable, budget: RenderBudget) => readonly PartFault[],
  { next, before }: { readonly next: Renderable; readonly before: Renderable },
  { newer, older }: Budgets,
): readonly PartFault[] {
  const faults = judge(next, newer);
  return faults.length === 0 ? [] : without(faults, partsOf(judge(before, older)));
}

/** A newer spec with the metadata and arguments of an older one. */
function mixed({ args: _, ...spec }: GroupDocument["spec"], { metadata, args }: GroupDocument["spec"]) {
  return { ...spec, metadata, ...(args && { args }) };
}

function partsOf(faults: readonly PartFault[]): ReadonlySet<string> {
  return new Set(faults.map(({ part }) => part));
}

function without(faults: readonly PartFault[], parts: ReadonlySet<string>): readonly PartFault[] {
  return faults.filter(({ part }) => !parts.has(part));
}
