/**
 * Holds the status that each object should show, writes it if it changed, and counts ready objects. Writes run in the
 * background, a few at a time, so a slow sink does not delay changes of the store. If several statuses of one object
 * wait, only the last one is written. A failed write is tried again later.
 */

import { isDeepStrictEqual } from "node:util";
import { messageOf } from "../../lib/errors.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import {
  type AssetState,
  type AssetStates,
  assetReasons,
  type MissingFiles,
  type ProfileAsset,
} from "../../model/objects/profile.ts";
import {
  type Condition,
  heldReason,
  type ObjectName,
  type ObjectStatus,
  objectKey,
  ownKinds,
  type SourceView,
  type StatusSink,
} from "../../model/objects/source.ts";
import type { ControllerPorts } from "../core/controller-ports.ts";
import { WorkQueue } from "../core/work-queue.ts";
import { withConditions } from "./conditions.ts";

type StatusBookOptions = Pick<ControllerPorts, "statusSink" | "assets" | "missing" | "clock" | "log" | "metrics"> &
  // Without a source, a status has no `AssetsReady`.
  Partial<Pick<ControllerPorts, "source">>;

interface BookEntry {
  readonly name: ObjectName;
  /** As the caller of `show` gave it. */
  readonly found: ObjectStatus;
  readonly status: ObjectStatus;
  readonly ready: Readiness;
}

/** The label `ready` of the metric. A held Group is neither ready nor unready, because it must not raise an alert. */
type Readiness = (typeof readinesses)[number];
const readinesses = ["true", "false", "held"] as const;

// A write to an API server takes 20 to 50 ms. With this many parallel writes, davit reaches the intended maximum of 150
// a second.
const maxWrites = 8;
// The sink of a directory ends each write at once. So without a pause, 100,000 statuses would be one turn of the event
// loop. A write there takes a few microseconds.
const writesPerSlice = 256;
// How long the condition `AssetsReady` may show an older state.
const assetsMs = 1_000;

export class StatusBook {
  readonly #options: StatusBookOptions;
  readonly #entries = new Map<string, BookEntry>();
  readonly #queue: WorkQueue<ObjectName>;
  /** The keys of the objects whose status has the condition `AssetsReady`. */
  readonly #withAssets = new Set<string>();
  readonly #stopping = new AbortController();
  /** Writes under way, by object. */
  readonly #writes = new Map<string, Promise<void>>();
  #running: Promise<void> = Promise.resolve();

  constructor(options: StatusBookOptions) {
    this.#options = options;
    const { clock, metrics } = options;
    this.#queue = new WorkQueue({ clock, keyOf: objectKey, name: "statuses", metrics });
    for (const kind of ownKinds) {
      for (const ready of readinesses) metrics.resources.set({ kind, ready }, 0);
    }
  }

  start(): void {
    this.#running = Promise.all([this.#run(), this.#watchAssets()]).then(() => {});
  }

  /** Begins no further writes, and waits until the current ones are done; idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#queue.stop();
    await this.#running;
    await Promise.all(this.#writes.values());
  }

  /** Writes a status if it differs from the last one. */
  show(name: ObjectName, found: ObjectStatus): void {
    const key = objectKey(name);
    const assets = this.#assetsOf(name);
    if (assets === undefined) this.#withAssets.delete(key);
    else this.#withAssets.add(key);
    const conditions = assets && withConditions(found.conditions, [assets]);
    const status = withStalled(conditions === undefined ? found : { ...found, conditions });
    const before = this.#entries.get(key);
    if (isDeepStrictEqual(before?.status, status)) return;
    const entry = { name, found, status, ready: readinessOf(status) };
    this.#entries.set(key, entry);
    this.#count(before, -1);
    this.#count(entry, 1);
    this.#queue.add(name);
  }

  /** Passes every status to the sink again. The sink compares it with the status that the object has. */
  showAgain(): void {
    for (const { name } of this.#entries.values()) this.#queue.add(name);
  }

  forget(name: ObjectName): void {
    const key = objectKey(name);
    this.#withAssets.delete(key);
    this.#count(this.#entries.get(key), -1);
    this.#queue.succeeded(name);
    if (this.#entries.delete(key)) this.#options.statusSink.forget(name);
  }

  /** Sets the metrics that are only known when they are scraped. */
  measure(): void {
    this.#queue.measure();
  }

  async #run(): Promise<void> {
    const slices = new Slices(writesPerSlice);
    for (;;) {
      const names = await this.#queue.take(maxWrites);
      if (names.length === 0) return;
      for (const name of names) await this.#begin(name);
      if (slices.isOver(names.length)) await nextTurn();
    }
  }

  /** Begins to write a status, when there is room for one more write. */
  async #begin(name: ObjectName): Promise<void> {
    const key = objectKey(name);
    // Two parallel writes of one status could arrive in the wrong order.
    await this.#writes.get(key);
    if (this.#writes.size >= maxWrites) await Promise.race(this.#writes.values());
    if (this.#stopping.signal.aborted) return;
    this.#writes.set(
      key,
      this.#write(name).finally(() => this.#writes.delete(key)),
    );
  }

  async #write(name: ObjectName): Promise<void> {
    const entry = this.#entries.get(objectKey(name));
    if (entry === undefined) return;
    try {
      await this.#options.statusSink.write(name, entry.status);
      this.#queue.succeeded(name);
    } catch (error) {
      const { kind, namespace, name: object } = name;
      this.#options.log.warn({ kind, namespace, name: object, err: messageOf(error) }, "could not write a status");
      this.#queue.retryLater([name]);
    }
  }

  /** Shows Profiles again whose assets were fetched or cannot be, or for whose files machines wait. */
  async #watchAssets(): Promise<void> {
    const { source, assets, missing } = this.#options;
    if (source === undefined || (assets === undefined && missing === undefined)) return;
    for (;;) {
      await this.#options.clock.sleep(assetsMs, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      const others = (missing?.profiles ?? []).map((id) => objectKey(profileNamed(id)));
      const entries = [...this.#withAssets, ...others].flatMap((key) => this.#entries.get(key) ?? []);
      const outdated = entries.filter(({ name, status }) => isOutdated(status, this.#assetsOf(name)));
      for (const { name, found } of outdated) this.show(name, found);
    }
  }

  #assetsOf(name: ObjectName): Condition | undefined {
    const { source, assets, missing } = this.#options;
    return source && assetsCondition(name, { view: source.view, states: assets, missing });
  }

  #count(entry: BookEntry | undefined, by: 1 | -1): void {
    if (entry === undefined) return;
    this.#options.metrics.resources.inc({ kind: entry.name.kind, ready: entry.ready }, by);
  }
}

/**
 * The reasons for not being ready that are intended, end by themselves, or end when another object changes. All other
 * reasons need a person.
 */
const passing: ReadonlySet<string> = new Set([
  ...["ProfileNotFound", "ProfileOutdated", "TemplateNotFound"],
  ...["StoreUnavailable", "InternalError"],
  heldReason,
]);

/**
 * The status, with `Stalled` if only a person can make the object ready. `Stalled` is true or absent. For kstatus
 * (Flux, `helm --wait`), an unready object with `Stalled` has failed, and one without it is in progress.
 */
export function withStalled(status: ObjectStatus): ObjectStatus {
  const ready = status.conditions.find(({ type }) => type === "Ready");
  if (ready?.status !== "False" || passing.has(ready.reason)) return status;
  return { ...status, conditions: [...status.conditions, { ...ready, type: "Stalled", status: "True" }] };
}

/** True if a status shows another `AssetsReady` than the one of now. */
function isOutdated({ conditions }: ObjectStatus, now: Condition | undefined): boolean {
  const shown = conditions.find(({ type }) => type === "AssetsReady");
  return shown?.reason !== now?.reason || shown?.message !== now?.message;
}

function readinessOf({ conditions }: ObjectStatus): Readiness {
  const ready = conditions.find(({ type }) => type === "Ready");
  if (ready?.status === "True") return "true";
  return ready?.reason === heldReason ? "held" : "false";
}

/** Returns a sink that passes each status to all of these. It writes to all, then rejects if one of them did. */
export function sinkOfAll(sinks: readonly StatusSink[]): StatusSink {
  return {
    write: async (name, status) => {
      const results = await Promise.allSettled(sinks.map((sink) => sink.write(name, status)));
      for (const result of results) if (result.status === "rejected") throw result.reason;
    },
    forget: (name) => {
      for (const sink of sinks) sink.forget(name);
    },
  };
}

interface AssetFacts {
  readonly view: Pick<SourceView, "get">;
  /** Undefined if davit has no assets directory. */
  readonly states: AssetStates | undefined;
  /** Undefined if missing files are not recorded. */
  readonly missing: MissingFiles | undefined;
}

/** The message of a condition has at most 32 KiB. */
const maxListed = 10;

/**
 * The condition `AssetsReady` of Profiles with `spec.assets`, and of Profiles whose machines wait for a missing file.
 * Downloads and requests of machines change it between the controller's steps.
 *
 * Returns the condition of an object now; undefined for an object that has none.
 */
function assetsCondition(
  { kind, namespace, name }: ObjectName,
  { view, states, missing }: AssetFacts,
): Condition | undefined {
  if (kind !== "Profile") return undefined;
  const { assets = [] } = view.get("Profile", namespace, name)?.spec ?? {};
  const listed = assets.length === 0 ? undefined : conditionFor(assets, states);
  const files = missing?.of(`${namespace}/${name}`) ?? [];
  return files.length === 0 || listed?.status === "False" ? listed : missingCondition(files);
}

/** @param id `namespace/name` */
function profileNamed(id: string): ObjectName {
  const [namespace = "", name = ""] = id.split("/");
  return { kind: "Profile", namespace, name };
}

function missingCondition(files: readonly string[]): Condition {
  const named = files.slice(0, maxListed).map((path) => `"${path}"`);
  const which = named.join(", ");
  const message = `Machines wait and claim no install, because these files are not below --assets-dir: ${which}`;
  return notReady("Missing", message);
}

const unknown: AssetState = { reason: "Waiting", message: "is not fetched before davit accepts the spec" };

const noDirectory = notReady("NoAssetsDirectory", "davit has no assets directory: start it with --assets-dir");

function conditionFor(assets: readonly ProfileAsset[], states: AssetStates | undefined): Condition {
  if (states === undefined) return noDirectory;
  const found = assets.map((asset) => ({ asset, state: states.stateOf(asset) ?? unknown }));
  const missing = found.filter(({ state }) => state.reason !== "Fetched");
  const [worst] = missing.toSorted((a, b) => rankOf(a.state) - rankOf(b.state));
  if (worst === undefined) {
    const message = "Every asset is in the assets directory, with its SHA-256";
    return { type: "AssetsReady", status: "True", reason: "Fetched", message };
  }
  const texts = missing.slice(0, maxListed).map(({ asset, state }) => `"${asset.name}" ${state.message}`);
  const others = missing.length > maxListed ? [`${missing.length - maxListed} more are missing`] : [];
  return notReady(worst.state.reason, [...texts, ...others].join("; "));
}

function notReady(reason: string, message: string): Condition {
  return { type: "AssetsReady", status: "False", reason, message };
}

function rankOf({ reason }: AssetState): number {
  return assetReasons.indexOf(reason);
}
