/**
 * The controller: keeps the documents below `/davit` in line with what a source holds, and tells each object's status.
 *
 * It is level-based: a change only says which name to look at, and a reconcile reads the source's view and the store as
 * they are then. Names that are told together are written as one step. The first full list is one step, too, and
 * `/davit/synced` is written after it; the boot service answers nothing before that key exists.
 *
 * It promises that nothing is removed on a half view: not while part of the source cannot be read, and not because a
 * first list was empty, until a second one confirms it. It never answers a machine and never reads a request.
 */

import { type Clock, toRfc3339 } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { encodeDocument, type SyncedDocument, syncedPath } from "../model/documents.ts";
import type { DocumentChange } from "../model/feed.ts";
import type { ObjectName, Source, SourceListener, StatusSink } from "../model/source.ts";
import { StoreError } from "../store/refusal.ts";
import type { Store } from "../store/store.ts";
import { asStoreUnavailable, type Outcome } from "./conditions.ts";
import { Dependents, objectKey } from "./dependents.ts";
import { Documents } from "./documents.ts";
import { reconcileGroup, removeGroup } from "./reconcile-group.ts";
import { reconcileProfile, removeProfile } from "./reconcile-profile.ts";
import type { ProfileWorld } from "./resolve-profile.ts";
import { StatusBook } from "./status-book.ts";
import { WorkQueue } from "./work-queue.ts";

export interface ControllerOptions {
  readonly source: Source;
  readonly store: Store;
  readonly statusSink: StatusSink;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "controllerReconciles" | "controllerQueueDepth" | "resources" | "sourceProblems">;
  readonly sha256: (text: string) => string;
  readonly checkTemplate: ProfileWorld["checkTemplate"];
  /** Told once, when this run's first full list is in the store. */
  readonly onSynced: () => void;
}

/** One name to look at, or all of them. */
type Work = ObjectName | { readonly kind: "everything" };

// One step's worth of names: large enough that a burst costs few disk writes, small enough to be answered soon.
const maxNamesPerStep = 256;

export class Controller implements SourceListener {
  readonly #options: ControllerOptions;
  readonly #documents: Documents;
  readonly #statuses: StatusBook;
  readonly #dependents = new Dependents();
  readonly #queue: WorkQueue<Work>;
  readonly #world: ProfileWorld;
  #isListed = false;
  #isSynced = false;
  /** Something may be gone that was not removed, since the whole view was not there: no sync saw all of it yet. */
  #awaitsWholeView = true;
  #emptyLists = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ControllerOptions) {
    this.#options = options;
    const { source, store, clock, sha256, checkTemplate } = options;
    this.#documents = new Documents(store);
    this.#statuses = new StatusBook(options);
    this.#queue = new WorkQueue({ clock, keyOf: (work) => (work.kind === "everything" ? work.kind : objectKey(work)) });
    this.#world = {
      sha256,
      checkTemplate,
      configMap: (namespace, name) => source.view.get("ConfigMap", namespace, name),
      secret: (namespace, name) => source.view.get("Secret", namespace, name),
    };
  }

  async start(): Promise<void> {
    this.#documents.start();
    this.#running = this.#run();
    await this.#options.source.start(this);
  }

  /** Ends after the step under way; idempotent. */
  async stop(): Promise<void> {
    this.#queue.stop();
    await this.#running;
    this.#documents.stop();
  }

  listed(): void {
    const { source, metrics } = this.#options;
    metrics.sourceProblems.set(source.view.problems.length);
    this.#isListed = true;
    this.#emptyLists = isEmpty(source) ? this.#emptyLists + 1 : 0;
    // What went while the view was half had to stay, and nobody tells its name again.
    if (!source.view.complete) this.#awaitsWholeView = true;
    const completes = source.view.complete && this.#awaitsWholeView;
    if (!this.#isSynced || completes) this.#add({ kind: "everything" });
  }

  changed(names: readonly ObjectName[]): void {
    // The first list covers whatever changes before it.
    if (!this.#isListed) return;
    for (const name of names) {
      if (name.kind === "Profile" || name.kind === "Group") this.#add(name);
      else this.#addDependents(name);
    }
  }

  async #run(): Promise<void> {
    for (;;) {
      const works = await this.#queue.take(maxNamesPerStep);
      this.#options.metrics.controllerQueueDepth.set(this.#queue.depth);
      if (works.length === 0) return;
      const names = works.filter((work) => work.kind !== "everything");
      if (names.length < works.length) await this.#syncEverything();
      else if (!(await this.#step(names))) this.#retry(names);
    }
  }

  /** Brings every name of the source and of the store in line, as one step; then marks the store as synced. */
  async #syncEverything(): Promise<void> {
    const { source, log } = this.#options;
    const names = new Map<string, ObjectName>();
    for (const name of this.#documents.names()) names.set(objectKey(name), name);
    for (const kind of ["Profile", "Group"] as const) {
      for (const { namespace, name } of source.view.all(kind)) {
        names.set(objectKey({ kind, namespace, name }), { kind, namespace, name });
      }
    }
    if (this.#emptyLists === 1 && names.size > 0) {
      log.warn({}, "the source is empty but the store is not, waiting for a second list to confirm it");
      return;
    }
    const isWhole = source.view.complete;
    const done = (await this.#step([...names.values()])) && (await this.#markSynced(isWhole));
    if (!done) this.#queue.retryLater({ kind: "everything" });
    else if (isWhole) this.#awaitsWholeView = false;
    if (!done || this.#isSynced) return;
    this.#isSynced = true;
    this.#options.onSynced();
  }

  /** Reconciles names and writes what they want as one step; false when the store did not take it. */
  async #step(names: readonly ObjectName[]): Promise<boolean> {
    const reconciled = names.map((name) => ({ name, outcome: this.#reconcile(name) }));
    const written = await this.#write(reconciled.flatMap(({ outcome }) => outcome.changes));
    for (const { name, outcome } of reconciled) {
      if (written) this.#queue.succeeded(name);
      await this.#tell(name, outcome, written);
    }
    return written;
  }

  #reconcile(name: ObjectName): Outcome {
    if (name.kind === "Profile") return this.#reconcileProfile(name);
    return name.kind === "Group" ? this.#reconcileGroup(name) : nothing;
  }

  #reconcileProfile(id: ObjectName): Outcome {
    const { namespace, name } = id;
    const { view } = this.#options.source;
    const object = view.get("Profile", namespace, name);
    const stored = this.#documents.profile(namespace, name);
    if (object === undefined && !view.complete) return nothing;
    this.#dependents.update(id, object);
    if ((object === undefined) !== (stored.document === undefined)) this.#addDependents(id);
    return object === undefined
      ? removeProfile(namespace, name, stored)
      : reconcileProfile(object, stored, this.#world);
  }

  #reconcileGroup(id: ObjectName): Outcome {
    const { namespace, name } = id;
    const { view } = this.#options.source;
    const object = view.get("Group", namespace, name);
    const stored = this.#documents.group(namespace, name);
    if (object === undefined && !view.complete) return nothing;
    this.#dependents.update(id, object);
    if (object === undefined) return removeGroup(namespace, name, stored);
    return reconcileGroup(object, stored, (ns, profile) => this.#profileExists(ns, profile));
  }

  /** In view, or out of view for now and still served from the store. */
  #profileExists(namespace: string, name: string): boolean {
    const { view } = this.#options.source;
    if (view.get("Profile", namespace, name) !== undefined) return true;
    return !view.complete && this.#documents.profile(namespace, name).document !== undefined;
  }

  async #write(changes: readonly DocumentChange[]): Promise<boolean> {
    try {
      await this.#documents.write(changes);
      return true;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#options.log.warn({ err: error.message }, "the store did not take a step, trying again later");
      return false;
    }
  }

  async #tell(id: ObjectName, { status, changes }: Outcome, written: boolean): Promise<void> {
    const { kind, namespace, name } = id;
    const result = written ? "done" : "retry";
    this.#options.metrics.controllerReconciles.inc({ kind, result });
    // A removal changes what machines get, and its file is no longer there to tell of it.
    const isRemoved = status === undefined && changes.length > 0 && written;
    if (isRemoved) this.#options.log.info({ kind, namespace, name }, "object removed");
    if (status === undefined) this.#statuses.forget(id);
    else await this.#statuses.tell(id, written ? status : asStoreUnavailable(status));
  }

  /** Writes the key that lets machines be answered; false when the store did not take it. */
  async #markSynced(sawWholeView: boolean): Promise<boolean> {
    const { source, clock, sha256 } = this.#options;
    const before = this.#documents.synced();
    const revision = sha256(JSON.stringify(this.#documents.contents()));
    const complete = sawWholeView || before?.complete === true;
    if (before?.revision === revision && before.complete === complete && before.source === source.kind) return true;
    const mark: SyncedDocument = { source: source.kind, at: toRfc3339(clock.nowMs()), revision, complete };
    return await this.#write([{ path: syncedPath, text: encodeDocument(mark) }]);
  }

  #add(work: Work): void {
    this.#queue.add(work);
    this.#options.metrics.controllerQueueDepth.set(this.#queue.depth);
  }

  #addDependents(name: ObjectName): void {
    for (const dependent of this.#dependents.of(name)) this.#add(dependent);
  }

  #retry(names: readonly ObjectName[]): void {
    for (const name of names) this.#queue.retryLater(name);
  }
}

const nothing: Outcome = { changes: [], status: undefined };

function isEmpty({ view }: Source): boolean {
  for (const kind of ["Profile", "Group"] as const) {
    for (const _ of view.all(kind)) return false;
  }
  return true;
}
