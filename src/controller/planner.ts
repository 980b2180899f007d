/**
 * Plans steps. A plan has the documents to store and the statuses to show for the objects of one step. It follows from
 * the source's current view. Planning changes neither the view nor the store, so a plan that was not written is made
 * again.
 */

import type { Log } from "../lib/log.ts";
import { type GroupDocument, groupPath, twinName } from "../model/objects/documents.ts";
import { type Group, toGroup } from "../model/objects/group.ts";
import { installs } from "../model/objects/profile.ts";
import { type ObjectName, objectKey, ownKinds, type Source } from "../model/objects/source.ts";
import { type ClaimsAround, claimed } from "./claimed.ts";
import type { ControllerOptions } from "./controller-options.ts";
import type { Documents } from "./core/documents.ts";
import { type FaultGuard, guardedBy } from "./core/faults.ts";
import { addTo, byKey, Dependents, groupName, isGroup, twinOf, withoutThose } from "./core/names.ts";
import { type MachineDraft, MachinePlans } from "./machines/machine-plans.ts";
import { flawedFirst, Pairs } from "./pairs/pairs.ts";
import { GroupGrants } from "./permits/grants.ts";
import { Ranking } from "./ranking/ranking.ts";
import { draftGroup, groupStandIn, type KnownGroup } from "./reconcile/draft-group.ts";
import { profileOutcome, profileState, RefusedProfiles } from "./reconcile/profile-outcome.ts";
import { groupChanges, reconcileGroup, withTie } from "./reconcile/reconcile-group.ts";
import type { ProfileWorld } from "./reconcile/resolve-profile.ts";
import { failedStatus, type Outcome } from "./status/conditions.ts";
import { Draft, type GroupPlan, type Planned, type Step } from "./step.ts";
import {
  groupChangeOf,
  profileTombstoneWrites,
  type TombstoneOptions,
  type TombstoneWrite,
  tombstoneWrites,
} from "./tombstones/tombstones.ts";
import { HiddenMachines, Withheld } from "./unreadable.ts";

interface PlannerOptions
  extends Pick<
    ControllerOptions,
    "sha256" | "secretTexts" | "checkTemplate" | "davitUrl" | "tombstoneTtlSeconds" | "ledger" | "adminNamespace"
  > {
  readonly source: Pick<Source, "view">;
  /** The stored documents. */
  readonly documents: Pick<Documents, "claimIndex" | "names" | "profile" | "group" | "machine" | "textAt">;
  readonly log: Pick<Log, "error">;
}

export class Planner {
  /** Makes machines wait if an unreadable Group may name them. */
  readonly hidden: HiddenMachines;
  readonly permits: GroupGrants;
  readonly machines: MachinePlans;
  /** Stored objects whose deletion waits. */
  readonly withheld: Withheld;
  readonly #options: PlannerOptions;
  readonly #dependents = new Dependents();
  readonly #ranking = new Ranking();
  readonly #claims: ClaimsAround;
  readonly #world: ProfileWorld;
  readonly #guard: FaultGuard;
  readonly #pairs: Pairs;
  readonly #refusedProfiles = new RefusedProfiles();
  readonly #tombstoneOptions: TombstoneOptions;
  #hasBegun = false;

  constructor(options: PlannerOptions) {
    this.#options = options;
    const { source, documents, sha256, secretTexts, checkTemplate, log } = options;
    this.#tombstoneOptions = {
      textAt: (path) => documents.textAt(path),
      ttlSeconds: options.tombstoneTtlSeconds,
      sha256,
      adminNamespace: options.adminNamespace,
      isTaken: (gone) => this.#ranking.isTaken(gone),
      hasGrant: (label, value) => this.machines.hasGrant(label, value),
    };
    this.#claims = { ...options, ranking: this.#ranking };
    this.#guard = guardedBy(log);
    this.permits = new GroupGrants(options.ledger);
    this.hidden = new HiddenMachines(source);
    this.machines = new MachinePlans({ ...options, guard: this.#guard });
    this.withheld = new Withheld(source);
    this.#pairs = new Pairs({
      ...options,
      view: () => source.view,
      machineSamples: this.machines.samples,
      groupsOf: (profile) => this.#dependents.of(profile),
    });
    this.#world = {
      sha256,
      secretName: (text) => secretTexts.nameOf(text),
      adminNamespace: options.adminNamespace,
      losses: (profile, next, lastGood) => this.#pairs.judge(profile, next, lastGood),
      checkTemplate,
      isGone: (name) => source.view.isGone(name),
      configMap: (namespace, name) => source.view.get("ConfigMap", namespace, name),
      secret: (namespace, name) => source.view.get("Secret", namespace, name),
      isForbidden: (name) => source.view.isForbidden?.(name) === true,
    };
  }

  /** For a person: what waits because part of the source cannot be read. */
  get attention(): readonly string[] {
    return [...this.withheld.attention, ...this.hidden.attention];
  }

  /** The objects that refer to this one. */
  dependentsOf(name: ObjectName): Iterable<ObjectName> {
    return this.#dependents.of(name);
  }

  /** Every Profile, Group and Machine that the source shows or refuses, or the store holds. */
  names(): readonly ObjectName[] {
    const { source, documents } = this.#options;
    const names = byKey([...documents.names(), ...source.view.refusals]);
    for (const kind of ownKinds) {
      for (const { namespace, name } of source.view.all(kind)) addTo(names, { kind, namespace, name });
    }
    return [...names.values()];
  }

  /** Reads refusals and stored Groups, which a step before the first sync must know. Further calls do nothing. */
  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    for (const refusal of this.#options.source.view.refusals) this.hidden.note(refusal);
    for (const id of this.#options.documents.names()) {
      if (!isGroup(id)) continue;
      for (const each of [id, twinOf(id)]) this.#rank(each, this.#options.documents.group(each.namespace, each.name));
    }
    this.#ranking.takeAffected();
  }

  /**
   * Plans one step for all of these names, and for Groups that must change with them. The stages have a fixed order:
   * draft, rank, judge, settle and bury. The controller then writes the step and reports it.
   */
  plan(names: Iterable<ObjectName>): Step {
    const draft = new Draft(names);
    // Machines come first, because they may define variables of templates.
    const machines = this.#draftMachines(draft);
    // All Groups are drafted and ranked first, because statuses depend on the references and selectors of other Groups.
    const groups = this.#draftGroups(draft);
    for (const name of draft.names.values())
      if (name.kind === "Profile") groups.push(...this.#judgeProfile(name, draft));
    for (const group of flawedFirst(groups)) this.#settleGroup(group, draft);
    for (const machine of machines) this.#settleMachine(machine, draft);
    const tombstones = this.#bury(draft);
    return {
      planned: draft.planned.map((planned) => this.#withUid(planned)),
      writes: [...tombstones, ...draft.changes],
      moved: tombstones.map(({ namespace }) => namespace),
      alsoLookAt: [...withoutThose(draft.alsoLookAt, draft.names), ...this.#pairs.open],
      recount: withoutThose(draft.recount, draft.names),
    };
  }

  /** The tombstones of the machines that the step takes from a Group, a Profile or a Machine. */
  #bury({ groupChanges, tombstones }: Draft): readonly TombstoneWrite[] {
    return [...tombstoneWrites(groupChanges, this.#tombstoneOptions), ...tombstones];
  }

  #withUid(planned: Planned): Planned {
    const { name, status } = planned;
    const { view } = this.#options.source;
    const { uid } =
      view.get(name.kind, name.namespace, name.name) ?? view.refusalOf(name) ?? view.pendingOf?.(name) ?? {};
    return status === undefined || uid === undefined ? planned : { ...planned, status: { ...status, uid } };
  }

  /** Drafts the step's Groups. Adds all Groups to the step that have the same selector as a changed Group. */
  #draftGroups(draft: Draft): GroupPlan[] {
    this.#addDoubted(draft.names);
    this.#pairs.addBound(draft.names, (name) => addTo(draft.names, name));
    const named = [...draft.names.values()].filter(isGroup);
    const groups = named.map((id) => this.#draftGroup(id, draft));
    const { siblings, others } = this.#ranking.takeAffected();
    for (const id of others) addTo(draft.alsoLookAt, groupName(id));
    for (const id of siblings) {
      const name = groupName(id);
      if (draft.names.has(objectKey(name))) continue;
      addTo(draft.names, name);
      groups.push(this.#draftGroup(name, draft));
    }
    // The siblings may have changed, too, and their changes may affect further Groups.
    const late = this.#ranking.takeAffected();
    for (const id of [...late.siblings, ...late.others]) addTo(draft.alsoLookAt, groupName(id));
    return groups;
  }

  /** Adds all Groups of a namespace that got its first Group with an unreadable selector, or lost the last one. */
  #addDoubted(names: Map<string, ObjectName>): void {
    const changed = [...names.values()].filter((name) => isGroup(name) && this.hidden.note(name));
    const namespaces = new Set(changed.map(({ namespace }) => namespace));
    if (namespaces.size === 0) return;
    for (const name of this.names()) if (isGroup(name) && namespaces.has(name.namespace)) addTo(names, name);
  }

  #draftGroup(id: ObjectName, draft: Draft): GroupPlan {
    return this.#guard(
      id,
      () => this.#lookAtGroup(id, draft),
      () => this.#failGroup(id),
    );
  }

  #lookAtGroup(id: ObjectName, draft: Draft): GroupPlan {
    const known = this.#known(id);
    const { object, refusal, stored } = known;
    const isGone = this.#options.source.view.isGone(id);
    const isOutOfView = object === undefined && refusal === undefined && !isGone;
    this.#noteWithheld(id, isOutOfView && stored !== undefined);
    if (object !== undefined || isGone) {
      for (const profile of this.#dependents.update(id, object)) addTo(draft.recount, profile);
    }
    const drafted = draftGroup(known);
    const storedTwin = this.#storedTwin(id);
    const document = claimed(id, isOutOfView ? stored : drafted?.document, stored, this.#claims);
    const twin = claimed(id, isOutOfView ? storedTwin : drafted?.twin, storedTwin, this.#claims);
    this.#rank(id, document);
    this.#rank(twinOf(id), twin);
    return { id, stored, draft: drafted, document, twin };
  }

  /**
   * The plan for a Group on which davit failed. The Group still takes part in selection, so that no other Group gets
   * its machines.
   */
  #failGroup(id: ObjectName): GroupPlan {
    const known = this.#known(id);
    const { object, stored } = known;
    const document = claimed(id, object === undefined ? stored : groupStandIn(known), stored, this.#claims);
    const twin = this.#storedTwin(id);
    this.#rank(id, document);
    this.#rank(twinOf(id), twin);
    const failed = object && failedStatus(object.generation, document !== undefined && this.#isServed(id, document));
    return { id, stored, draft: undefined, document, twin, ...(failed && { failed }) };
  }

  /** False for a refused version, and for an older version whose Profile installs. */
  #isServed({ namespace }: ObjectName, { refused, outdated, spec }: GroupDocument): boolean {
    const profile = this.#options.documents.profile(namespace, spec.profile).document;
    return refused !== true && !(outdated === true && profile !== undefined && installs(profile.content));
  }

  #known(id: ObjectName): KnownGroup {
    const { source, documents, adminNamespace } = this.#options;
    const object = source.view.get("Group", id.namespace, id.name);
    const stored = documents.group(id.namespace, id.name);
    return { id, object, refusal: source.view.refusalOf(id), stored, adminNamespace };
  }

  #storedTwin(id: ObjectName): GroupDocument | undefined {
    const { namespace, name } = twinOf(id);
    return this.#options.documents.group(namespace, name);
  }

  #rank(id: ObjectName, document: GroupDocument | undefined): void {
    this.#ranking.update(`${id.namespace}/${id.name}`, document && groupOf(id, document));
  }

  #settleGroup(group: GroupPlan, draft: Draft): void {
    const { id, stored } = group;
    const { changes, status, reported, document } = this.#guard(
      id,
      () => this.#groupOutcome(group, draft),
      () => this.#groupOutcome(this.#failGroup(id), draft),
    );
    draft.changes.push(...changes);
    draft.groupChanges.push(groupChangeOf(id, stored, document));
    // The twin made machines wait. Its tombstones keep them waiting, in case the Group is being replaced.
    if (document === undefined) draft.groupChanges.push(groupChangeOf(id, this.#storedTwin(id), undefined));
    const isRemoved = document === undefined && changes.length > 0;
    draft.planned.push({ name: id, status, isRemoved, reported });
  }

  #groupOutcome({ id, stored, draft: planned, document: wanted, twin, failed }: GroupPlan, { contents }: Draft) {
    const { document, draft: drafted } = this.#pairs.settle({ id, stored, draft: planned, document: wanted }, contents);
    const own = document && groupOf(id, document);
    const isTied = own !== undefined && this.#ranking.isTied(own);
    const marked = own && this.withheld.mark(this.hidden.mark(withTie(document, isTied), id.namespace, own), id);
    const path = groupPath(id.namespace, id.name);
    const { source, documents } = this.#options;
    const storedText = documents.textAt(path);
    const outcome: Outcome =
      drafted === undefined
        ? { changes: groupChanges(path, marked, storedText), status: failed }
        : reconcileGroup({ ...drafted, document: marked }, storedText, {
            profile: (namespace, name) =>
              profileState(source.view, { namespace, name }, documents.profile(namespace, name)),
            standingOf: (other) => this.#ranking.standingOf(other),
            checkTemplate: this.#world.checkTemplate,
          });
    const twinPath = groupPath(id.namespace, twinName(id.name));
    const ofTwin = groupChanges(twinPath, twin, documents.textAt(twinPath));
    const status = this.permits.shown(id, outcome.status, marked, this.#hasInstall(id, marked, contents));
    return { ...outcome, status, changes: [...ofTwin, ...outcome.changes], document };
  }

  /** True if the Profile of a Group has an `install`. */
  #hasInstall({ namespace }: ObjectName, document: GroupDocument | undefined, contents: Draft["contents"]): boolean {
    const name = document?.spec.profile;
    if (name === undefined || this.#options.ledger === undefined) return false;
    const planned = contents.get(objectKey({ kind: "Profile", namespace, name }));
    const content = planned ?? this.#options.documents.profile(namespace, name).document?.content;
    return content?.install !== undefined;
  }

  /** Judges a Profile. @returns the drafts of the Groups that it adds to the step. */
  #judgeProfile(id: ObjectName, draft: Draft): readonly GroupPlan[] {
    const { source, documents } = this.#options;
    const { namespace, name } = id;
    const object = source.view.get("Profile", namespace, name);
    const newest = object ?? source.view.refusalOf(id);
    const stored = documents.profile(namespace, name);
    const isStored = stored.document !== undefined;
    const comesOrGoes = (newest === undefined) === isStored;
    for (const reader of this.#readersOfVerdict(id, comesOrGoes)) addTo(draft.alsoLookAt, reader);
    const groupCount = this.#dependents.of(id).length;
    const isGone = newest === undefined && source.view.isGone(id);
    const isOutOfView = newest === undefined && !isGone;
    this.#noteWithheld(id, isOutOfView && isStored);
    if (isGone || object !== undefined) this.#dependents.update(id, object);
    const judge = () => profileOutcome(id, stored, { view: source.view, world: this.#world, guard: this.#guard });
    const { changes, status, reported, content } = this.#pairs.judging(id, draft.alsoLookAt, judge);
    draft.changes.push(...changes);
    const change = { name: id, before: isStored, after: newest !== undefined };
    if (!isOutOfView) draft.tombstones.push(...profileTombstoneWrites(change, this.#tombstoneOptions));
    const isRemoved = isGone && changes.length > 0;
    draft.planned.push({ name: id, status: status && { ...status, groupCount }, isRemoved, reported });
    return this.#draftDoubted(id, { changes, content }, draft);
  }

  /** Records a Profile's content. @returns the drafts of the Groups that it adds to the step. */
  #draftDoubted(id: ObjectName, { changes, content }: Pick<Outcome, "changes" | "content">, draft: Draft) {
    if (content === undefined) return [];
    draft.contents.set(objectKey(id), content);
    const { document: stored } = this.#options.documents.profile(id.namespace, id.name);
    const hasNewInstall = (content.install === undefined) !== (stored?.content.install === undefined);
    // Groups report whether their Profile has an install.
    if (hasNewInstall) for (const reader of this.dependentsOf(id)) addTo(draft.alsoLookAt, reader);
    const look = () => (changes.length === 0 ? [] : this.#pairs.doubted(id, content));
    const doubted = this.#guard(id, look, () => []);
    const others = [...doubted].filter((name) => !draft.names.has(objectKey(name)));
    for (const name of others) addTo(draft.names, name);
    return others.map((name) => this.#draftGroup(name, draft));
  }

  #draftMachines(draft: Draft): readonly MachineDraft[] {
    const names = [...draft.names.values()].filter(({ kind }) => kind === "Machine");
    const drafts = names.map((id) => this.machines.draft(id));
    if (!drafts.some(({ definesOthers }) => definesOthers)) return drafts;
    this.#pairs.machinesChanged();
    for (const name of this.names()) if (name.kind !== "Machine") addTo(draft.alsoLookAt, name);
    return drafts;
  }

  #settleMachine(machine: MachineDraft, draft: Draft): void {
    const { id, isWithheld, sharing } = machine;
    const { changes, tombstones, status, isRemoved } = this.machines.plan(machine);
    for (const name of sharing) addTo(draft.alsoLookAt, name);
    this.withheld.note(id, isWithheld);
    draft.changes.push(...changes);
    draft.tombstones.push(...tombstones);
    draft.planned.push({ name: id, status, isRemoved });
  }

  #readersOfVerdict(id: ObjectName, comesOrGoes: boolean): Iterable<ObjectName> {
    const hasNewVerdict = this.#refusedProfiles.takeChange(id, this.#options.source.view);
    return hasNewVerdict || comesOrGoes ? this.dependentsOf(id) : [];
  }

  /** Records whether a deletion waits. A refused or pending object exists: there is nothing to delete. */
  #noteWithheld(id: ObjectName, isOutOfView: boolean): void {
    const { view } = this.#options.source;
    this.withheld.note(id, isOutOfView && (view.refusalOf(id) ?? view.pendingOf?.(id)) === undefined);
  }
}

/** The Group as the boot service has it, but without a stored tie: the ranking decides whether it ties now. */
function groupOf({ namespace, name }: ObjectName, document: GroupDocument): Group {
  return toGroup(namespace, name, document.spec, { ...document, tied: false });
}
