/** The watches of Profiles and Groups, by kind and namespace, and their state as a whole. */

import type { ObjectName, OwnName } from "../../model/source.ts";
import type { RunningWatch } from "../watch/watch-context.ts";
import type { Judgement } from "./judge.ts";

type OwnWatch = RunningWatch<Judgement>["watch"];

export class OwnWatches {
  /** Namespaces that were given up, until they are heard again. */
  readonly lost: ReadonlySet<string>;
  readonly #running = new Map<string, RunningWatch<Judgement>>();

  constructor(lost: ReadonlySet<string>) {
    this.lost = lost;
  }

  /** @param namespace undefined for all of them. */
  add(kind: OwnName["kind"], namespace: string | undefined, running: RunningWatch<Judgement>): void {
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

  /** The watch that has the Profiles or Groups of a namespace; undefined where it is not read. */
  of({ kind, namespace }: Pick<ObjectName, "kind" | "namespace">): OwnWatch | undefined {
    return (this.#running.get(`${kind}/`) ?? this.#running.get(`${kind}/${namespace}`))?.watch;
  }

  /**
   * True when the list with the Profiles or Groups of a namespace was read; for an unwatched namespace, when all lists
   * were.
   */
  hasList(kind: OwnName["kind"], namespace: string): boolean {
    return this.of({ kind, namespace })?.isSynced ?? this.areListed;
  }

  /** Every list was read. */
  get areListed(): boolean {
    return this.#all().every(({ isSynced }) => isSynced);
  }

  /** Every list was read, except those of namespaces that were given up. */
  get areHopefulListed(): boolean {
    return this.#hopeful().every(({ isSynced }) => isSynced);
  }

  /** True when every watch is connected, except those of namespaces that were given up. */
  get areConnected(): boolean {
    const watches = this.#hopeful();
    return watches.length > 0 && watches.every(({ isConnected }) => isConnected);
  }

  /** Monotonic: when the watch that has been silent longest was last heard. */
  get heardAtMs(): number {
    return Math.min(...this.#hopeful().map((watch) => watch.heardAtMs));
  }

  /**
   * Monotonic: davit holds the API server's state of that time, except of namespaces that were given up; undefined
   * before every list was read.
   */
  get provenAtMs(): number | undefined {
    let provenAtMs = Number.POSITIVE_INFINITY;
    for (const [key, { watch }] of this.#running) {
      if (!this.isLost(key)) provenAtMs = Math.min(provenAtMs, watch.provenAtMs ?? Number.NaN);
    }
    return Number.isFinite(provenAtMs) ? provenAtMs : undefined;
  }

  /** Asks the API server for a sign of life of each watch that was silent for this long. */
  async prove(silenceMs: number): Promise<void> {
    await Promise.all(this.#hopeful().map((watch) => watch.prove(silenceMs)));
  }

  /** True for a watch of a namespace that was given up. */
  isLost(key: string): boolean {
    return this.lost.has(key.slice(key.indexOf("/") + 1));
  }

  get keys(): readonly string[] {
    return [...this.#running.keys()];
  }

  #all(): readonly OwnWatch[] {
    return [...this.#running.values()].map(({ watch }) => watch);
  }

  #hopeful(): readonly OwnWatch[] {
    return [...this.#running].filter(([key]) => !this.isLost(key)).map(([, { watch }]) => watch);
  }
}

/** The key of a watch. */
export function watchKey(kind: OwnName["kind"], namespace = ""): string {
  return `${kind}/${namespace}`;
}
