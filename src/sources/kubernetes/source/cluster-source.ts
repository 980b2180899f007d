/**
 * The cluster as a source: Profiles, Groups and Machines of one, several or all namespaces, and the ConfigMaps and
 * Secrets that the Profiles name.
 *
 * The source reports its first list when it has read everything that the API server lets it read. No failure of the
 * connection removes objects or mixes states of different times (`held-changes.ts`). The source does not report a
 * change that concerns only a status. It never changes the cluster, and reads only Secrets that a Profile names.
 */

import { earliest } from "../../../lib/clock.ts";
import { assert } from "../../../lib/errors.ts";
import type { Metrics } from "../../../lib/metrics/metrics.ts";
import type { Ports } from "../../../lib/ports.ts";
import {
  isOwnKind,
  type ObjectName,
  type ObjectWriter,
  type OwnName,
  ownKinds,
  type Reference,
  type Source,
  type SourceListener,
  type SourceVersions,
  type SourceView,
} from "../../../model/objects/source.ts";
import { Admission } from "../../admission/admission.ts";
import { readCrds } from "../../admission/crds.ts";
import type { ApiClient } from "../client/client.ts";
import { resources } from "../client/resources.ts";
import { HeldChanges } from "../watch/held-changes.ts";
import type { MirrorChange, MirroredObject } from "../watch/mirror.ts";
import type { WatchLimits } from "../watch/object-watch.ts";
import { SeenVersions } from "../watch/seen-versions.ts";
import { SharedConditions } from "../watch/shared-conditions.ts";
import { makeWatch, type RunningWatch, type WatchContext } from "../watch/watch-context.ts";
import { WatchHealth } from "../watch/watch-health.ts";
import { ClusterView, nothingYet } from "./cluster-view.ts";
import { ConfigMaps } from "./config-maps.ts";
import { type Judgement, judge } from "./judge.ts";
import { LateGrants, newerGrants } from "./late-grants.ts";
import { OwnWatches, watchKey } from "./own-watches.ts";
import { type Parts, provable } from "./parts.ts";
import { ShownReferences } from "./references.ts";
import { ScopeNamespaces } from "./scope-namespaces.ts";
import { Secrets } from "./secrets.ts";
import { UnknownResource, unknownText } from "./unknown-resource.ts";

interface ClusterSourceOptions extends Pick<Ports, "clock" | "log" | "random"> {
  readonly client: Pick<ApiClient, "json" | "watch">;
  /** The namespaces to watch; `all` needs rights on the whole cluster. */
  readonly namespaces: readonly string[] | "all";
  readonly metrics: Pick<Metrics, "watchConnected" | "watchRestarts" | "relists" | "cacheAgeSeconds">;
  readonly limits: WatchLimits;
  /** How often davit asks the API server for a proof that the view shows its state. */
  readonly proveMs: number;
  /** Where the CRD files are; the package's own by default. */
  readonly crdsDirectory?: string;
}

/** A Profile or Group as the API server last reported it, for `StatusWriter`. */
export type SeenObject = MirroredObject<Judgement>;

// The delay before the second list of an empty cluster. A person who has just installed davit should not wait long.
const confirmEmptyMs = 5_000;

export class ClusterSource implements Source {
  readonly kind = "cluster";
  readonly #options: ClusterSourceOptions;
  readonly #scopes: readonly (string | undefined)[];
  readonly #health: WatchHealth;
  readonly #stopping = new AbortController();
  #parts: Parts | undefined;
  #listener: SourceListener | undefined;
  #heard: (name: ObjectName, isReplaced: boolean) => void = () => {};
  /** Watches whose next list must arrive before `listed` is called. */
  #awaited = new Set<string>();
  #reportedExtent: string | undefined;
  #isConfirming = false;
  #isLevelled = false;
  #proving: Promise<void> | undefined;
  #seen = new SeenVersions();

  constructor(options: ClusterSourceOptions) {
    this.#options = options;
    this.#health = new WatchHealth(options.metrics);
    this.#scopes = options.namespaces === "all" ? [undefined] : options.namespaces;
  }

  get view(): SourceView {
    return this.#parts?.view ?? nothingYet;
  }

  get versions(): SourceVersions {
    return this.#seen.all;
  }

  get isFollowed(): boolean {
    return this.#parts?.watches.areConnected === true;
  }

  get provenAtMs(): number | undefined {
    return this.#reportedExtent === undefined ? undefined : this.#provenAtMs;
  }

  get #provenAtMs(): number | undefined {
    if (this.#parts === undefined) return undefined;
    const { watches, configMaps, secrets, held } = this.#parts;
    const { provenAtMs } = watches;
    if (provenAtMs === undefined) return undefined;
    const references = [configMaps.provenAtMs(held.lost), secrets.provenAtMs(held.lost)];
    // From each of these times on, the API server's state may differ from the shown state.
    const lags = [configMaps.unreadSinceMs(held.lost), held.sinceMs, this.#health.unheardSinceMs(held.lost)];
    return earliest(provenAtMs, ...references, ...lags);
  }

  /** The longest time for which a watch of Profiles or Groups has not heard the API server, in seconds. */
  get ageSeconds(): number {
    const nowMs = this.#options.clock.monotonicMs();
    return (nowMs - Math.min(nowMs, this.#parts?.watches.heardAtMs ?? nowMs)) / 1_000;
  }

  /** For people: which parts of the cluster are not heard now, and why. */
  get attention(): readonly string[] {
    const lost = [...this.view.unheard].map((namespace) => `namespace "${namespace}": ${lostText}`);
    const unknown = this.#parts?.watches.areUnknown === true ? [unknownText(resources.Machine)] : [];
    return [...this.#absence(), ...this.#health.troubles, ...unknown, ...lost].map((line) => `cluster: ${line}`);
  }

  #absence(): readonly string[] {
    if (this.#reportedExtent === undefined) return ["waiting for the first list of everything"];
    if (this.isFollowed) return [];
    return [`not followed now, heard ${Math.round(this.ageSeconds)} s ago: what is known stays`];
  }

  /** Sets the metrics that no event updates. */
  measure(): void {
    this.#options.metrics.cacheAgeSeconds.set(this.ageSeconds);
  }

  /** Returns a Profile or Group as the API server last reported it; undefined for an object that is gone. */
  seen(object: ObjectName): SeenObject | undefined {
    return this.#parts?.watches.of(object)?.get(object.namespace, object.name);
  }

  writerOf(name: OwnName): ObjectWriter | undefined {
    const { resourceVersion, value } = this.seen(name) ?? {};
    if (resourceVersion === undefined || value === undefined) return undefined;
    return { generation: value.generation, resourceVersion, ...value.manager };
  }

  /**
   * Sets the function that is called with each reported Profile or Group. If `isReplaced`, it may be another object, to
   * which davit has written no status yet.
   */
  onHeard(heard: (name: ObjectName, isReplaced: boolean) => void): void {
    this.#heard = heard;
  }

  /** @throws {Error} when the CRD files cannot be read. */
  async start(listener: SourceListener, seen: SourceVersions = {}): Promise<void> {
    const admission = new Admission(await readCrds(this.#options.crdsDirectory));
    admission.prepare();
    if (this.#stopping.signal.aborted) return;
    this.#listener = listener;
    this.#seen = new SeenVersions(seen);
    this.#parts = this.#makeParts(admission);
    this.#awaited = new Set(this.#parts.watches.keys);
    this.#parts.configMaps.start();
    this.#parts.watches.start();
    this.#proving = this.#prove(this.#parts);
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#parts === undefined) return;
    const { watches, configMaps, secrets } = this.#parts;
    await watches.stop();
    await Promise.all([configMaps.stop(), secrets.stop(), this.#proving]);
  }

  /** Regularly asks the API server for a proof of each watch. */
  async #prove(parts: Parts): Promise<void> {
    const { clock, proveMs } = this.#options;
    const { signal } = this.#stopping;
    for (let nextMs = proveMs; !signal.aborted; ) {
      await clock.sleep(nextMs, signal);
      if (signal.aborted) return;
      const beganMs = clock.monotonicMs();
      await Promise.all(provable(parts).map((watch) => watch.prove(proveMs)));
      nextMs = Math.max(0, beganMs + proveMs - clock.monotonicMs());
    }
  }

  #makeParts(admission: Admission): Parts {
    const conditions = new SharedConditions();
    const held = this.#makeHeldChanges();
    const context = { ...this.#options, admission, conditions, health: this.#health, held, seen: this.#seen };
    const changed = (reference: Reference) => this.#referenceChanged(reference);
    const configMaps = new ConfigMaps(context, this.#scopes, changed);
    const secrets = new Secrets(context, changed);
    const namespaces = this.#makeNamespaces();
    const watches = new OwnWatches(held.lost);
    const references = new ShownReferences({ ConfigMap: configMaps, Secret: secrets });
    const view = new ClusterView(references, namespaces, watches);
    for (const namespace of this.#scopes) {
      for (const kind of ownKinds) watches.add(kind, namespace, this.#makeWatch(context, kind, namespace));
    }
    return { view, references, namespaces, configMaps, secrets, held, grants: this.#makeGrants(), watches };
  }

  #makeGrants(): LateGrants {
    return new LateGrants({
      clock: this.#options.clock,
      signal: this.#stopping.signal,
      prove: () => Promise.all(provable(this.#started()).map((watch) => watch.proveNow())),
      provenAtMs: () => (this.#started().view.isSettled ? this.#provenAtMs : undefined),
      release: (names) => this.#take(this.#offer(names).now),
    });
  }

  #makeNamespaces(): ScopeNamespaces {
    const { client, clock, log } = this.#options;
    const changed = () => this.#reportListed();
    return new ScopeNamespaces({ client, clock, log, signal: this.#stopping.signal, changed });
  }

  #makeHeldChanges(): HeldChanges {
    return new HeldChanges({
      clock: this.#options.clock,
      signal: this.#stopping.signal,
      provenAtMs: () => this.provenAtMs,
      release: (names) => this.#admit(names),
      lostChanged: () => this.#lostChanged(),
    });
  }

  #makeWatch(context: WatchContext, kind: OwnName["kind"], namespace: string | undefined) {
    const resource = resources[kind];
    // Machines are younger than the other kinds.
    const client = kind === "Machine" ? new UnknownResource({ ...this.#options, resource, namespace }) : undefined;
    const running = makeWatch<Judgement>(client === undefined ? context : { ...context, client }, {
      resource,
      namespace,
      read: (object, meta, before) => judge(context, resource, { object, meta, before }),
      listener: {
        listed: () => {
          client?.listed();
          this.#listed(watchKey(kind, namespace));
        },
        changed: (changes) => this.#changed(changes.map((change) => ownChange(kind, change))),
      },
    });
    return { ...running, ...(client && { client }) };
  }

  #listed(key: string): void {
    this.#awaited.delete(key);
    for (const namespace of this.#scopes) this.#lookAtScope(namespace);
    this.#reportListed();
  }

  #lostChanged(): void {
    const { log } = this.#options;
    log.warn({ namespaces: [...this.view.unheard] }, "machines of namespaces that are not heard of wait");
    this.#reportListed();
  }

  /** Records that a namespace was listed. With a watch of all namespaces, none can be misspelt or missing. */
  #lookAtScope(namespace: string | undefined): void {
    const { watches, namespaces } = this.#started();
    if (namespace === undefined) return;
    const own = ownKinds.flatMap((kind) => watches.of({ kind, namespace }) ?? []);
    if (own.every(({ isSynced }) => isSynced)) namespaces.listed(namespace, own.every(isEmpty));
  }

  #changed(changes: readonly OwnChange[]): void {
    for (const { name, change } of changes) if (change !== "deleted") this.#heard(name, change === "replaced");
    const { now, later } = this.#offer(changes.map(({ name }) => name));
    this.#admit(now);
    this.#takeRestrictions(later);
  }

  /** Takes in changes, but new grants only when they are proven (`late-grants.ts`). */
  #admit(names: readonly ObjectName[]): void {
    const { view, grants } = this.#started();
    const isFirst = this.#reportedExtent === undefined;
    const isLate = (name: ObjectName): name is OwnName =>
      !isFirst && isOwnName(name) && view.grants(name, this.seen(name)?.value);
    const [late, now] = [names.filter(isLate), names.filter((name) => !isLate(name))];
    for (const name of now) grants.forget(name);
    this.#take(now);
    this.#takeRestrictions(late);
    grants.delay(late);
  }

  /** Takes in only what makes machines wait. */
  #takeRestrictions(names: readonly OwnName[]): void {
    const { view } = this.#started();
    const shown = names.filter((name) => view.takeRestrictions(name, this.seen(name)?.value));
    if (shown.length > 0) this.#listener?.changed(shown);
  }

  #referenceChanged(reference: Reference): void {
    const { references } = this.#started();
    const { now, later } = references.isAbsent(reference) ? { now: [reference], later: [] } : this.#offer([reference]);
    for (const each of later) references.holdBack(each);
    this.#take(now);
  }

  /** Divides changes into those to take in now and those that wait. Before the first complete list none waits. */
  #offer<Name extends ObjectName>(names: readonly Name[]): { now: readonly Name[]; later: readonly Name[] } {
    return this.#reportedExtent === undefined ? { now: names, later: [] } : this.#started().held.offer(names);
  }

  #take(names: readonly ObjectName[]): void {
    const { view } = this.#started();
    // References come first, so that a Profile that waits for them is shown together with them.
    const references = names.filter(isReference).flatMap((reference) => view.takeReference(reference));
    const own = names.filter(isOwnName);
    const shown = [...references, ...own.filter((name) => view.take(name, this.seen(name)?.value))];
    if (shown.length > 0) this.#listener?.changed(shown);
    for (const namespace of new Set(own.map((name) => name.namespace))) {
      if (this.#scopes.includes(namespace)) this.#lookAtScope(namespace);
    }
    this.#reportListed();
  }

  /**
   * Calls `listed`: when all lists were read, after each change of `extent`, and after the second list of an empty
   * cluster.
   */
  #reportListed(): void {
    const { view, watches } = this.#started();
    const areIn = [...this.#awaited].every((key) => watches.isLost(key));
    if (watches.areReachableListed) view.allListed();
    const isFirst = this.#reportedExtent === undefined;
    const isDue = isFirst ? areIn && view.isSettled && this.#areLevel() : view.extent !== this.#reportedExtent;
    const isConfirmed = this.#isConfirming && areIn;
    if (!isDue && !isConfirmed) return;
    this.#reportedExtent = view.extent;
    if (isConfirmed) this.#isConfirming = false;
    this.#listener?.listed();
    if (isFirst && view.isEmpty) void this.#confirmEmpty();
  }

  /** True if no list is older than a grant in another list. At the first call, davit asks for proofs of such grants. */
  #areLevel(): boolean {
    const { watches, grants } = this.#started();
    if (!this.#isLevelled) grants.delay(newerGrants(watches.reachable, provable(this.#started())));
    this.#isLevelled = true;
    return grants.isIdle;
  }

  async #confirmEmpty(): Promise<void> {
    const { watches } = this.#started();
    this.#isConfirming = true;
    this.#awaited = new Set(watches.keys);
    await this.#options.clock.sleep(confirmEmptyMs, this.#stopping.signal);
    if (this.#stopping.signal.aborted) return;
    watches.relist();
  }

  #started(): Parts {
    assert(this.#parts !== undefined, "A source that reports something was started");
    return this.#parts;
  }
}

const lostText =
  "not heard of: its machines wait, and so does an Install by a Group that names no machine, until it can be read";

function isEmpty(watch: RunningWatch<Judgement>["watch"]): boolean {
  for (const _ of watch.all()) return false;
  return true;
}

interface OwnChange {
  readonly name: OwnName;
  readonly change: MirrorChange["kind"];
}

function ownChange(kind: OwnName["kind"], { namespace, name, kind: change }: MirrorChange): OwnChange {
  return { name: { kind, namespace, name }, change };
}

function isOwnName(name: ObjectName): name is OwnName {
  return isOwnKind(name.kind);
}

function isReference(name: ObjectName): name is Reference {
  return !isOwnName(name);
}
