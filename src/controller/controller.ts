/**
 * The controller keeps the documents below `/davit` in line with a source's objects, and reports each object's status.
 *
 * It is level-based: a change only says which name to look at. A reconcile then reads the source's view and the store
 * as they are now. Names that a source reports together are written as one step, and so is the first full list. When
 * the first list is stored, the controller writes `/davit/synced`; the boot service answers no machine before this key
 * exists. In the background, trials render what machines would get, and `status-composer.ts` adds their findings to the
 * statuses.
 *
 * The step that removes a Group also writes its tombstones (`tombstones.ts`). `renewal.ts` decides how long they last.
 *
 * The controller removes no object that an unreadable part of the source may hold. If the first list is empty, it
 * removes nothing until a second list is empty, too. It never answers a machine and never reads a request.
 */

import { nextTurn } from "../lib/slices.ts";
import { isOwnKind, type ObjectName, objectKey, type SourceListener } from "../model/objects/source.ts";
import { StoreError } from "../store/core/refusal.ts";
import type { ControllerOptions } from "./controller-options.ts";
import { Documents, type DocumentWrite } from "./core/documents.ts";
import { isEmpty, isGroup } from "./core/names.ts";
import { DelayedNames, WorkQueue } from "./core/work-queue.ts";
import { earlyMachineHolds } from "./machines/draft-machine.ts";
import { type Enrolled, Enrolment } from "./machines/enrolment.ts";
import { MachineBoard } from "./machines/machine-board.ts";
import { Planner } from "./planner.ts";
import { earlyHolds } from "./reconcile/reconcile-group.ts";
import { asStoreUnavailable } from "./status/conditions.ts";
import { StatusBook } from "./status/status-book.ts";
import { StatusComposer } from "./status/status-composer.ts";
import type { Planned, Step } from "./step.ts";
import { StepMetrics } from "./step.ts";
import { SyncMark } from "./sync-mark.ts";
import { TombstoneRenewal } from "./tombstones/renewal.ts";
import { Trials } from "./trials/trials.ts";

/** What to look at: one name, everything, tombstones to renew, or a view that is half or changing, or no longer. */
type Work = ObjectName | { readonly kind: "everything" | "tombstones" | "doubts" };

// The limit for names that do not depend on each other, such as those of a resync: high enough that a burst costs few
// disk writes, low enough to finish soon. Names that a source reports together are one step of any size.
const maxNamesPerStep = 256;

// Only people read `groupCount`, so it may be late while 5,000 Groups arrive one by one.
const recountDelayMs = 1_000;

// A healthy source delivers its first list sooner, and then no early holds are needed.
const earlyHoldsDelayMs = 2_000;

// Nobody but davit should write below /davit or to statuses. The resync repairs what somebody wrote there anyway.
const resyncMs = 10 * 60_000;
/** Spreads the resyncs of many instances, so that they do not ask one API server at the same time. */
const resyncJitter = 0.1;

// Several checks within a tombstone's lifetime, so that one check may be late.
const renewalsPerTtl = 3;

// How long the condition `Permitted` may show a grant that has ended.
const permitsMs = 2_000;

export class Controller implements SourceListener {
  readonly #options: ControllerOptions;
  readonly #documents: Documents;
  readonly #statuses: StatusBook;
  readonly #composer: StatusComposer;
  readonly #machines: MachineBoard;
  readonly #enrolment: Enrolment;
  readonly #trials: Trials;
  readonly #planner: Planner;
  readonly #recounts: DelayedNames;
  /** Names reported before the first list is complete. */
  readonly #early: DelayedNames;
  readonly #renewal: TombstoneRenewal;
  readonly #queue: WorkQueue<Work>;
  readonly #mark: SyncMark;
  readonly #stepMetrics: StepMetrics;
  readonly #stopping = new AbortController();
  #isListed = false;
  #isSynced = false;
  /** True until a sync has seen a complete view: the store may still have objects that left the source. */
  #awaitsWholeView = true;
  /** True if a complete list was stored since the start. */
  #wasWhole = false;
  /** How many lists in a row were empty. */
  #emptyLists = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ControllerOptions) {
    this.#options = options;
    const { clock, metrics, tombstoneTtlSeconds, adminNamespace } = options;
    this.#documents = new Documents(options.store, options.source, options.audit, options.secretTexts);
    this.#planner = new Planner({ ...options, documents: this.#documents });
    this.#statuses = new StatusBook(options);
    this.#composer = new StatusComposer({
      clock,
      foundOn: (name) => this.#trials.of(name),
      show: (name, status) => this.#statuses.show(name, status),
    });
    const { identities, samples } = this.#planner.machines;
    this.#enrolment = new Enrolment({ ...options, documents: this.#documents, identities });
    this.#machines = new MachineBoard({
      ...options,
      documents: this.#documents,
      identities,
      show: (name, status) => this.#statuses.show(name, status),
    });
    this.#trials = new Trials({
      ...options,
      runner: options.trials,
      documents: this.#documents,
      machineSamples: samples,
      groupsOf: (profile) => this.#planner.dependentsOf(profile),
      changed: (name) => this.#composer.found(name),
    });
    this.#stepMetrics = new StepMetrics(options);
    const write = async (each: DocumentWrite) => (await this.#write([each])) === "written";
    this.#mark = new SyncMark({ ...options, documents: this.#documents, write });
    this.#renewal = new TombstoneRenewal({
      clock,
      ttlMs: tombstoneTtlSeconds * 1_000,
      adminNamespace,
      namespacesAt: (path) => this.#documents.namespacesAt(path),
    });
    this.#recounts = new DelayedNames({ clock, delayMs: recountDelayMs, due: (names) => this.#addAll(names) });
    this.#early = new DelayedNames({ clock, delayMs: earlyHoldsDelayMs, due: (names) => this.#addAll(names) });
    this.#queue = new WorkQueue({
      clock,
      metrics,
      name: "objects",
      keyOf: (work) => (isName(work) ? objectKey(work) : work.kind),
    });
  }

  async start(): Promise<void> {
    this.#documents.start();
    this.#statuses.start();
    this.#trials.start();
    this.#machines.start();
    this.#enrolment.start();
    const works = [this.#run(), this.#resync(), this.#keepTombstones(), this.#watchPermits()];
    this.#running = Promise.all(works).then(() => {});
    await this.#options.source.start(this, this.#documents.versions());
  }

  /** Ends all work; idempotent. Resolves when the current step and the current status writes are done. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#queue.stop();
    this.#recounts.stop();
    this.#early.stop();
    await this.#running;
    this.#composer.stop();
    await this.#machines.stop();
    await this.#enrolment.stop();
    await this.#trials.stop();
    await this.#statuses.stop();
    this.#documents.stop();
  }

  /** Monotonic: the store has the source's state of this time or later. Undefined until the first list is stored. */
  get provenAtMs(): number | undefined {
    const { provenAtMs } = this.#options.source;
    if (!this.#isSynced || provenAtMs === undefined) return undefined;
    return Math.min(provenAtMs, this.#queue.unfinishedSinceMs ?? provenAtMs);
  }

  /** For a person: what waits because part of the source cannot be read, and why no machine is enrolled. */
  get attention(): readonly string[] {
    return [...this.#planner.attention, ...this.#enrolment.attention];
  }

  /** Machines that wait for a person to write a Machine. Empty if davit creates Machines. */
  pendingMachines(): Iterable<Enrolled> {
    return this.#enrolment.listed();
  }

  /** Sets the metrics that are only known when they are scraped. */
  measure(): void {
    this.#queue.measure();
    this.#trials.measure();
    this.#statuses.measure();
  }

  listed(): void {
    const { source, metrics } = this.#options;
    metrics.sourceProblems.set(source.view.problems.length);
    this.#isListed = true;
    this.#emptyLists = isEmpty(source.view) ? this.#emptyLists + 1 : 0;
    // Objects that were removed while the view was incomplete may still be stored, and no event names them again.
    if (!source.view.complete) this.#awaitsWholeView = true;
    const completes = source.view.complete && this.#awaitsWholeView;
    const isOver = this.#planner.hidden.takeUnheard() || this.#planner.withheld.isOver || this.#mark.isHalfOver;
    this.#logWithheld();
    this.stirred();
    if (!this.#isSynced || completes || isOver) this.#queue.add({ kind: "everything" });
  }

  stirred(): void {
    if (this.#isSynced && this.#mark.isDue) this.#queue.add({ kind: "doubts" });
  }

  changed(names: readonly ObjectName[]): void {
    // Early holds need not wait for the first list, which may take long. That list covers all other changes.
    if (!this.#isListed) this.#early.add(names);
    else this.#addChanged(names);
  }

  #addChanged(names: readonly ObjectName[]): void {
    // After an outage a change may be as old as the outage, so `provenAtMs` stays until the change is stored.
    const { provenAtMs } = this.#options.source;
    for (const name of names) {
      this.#queue.addTogether(isOwnKind(name.kind) ? [name] : this.#planner.dependentsOf(name), provenAtMs);
    }
  }

  async #run(): Promise<void> {
    for (;;) {
      const works = await this.#queue.take(maxNamesPerStep);
      if (works.length === 0) return;
      await this.#workOff(works);
      if (this.#queue.isIdle) await this.#noteDoubts(this.#mark.changed());
      // A step without writes never yields: many in a row would delay the answers to machines.
      await nextTurn();
    }
  }

  async #workOff(works: readonly Work[]): Promise<void> {
    const kinds = new Set(works.map(({ kind }) => kind));
    if (kinds.has("doubts")) await this.#noteDoubts(this.#mark.doubted());
    if (kinds.has("tombstones")) await this.#renewTombstones();
    if (kinds.has("everything")) return await this.#syncEverything();
    const names = works.filter(isName);
    if (names.length === 0) return;
    if (!this.#isListed) return await this.#holdEarly(names);
    if (!this.#isSynced) this.#planner.begin();
    this.#queue.retryLater(await this.#step(names));
  }

  async #holdEarly(names: readonly ObjectName[]): Promise<void> {
    const { view } = this.#options.source;
    const writes = [earlyHolds, earlyMachineHolds].flatMap((holds) => [...holds(names, view, this.#documents)]);
    if ((await this.#write(writes)) !== "written") this.#queue.retryLater(names);
  }

  /** Plans everything again at intervals. This repairs documents and statuses that somebody else changed. */
  async #resync(): Promise<void> {
    const { clock, random } = this.#options;
    for (;;) {
      await clock.sleep(resyncMs * (1 + resyncJitter * (2 * random() - 1)), this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      this.lookAgain();
      if (this.#isSynced) this.#statuses.showAgain();
    }
  }

  /** Plans everything again. Before the first list is stored, that list will do this. */
  lookAgain(): void {
    if (this.#isSynced) this.#addAll(this.#planner.names());
  }

  /** Checks at intervals whether tombstones would end too soon. */
  async #keepTombstones(): Promise<void> {
    const { clock, tombstoneTtlSeconds } = this.#options;
    for (;;) {
      await clock.sleep((tombstoneTtlSeconds * 1_000) / renewalsPerTtl, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      if (this.#tombstonesDue().length > 0) this.#queue.add({ kind: "tombstones" });
    }
  }

  /** Plans Groups again whose grants have opened or closed. */
  async #watchPermits(): Promise<void> {
    if (this.#options.ledger === undefined) return;
    for (;;) {
      await this.#options.clock.sleep(permitsMs, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      this.#addAll(this.#planner.permits.changed());
    }
  }

  #tombstonesDue(): readonly string[] {
    return this.#renewal.due(this.#documents.tombstones(), this.#options.source.isFollowed);
  }

  /**
   * Renews the tombstones that are due. If the store refuses, the next check tries again with the tombstones that still
   * exist.
   */
  async #renewTombstones(): Promise<void> {
    const ttlSeconds = this.#options.tombstoneTtlSeconds;
    const writes = this.#tombstonesDue().map((path) => ({ path, text: this.#documents.textAt(path), ttlSeconds }));
    if ((await this.#write(writes)) === "written") this.#renewal.renewed();
  }

  /** Reconciles all names of the source and the store as one step. Then it marks the store as synced. */
  async #syncEverything(): Promise<void> {
    const { source, log } = this.#options;
    const names = this.#planner.names();
    if (this.#emptyLists === 1 && names.length > 0) {
      log.warn({}, "the source is empty but the store is not, waiting for a second list to confirm it");
      return;
    }
    // Read before the step, because the view may change while the step is written.
    const { complete: isWhole, isHalf } = source.view;
    const isFirst = isWhole && !this.#wasWhole;
    if (isFirst) this.#options.onComplete?.();
    const done = (await this.#step(names)).length === 0 && (await this.#mark.synced(isWhole, isHalf));
    if (!done) return this.#queue.retryLater([{ kind: "everything" }]);
    this.#queue.succeeded({ kind: "everything" });
    if (isWhole) this.#awaitsWholeView = false;
    this.#wasWhole ||= isWhole;
    if (isFirst) this.#options.onComplete?.();
    if (this.#isSynced) return;
    this.#isSynced = true;
    this.#options.onSynced();
  }

  /**
   * Reconciles names and writes the resulting changes as one step.
   * @returns the names to try again if the store refused the step; otherwise none.
   */
  async #step(names: readonly ObjectName[]): Promise<readonly ObjectName[]> {
    const ended = this.#stepMetrics.begin(names);
    let step = this.#plan(names);
    let result = await this.#write(step.writes);
    if (result === "outdated") {
      step = this.#plan(step.planned.map(({ name }) => name));
      result = await this.#write(step.writes);
    }
    const written = result === "written";
    ended(step.planned, written);
    if (written) this.#renewal.moved(step.moved);
    for (const each of step.planned) {
      if (written) this.#queue.succeeded(each.name);
      this.#report(each, written);
    }
    this.#machines.lookAtGroups(step.planned.flatMap(({ name }) => (isGroup(name) ? [name] : [])));
    this.#logWithheld();
    return written ? [] : step.planned.map(({ name }) => name);
  }

  #plan(names: readonly ObjectName[]): Step {
    const step = this.#planner.plan(names);
    this.#addAll(step.alsoLookAt);
    this.#recounts.add(step.recount);
    return step;
  }

  async #write(writes: readonly DocumentWrite[]): Promise<"written" | "outdated" | "refused"> {
    try {
      await this.#documents.write(writes);
      return "written";
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      // The step deletes a tombstone that expired before the store applied the step.
      if (error.refusal === "keyNotFound") return "outdated";
      this.#options.log.warn({ err: error.message }, "the store did not take a step, trying again later");
      return "refused";
    }
  }

  #report({ name: id, status, isRemoved }: Planned, written: boolean): void {
    const { kind, namespace, name } = id;
    // A removal changes what machines get, and a removed object has no status that could show it.
    if (isRemoved && written) this.#options.log.info({ kind, namespace, name }, "object removed");
    if (status === undefined) {
      this.#composer.forget(id);
      this.#trials.forget(id);
      this.#machines.forget(id);
      this.#statuses.forget(id);
      return;
    }
    const shown = written ? status : asStoreUnavailable(status);
    if (kind === "Machine") this.#machines.report(id, shown);
    else {
      this.#trials.look(id);
      this.#composer.report(id, shown);
    }
  }

  async #noteDoubts(isMarked: Promise<boolean>): Promise<void> {
    if (await isMarked) this.#queue.succeeded({ kind: "doubts" });
    else this.#queue.retryLater([{ kind: "doubts" }]);
  }

  #logWithheld(): void {
    const { withheld } = this.#planner;
    this.#options.metrics.withheldDeletions.set(withheld.names.length);
    withheld.logChange(this.#options.log);
  }

  #addAll(names: Iterable<ObjectName>): void {
    for (const name of names) this.#queue.add(name);
  }
}

function isName(work: Work): work is ObjectName {
  return work.kind !== "everything" && work.kind !== "tombstones" && work.kind !== "doubts";
}
