/**
 * Reads the Secrets that Profiles name, each with a separate watch. A Role that permits only Secrets of certain names
 * permits no watch of all Secrets, so davit never asks for more than one Secret in a request. A Secret that was read
 * stays while the API server is away. A deleted Secret is gone immediately.
 */

import { earliest } from "../../../lib/clock.ts";
import type { Reference, SecretObject } from "../../../model/objects/source.ts";
import { resources } from "../client/resources.ts";
import { makeWatch, type RunningWatch, type WatchContext } from "../watch/watch-context.ts";
import { type Judgement, judge } from "./judge.ts";

interface WantedSecret {
  readonly reference: Reference;
  /** Undefined for a Secret beyond the limit, which davit does not read. */
  readonly running: RunningWatch<Judgement> | undefined;
  isRefused: boolean;
  isTried: boolean;
}

/** Each watch takes a connection. */
const presetMaxSecrets = 100;

export class Secrets {
  readonly #context: WatchContext;
  readonly #changed: (reference: Reference) => void;
  readonly #maxSecrets: number;
  readonly #entries = new Map<string, WantedSecret>();
  readonly #ending = new Set<Promise<void>>();
  #watchCount = 0;

  /** @param changed called when a wanted Secret becomes known, and after each change. */
  constructor(context: WatchContext, changed: (reference: Reference) => void, maxSecrets = presetMaxSecrets) {
    this.#context = context;
    this.#changed = changed;
    this.#maxSecrets = maxSecrets;
  }

  async stop(): Promise<void> {
    for (const entry of this.#entries.values()) this.#end(entry);
    await Promise.all(this.#ending);
  }

  /** Monotonic: davit has the Secrets as they were at this time, or later. Undefined without a Secret. */
  provenAtMs(lost: ReadonlySet<string>): number | undefined {
    return earliest(...this.provable(lost).map(({ provenAtMs }) => provenAtMs));
  }

  /** The watches that show a Secret, except those of lost namespaces. */
  provable(lost: ReadonlySet<string>): readonly RunningWatch<Judgement>["watch"][] {
    const reachable = [...this.#entries.values()].filter(({ reference }) => !lost.has(reference.namespace));
    const watches = reachable.flatMap(({ running }) => running?.watch ?? []);
    return watches.filter(({ isSynced, isRefused }) => isSynced && !isRefused);
  }

  get(namespace: string, name: string): SecretObject | undefined {
    const entry = this.#entries.get(`${namespace}/${name}`);
    const object = entry?.running?.watch.get(namespace, name)?.value.object;
    return object?.kind === "Secret" ? object : undefined;
  }

  *all(): Iterable<SecretObject> {
    for (const { reference } of this.#entries.values()) {
      const object = this.get(reference.namespace, reference.name);
      if (object !== undefined) yield object;
    }
  }

  isKnown({ namespace, name }: Reference): boolean {
    const entry = this.#entries.get(`${namespace}/${name}`);
    if (entry === undefined) return false;
    return entry.running === undefined || entry.running.watch.isSynced || entry.isRefused;
  }

  /** True when the Secret is known, or the first try to read it has failed. */
  isTried(reference: Reference): boolean {
    return this.isKnown(reference) || this.#entries.get(`${reference.namespace}/${reference.name}`)?.isTried === true;
  }

  /** True when davit has no right to read the Secret, and did not read it before. */
  isForbidden({ namespace, name }: Reference): boolean {
    const isRefused = this.#entries.get(`${namespace}/${name}`)?.isRefused === true;
    return isRefused && this.get(namespace, name) === undefined;
  }

  want(reference: Reference): void {
    const { namespace, name } = reference;
    const isOneTooMany = this.#watchCount >= this.#maxSecrets;
    const running = isOneTooMany ? undefined : this.#makeWatch(reference);
    const entry = { reference, running, isRefused: false, isTried: false };
    this.#entries.set(`${namespace}/${name}`, entry);
    if (running === undefined) {
      this.#context.log.warn({ namespace, name, limit: this.#maxSecrets }, "too many Secrets, this one is not read");
      return;
    }
    this.#watchCount += 1;
    running.watch.start();
  }

  unwant({ namespace, name }: Reference): void {
    const key = `${namespace}/${name}`;
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    if (entry.running === undefined) return;
    this.#end(entry);
    this.#watchCount -= 1;
    const waiting = [...this.#entries.values()].find(({ running }) => running === undefined);
    if (waiting !== undefined) this.want(waiting.reference);
  }

  #end({ running }: WantedSecret): void {
    const ending = running?.stop().then(() => void this.#ending.delete(ending ?? Promise.resolve()));
    if (ending !== undefined) this.#ending.add(ending);
  }

  #makeWatch(reference: Reference): RunningWatch<Judgement> {
    const { namespace, name } = reference;
    const context = this.#context;
    return makeWatch<Judgement>(context, {
      resource: resources.Secret,
      namespace,
      name,
      read: (object, meta, before) => judge(context, resources.Secret, { object, meta, before }),
      listener: {
        listed: () => this.#listed(reference),
        changed: () => this.#changed(reference),
        failed: ({ reason }) => this.#failed(reference, reason === "refused"),
      },
    });
  }

  #listed(reference: Reference): void {
    const entry = this.#entries.get(`${reference.namespace}/${reference.name}`);
    if (entry !== undefined) entry.isRefused = false;
    this.#changed(reference);
  }

  /**
   * Records a failure. A Secret that davit has no right to read counts as missing. But if davit has read it before, the
   * Secret stays, because somebody may have removed the right by accident.
   */
  #failed(reference: Reference, isRefused: boolean): void {
    const entry = this.#entries.get(`${reference.namespace}/${reference.name}`);
    if (entry === undefined) return;
    const wasTried = entry.isTried && (entry.isRefused || !isRefused);
    entry.isTried = true;
    entry.isRefused ||= isRefused;
    if (!wasTried) this.#changed(reference);
  }
}
