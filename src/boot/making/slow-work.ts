/**
 * Decides which thread makes a config. The thread that answers machines makes nearly all configs, each in less than a
 * millisecond. If a config takes longer, davit stops that work and begins it again in another thread. That thread makes
 * a config only once if it is the same for every request. davit also remembers the error of such a config.
 */

import type { Clock } from "../../lib/clock.ts";
import { RenderError } from "../../render/core/render-error.ts";
import { TooLongHere } from "../../render/template/limits.ts";
import { RequestReads } from "../../render/template/request-reads.ts";
import type { BootGroup } from "../core/known-documents.ts";
import { type BootJob, type BootMaker, type Made, shortBudget } from "./boot-maker.ts";
import type { Customer, JobOutcome, RenderThread } from "./render-thread.ts";

export interface SlowWorkOptions {
  readonly thread: Pick<RenderThread, "run">;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** What a job is about: a Group, its Profile and a config. */
export interface Subject {
  readonly group: BootGroup;
  /** What the config uses of the Profile. After a change of the Profile, it is another object. */
  readonly version: object | undefined;
  /** Which config of the Group. */
  readonly key: string;
  /** The URL of davit in the config. */
  readonly davitUrl: string;
}

/** What davit knows of a config that took too long, as long as its Group and Profile stay the same. */
interface KnownSlow {
  readonly version: object | undefined;
  readonly davitUrl: string;
  /** True if the config takes too long for every request. */
  isAlwaysSlow: boolean;
  /** True if the config depends on the request. */
  isOfRequest: boolean;
  /** The job in the other thread, for all requests that can share its result. */
  flight: Promise<JobOutcome> | undefined;
  failed: { readonly error: RenderError; readonly untilMs: number } | undefined;
}

/** A job that ran out of time may succeed later, so davit tries again after this time. */
const retryMs = 60_000;

export class SlowWork {
  readonly #options: SlowWorkOptions;
  readonly #known = new WeakMap<BootGroup, Map<string, KnownSlow>>();

  constructor(options: SlowWorkOptions) {
    this.#options = options;
  }

  /**
   * Does a job, in this thread or in the other one.
   * @throws {RenderError} for a template or result that cannot be used.
   * @throws {BootError} busy or notReady.
   */
  make(job: BootJob, maker: BootMaker, subject: Subject, client: () => string): MadeFor | Promise<MadeFor> {
    const known = this.#find(subject);
    const reads = new RequestReads();
    if (known?.isAlwaysSlow !== true) {
      try {
        const made = maker.make(job, shortBudget(), reads);
        return { made, isOfRequest: reads.isAny };
      } catch (error) {
        if (!(error instanceof TooLongHere)) throw error;
      }
    }
    const state = known ?? this.#add(subject);
    state.isAlwaysSlow ||= !reads.isAny;
    return this.#makeElsewhere(job, maker, state, { namespace: namespaceOf(subject.group), client: client() });
  }

  async #makeElsewhere(job: BootJob, maker: BootMaker, state: KnownSlow, customer: Customer): Promise<MadeFor> {
    const outcome = await this.#outcome(job, state, customer);
    state.isOfRequest ||= outcome.isOfRequest;
    if ("made" in outcome) {
      maker.learn(job, outcome.made);
      return outcome;
    }
    const { reason, position, variable, field } = outcome.refused;
    const error = new RenderError(reason, position, { variable, field });
    const untilMs = outcome.isFinal ? Number.POSITIVE_INFINITY : this.#options.clock.monotonicMs() + retryMs;
    if (!outcome.isOfRequest) state.failed = { error, untilMs };
    throw error;
  }

  async #outcome(job: BootJob, state: KnownSlow, customer: Customer): Promise<JobOutcome> {
    const { thread, clock } = this.#options;
    if (state.failed !== undefined && clock.monotonicMs() < state.failed.untilMs) throw state.failed.error;
    if (state.isOfRequest) return await thread.run(job, customer);
    if (state.flight !== undefined) {
      const shared = await state.flight;
      return shared.isOfRequest ? await thread.run(job, customer) : shared;
    }
    state.flight = thread.run(job, customer);
    try {
      return await state.flight;
    } finally {
      state.flight = undefined;
    }
  }

  #find({ group, version, key, davitUrl }: Subject): KnownSlow | undefined {
    const known = this.#known.get(group)?.get(key);
    return known?.version === version && known?.davitUrl === davitUrl ? known : undefined;
  }

  #add({ group, version, key, davitUrl }: Subject): KnownSlow {
    const ofGroup = this.#known.get(group) ?? new Map<string, KnownSlow>();
    const begun = { isAlwaysSlow: false, isOfRequest: false, flight: undefined, failed: undefined };
    const known = { version, davitUrl, ...begun };
    this.#known.set(group, ofGroup.set(key, known));
    return known;
  }
}

/** A result, and whether it depends on the request. */
export interface MadeFor {
  readonly made: Made;
  readonly isOfRequest: boolean;
}

function namespaceOf({ id }: BootGroup): string {
  return id.slice(0, id.indexOf("/"));
}
