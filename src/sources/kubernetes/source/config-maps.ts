/**
 * Reads the ConfigMaps that Profiles name. davit watches only the metadata of ConfigMaps. If they change, it reads the
 * content of the ConfigMap. This content stays until davit has read newer content, or the ConfigMap is gone. davit also
 * drops the content after a minute without the right to read newer content.
 */

import { earliest } from "../../../lib/clock.ts";
import type { ConfigMapObject, Reference } from "../../../model/objects/source.ts";
import { ApiError } from "../client/api-error.ts";
import { objectPath, resources } from "../client/resources.ts";
import { RetryDelays } from "../client/retry-delays.ts";
import { failureText } from "../watch/failure-text.ts";
import type { HeldWatch } from "../watch/held-changes.ts";
import { type MirrorChange, readMeta } from "../watch/mirror.ts";
import { makeWatch, type RunningWatch, type WatchContext } from "../watch/watch-context.ts";
import { judge } from "./judge.ts";

interface WantedConfigMap {
  readonly reference: Reference;
  object: ConfigMapObject | undefined;
  /** davit has no right to read the ConfigMap, so `object` is undefined. */
  isForbidden: boolean;
  /** davit has read the content, or knows that the ConfigMap is missing or forbidden. */
  isKnown: boolean;
  isTried: boolean;
  isReading: boolean;
  /** The version that was last read; undefined to read the ConfigMap again. */
  version: string | undefined;
}

/** A ConfigMap whose version on the API server differs from the version that davit read. */
interface UnreadConfigMap {
  /** Monotonic: since when the versions may differ. */
  readonly sinceMs: number;
  readonly waiting: HeldWatch;
}

// Enough to keep the connections busy. Further reads wait here, because in the client their time-outs would run.
const maxReads = 12;
// How long davit keeps content whose newer version it has no right to read. A right that was removed by mistake usually
// returns sooner.
const forbiddenMs = 60_000;

export class ConfigMaps {
  readonly #context: WatchContext;
  readonly #changed: (reference: Reference) => void;
  readonly #watches: ReadonlyMap<string | undefined, RunningWatch<null>>;
  readonly #entries = new Map<string, WantedConfigMap>();
  /**
   * Namespaces (undefined for all) whose ConfigMaps davit has no right to watch. A ConfigMap there counts as forbidden,
   * unless the watch has seen it before.
   */
  readonly #refused = new Set<string | undefined>();
  readonly #stopping = new AbortController();
  readonly #delays: RetryDelays;
  readonly #waiting = new Set<WantedConfigMap>();
  readonly #unread = new Map<WantedConfigMap, UnreadConfigMap>();
  #reads = 0;

  /** @param changed called when a wanted ConfigMap becomes known, and after each change. */
  constructor(
    context: WatchContext,
    namespaces: readonly (string | undefined)[],
    changed: (reference: Reference) => void,
  ) {
    this.#context = context;
    this.#changed = changed;
    this.#delays = new RetryDelays(context);
    this.#watches = new Map(namespaces.map((namespace) => [namespace, this.#makeWatch(namespace)]));
  }

  start(): void {
    for (const { watch } of this.#watches.values()) watch.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#watches.values()].map(({ stop }) => stop()));
  }

  /**
   * Monotonic: since when at least one ConfigMap may differ from its read version; undefined if none does. ConfigMaps
   * of lost namespaces do not count.
   */
  unreadSinceMs(lost: ReadonlySet<string>): number | undefined {
    // The map is in order of time, so the ConfigMap that waits longest is first.
    for (const [{ reference }, { sinceMs }] of this.#unread) if (!lost.has(reference.namespace)) return sinceMs;
    return undefined;
  }

  /** Monotonic: davit knows the versions of all ConfigMaps at this time, or a later one. Undefined without a watch. */
  provenAtMs(lost: ReadonlySet<string>): number | undefined {
    return earliest(...this.provable(lost).map(({ provenAtMs }) => provenAtMs));
  }

  /** The watches that show ConfigMaps, except those of lost namespaces. */
  provable(lost: ReadonlySet<string>): readonly RunningWatch<null>["watch"][] {
    const reachable = [...this.#watches].filter(([namespace = ""]) => !lost.has(namespace));
    return reachable.map(([, { watch }]) => watch).filter(({ isSynced, isRefused }) => isSynced && !isRefused);
  }

  get(namespace: string, name: string): ConfigMapObject | undefined {
    return this.#entries.get(`${namespace}/${name}`)?.object;
  }

  *all(): Iterable<ConfigMapObject> {
    for (const { object } of this.#entries.values()) if (object !== undefined) yield object;
  }

  isKnown({ namespace, name }: Reference): boolean {
    return this.#entries.get(`${namespace}/${name}`)?.isKnown === true;
  }

  /** True when the ConfigMap is known, or the first try to read it has failed. */
  isTried({ namespace, name }: Reference): boolean {
    return this.#entries.get(`${namespace}/${name}`)?.isTried === true;
  }

  isForbidden({ namespace, name }: Reference): boolean {
    return this.#entries.get(`${namespace}/${name}`)?.isForbidden === true;
  }

  want(reference: Reference): void {
    const { namespace, name } = reference;
    const nothing = { object: undefined, version: undefined };
    const entry = { reference, ...nothing, isForbidden: false, isKnown: false, isTried: false, isReading: false };
    this.#entries.set(`${namespace}/${name}`, entry);
    this.#look(entry);
  }

  unwant({ namespace, name }: Reference): void {
    const entry = this.#entries.get(`${namespace}/${name}`);
    this.#entries.delete(`${namespace}/${name}`);
    if (entry !== undefined) this.#isRead(entry);
  }

  #makeWatch(namespace: string | undefined): RunningWatch<null> {
    return makeWatch(this.#context, {
      resource: resources.ConfigMap,
      namespace,
      metadataOnly: true,
      read: () => null,
      listener: {
        listed: () => {
          this.#refused.delete(namespace);
          this.#lookAll();
        },
        changed: (changes) => this.#lookAt(changes),
        failed: ({ reason }) => this.#watchFailed(namespace, reason === "refused"),
      },
    });
  }

  #watchFailed(scope: string | undefined, isRefused: boolean): void {
    if (isRefused) {
      this.#refused.add(scope);
      this.#lookAll();
      return;
    }
    for (const entry of this.#entries.values()) if (this.#scopeOf(entry) === scope) this.#tried(entry);
  }

  #scopeOf({ reference: { namespace } }: WantedConfigMap): string | undefined {
    return this.#watches.has(undefined) ? undefined : namespace;
  }

  /** Records a failed read. The first list of the source no longer waits for this ConfigMap. */
  #tried(entry: WantedConfigMap): void {
    if (entry.isTried) return;
    entry.isTried = true;
    this.#changed(entry.reference);
  }

  #lookAll(): void {
    for (const entry of this.#entries.values()) this.#look(entry);
  }

  #lookAt(changes: readonly MirrorChange[]): void {
    for (const { kind, namespace, name } of changes) {
      const entry = this.#entries.get(`${namespace}/${name}`);
      if (entry === undefined) continue;
      // The new object may have the version that davit last read of the previous object.
      if (kind === "replaced") entry.version = undefined;
      this.#look(entry);
    }
  }

  /** Compares the version that was read with that of the metadata, and reads the content if they differ. */
  #look(entry: WantedConfigMap): void {
    const { namespace, name } = entry.reference;
    const scope = this.#scopeOf(entry);
    const watch = this.#watches.get(scope)?.watch;
    const version = watch?.get(namespace, name)?.resourceVersion;
    if (version !== undefined) {
      if (version !== entry.version) this.#enqueue(entry);
    } else if (watch === undefined || watch.isSynced || this.#refused.has(scope)) {
      entry.version = undefined;
      this.#settleWithout(entry, this.#refused.has(scope));
    }
  }

  #enqueue(entry: WantedConfigMap): void {
    if (!this.#unread.has(entry)) this.#unread.set(entry, this.#makeUnread(entry));
    this.#waiting.add(entry);
    this.#readNext();
  }

  #makeUnread({ reference: { namespace }, isKnown }: WantedConfigMap): UnreadConfigMap {
    const { clock, held } = this.#context;
    const nowMs = clock.monotonicMs();
    const waiting = held.track({ namespace, what: "read" });
    if (isKnown) waiting.opening();
    return { sinceMs: Math.min(nowMs, held.sinceMs ?? nowMs), waiting };
  }

  #isRead(entry: WantedConfigMap): void {
    const unread = this.#unread.get(entry);
    this.#unread.delete(entry);
    unread?.waiting.end();
  }

  #readNext(): void {
    for (const entry of this.#waiting) {
      if (this.#reads >= maxReads) return;
      if (entry.isReading) continue;
      this.#waiting.delete(entry);
      void this.#read(entry);
    }
  }

  /**
   * Reads a ConfigMap. The API server makes a quorum read, so the content is never older than the reported metadata.
   */
  async #read(entry: WantedConfigMap): Promise<void> {
    const { client, clock } = this.#context;
    const { namespace, name } = entry.reference;
    const { signal } = this.#stopping;
    entry.isReading = true;
    this.#reads += 1;
    let retryMs: number | undefined;
    try {
      const object = await client.json({ path: objectPath(resources.ConfigMap, namespace, name), signal });
      const meta = readMeta(object);
      entry.version = meta?.resourceVersion;
      const judged = meta && judge(this.#context, resources.ConfigMap, { object, meta, before: undefined });
      if (judged?.object?.kind === "ConfigMap") this.#settle(entry, judged.object);
      else this.#settleWithout(entry, false);
    } catch (error) {
      retryMs = this.#failed(entry, error);
    }
    this.#reads -= 1;
    entry.isReading = false;
    this.#readNext();
    if (retryMs === undefined) return;
    await clock.sleep(retryMs, signal);
    if (!signal.aborted) this.#look(entry);
  }

  /** @returns milliseconds until the next try; undefined to wait for a change of the metadata. */
  #failed(entry: WantedConfigMap, error: unknown): number | undefined {
    if (this.#stopping.signal.aborted) return undefined;
    const { log } = this.#context;
    const { namespace, name } = entry.reference;
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 404) {
      this.#settleWithout(entry, false);
      return undefined;
    }
    const problem = failureText(error, { verb: "get", resource: resources.ConfigMap, namespace, name });
    log.warn({ namespace, name, problem }, "cannot read a ConfigMap, trying again later");
    if (error.status === 403 && this.#isLost(entry)) this.#settleWithout(entry, true);
    if (entry.isKnown) this.#unread.get(entry)?.waiting.failed(error.status === 403);
    this.#tried(entry);
    return this.#delays.next();
  }

  /**
   * True when davit had no right to the new version for a minute, or never read any version. davit then drops the
   * content that it has read, if any. Otherwise the source would stay unproven, and no Install would start any more.
   */
  #isLost(entry: WantedConfigMap): boolean {
    const sinceMs = this.#unread.get(entry)?.sinceMs ?? Infinity;
    return entry.object === undefined || this.#context.clock.monotonicMs() - sinceMs >= forbiddenMs;
  }

  #settleWithout(entry: WantedConfigMap, isForbidden: boolean): void {
    const isSame = entry.isKnown && entry.object === undefined && entry.isForbidden === isForbidden;
    if (!isSame) this.#settle(entry, undefined, isForbidden);
    else this.#isRead(entry);
  }

  #settle(entry: WantedConfigMap, object: ConfigMapObject | undefined, isForbidden = false): void {
    entry.object = object;
    entry.isForbidden = isForbidden;
    entry.isKnown = true;
    entry.isTried = true;
    const { namespace, name } = entry.reference;
    // By now, no Profile may name the ConfigMap any more.
    if (this.#entries.get(`${namespace}/${name}`) === entry) this.#changed(entry.reference);
    // This comes last, because it may release held changes. The Profiles that waited for this ConfigMap must be shown
    // before those changes.
    this.#isRead(entry);
  }
}
