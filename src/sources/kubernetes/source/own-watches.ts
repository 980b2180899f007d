/** The watches of Profiles, Groups and Machines, by kind and namespace, and the state of all of them together. */

import type { ObjectName, OwnName } from "../../../model/objects/source.ts";
import type { RunningWatch } from "../watch/watch-context.ts";
import type { Judgement } from "./judge.ts";

type OwnWatch = RunningWatch<Judgement>["watch"];

/** A watch, and whether the cluster knows its resource. */
interface OwnRunning extends RunningWatch<Judgement> {
  readonly client?: { readonly isUnknown: boolean };
}

export class OwnWatches {
  /** The lost namespaces (`held-changes.ts`). */
  readonly lost: ReadonlySet<string>;
  readonly #running = new Map<string, OwnRunning>();

  constructor(lost: ReadonlySet<string>) {
    this.lost = lost;
  }

  /** @param namespace undefined for all namespaces. */
  add(kind: OwnName["kind"], namespace: string | undefined, running: OwnRunning): void {
    this.#running.set(watchKey(kind, namespace), running);
  }

  start(): void {
    for (const watch of this.#all()) watch.start();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ stop }) => stop()));
  }

  /** Lists everything now. */
  relist(): void {
    for (const watch of this.#all()) watch.relist();
  }

  /** Returns the watch of a namespace's objects of a kind; undefined for a namespace that davit does not read. */
  of({ kind, namespace }: Pick<ObjectName, "kind" | "namespace">): OwnWatch | undefined {
    return this.#of(kind, namespace)?.watch;
  }

  #of(kind: string, namespace: string): OwnRunning | undefined {
    return this.#running.get(`${kind}/`) ?? this.#running.get(`${kind}/${namespace}`);
  }

  /** True while the cluster does not know a resource of davit. */
  get areUnknown(): boolean {
    return [...this.#running.values()].some(({ client }) => client?.isUnknown === true);
  }

  /**
   * True when davit has read the list of a namespace's objects of a kind. For a namespace that davit does not watch:
   * true when davit has read all lists. False while the cluster does not know the resource: an object that davit knows
   * from before is then not certainly gone.
   */
  hasList(kind: OwnName["kind"], namespace: string): boolean {
    const running = this.#of(kind, namespace);
    if (running?.client?.isUnknown === true) return false;
    return running?.watch.isSynced ?? this.areListed;
  }

  /** True when every list was read. */
  get areListed(): boolean {
    return this.#all().every(({ isSynced }) => isSynced);
  }

  /** True when every list of `reachable` was read. */
  get areReachableListed(): boolean {
    return this.reachable.every(({ isSynced }) => isSynced);
  }

  /** True when every watch of `reachable` is connected. */
  get areConnected(): boolean {
    const watches = this.reachable;
    return watches.length > 0 && watches.every(({ isConnected }) => isConnected);
  }

  /** Monotonic: when the watch with the longest silence last heard the API server. Lost namespaces do not count. */
  get heardAtMs(): number {
    return Math.min(...this.reachable.map((watch) => watch.heardAtMs));
  }

  /**
   * Monotonic: davit holds the API server's state at this time, or a later one, except for lost namespaces. Undefined
   * until every list was read.
   */
  get provenAtMs(): number | undefined {
    let provenAtMs = Number.POSITIVE_INFINITY;
    for (const [key, { watch }] of this.#running) {
      if (!this.isLost(key)) provenAtMs = Math.min(provenAtMs, watch.provenAtMs ?? Number.NaN);
    }
    return Number.isFinite(provenAtMs) ? provenAtMs : undefined;
  }

  /** True for a watch of a lost namespace. @param key of `watchKey`. */
  isLost(key: string): boolean {
    return this.lost.has(key.slice(key.indexOf("/") + 1));
  }

  get keys(): readonly string[] {
    return [...this.#running.keys()];
  }

  #all(): readonly OwnWatch[] {
    return [...this.#running.values()].map(({ watch }) => watch);
  }

  /** The watches, except those of lost namespaces. */
  get reachable(): readonly OwnWatch[] {
    return [...this.#running].filter(([key]) => !this.isLost(key)).map(([, { watch }]) => watch);
  }
}

/** Returns the key of a watch; without a namespace, of the watch of all namespaces. */
export function watchKey(kind: OwnName["kind"], namespace = ""): string {
  return `${kind}/${namespace}`;
}
