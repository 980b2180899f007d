/**
 * Makes slow configs in one worker thread, one job after the other, each within 10 s, beside the thread that answers
 * machines. Tenants take turns, and so do the clients of a tenant, so nobody waits for all jobs of another. Once half
 * of the places are taken, the tenant with most jobs is refused first.
 */

import type { Clock } from "../lib/clock.ts";
import { FairQueue } from "../lib/fair-queue.ts";
import { JobThread } from "../lib/job-thread.ts";
import { Shares } from "../lib/shares.ts";
import type { JsonObject } from "../model/json.ts";
import { RenderError, type RenderReason } from "../render/core/render-error.ts";
import type { TextPosition } from "../render/core/text-position.ts";
import { BootError } from "./boot-error.ts";
import type { BootJob, Made } from "./boot-maker.ts";

/**
 * A job as it is sent: metadata is sent as text, because copying bytes costs the sender less than walking all of it.
 */
export interface SentJob {
  readonly job: BootJob;
  readonly metadataText: string;
  /** Empty for none. */
  readonly defaultsText: string;
  /** Becomes 1 when the job reads the request. It can be read while the job runs. */
  readonly asked: Int32Array<SharedArrayBuffer>;
}

export type ThreadAnswer =
  | { readonly made: Made }
  | {
      readonly refused: {
        readonly reason: RenderReason;
        readonly position: TextPosition | undefined;
        readonly variable: string | undefined;
        readonly field: string | undefined;
      };
    };

/** The tenant and client that wait. */
export interface Customer {
  readonly namespace: string;
  /** The client's address; empty when unknown. */
  readonly client: string;
}

/** The result of a job, for everyone who waits for it. */
export type JobOutcome = { readonly isOfRequest: boolean } & (
  | { readonly made: Made }
  | { readonly error: RenderError; readonly isFinal: boolean }
);

export interface RenderThreadOptions {
  readonly clock: Clock;
  /** What the thread runs. */
  readonly worker?: URL;
}

/** A YAML text of the largest size takes two seconds. */
const limitMs = 10_000;
const maxWaiting = 64;
// The machines of a rack ask within a minute or two.
const idleMs = 60_000;
// Enough for the largest results and what making them takes. Beyond it V8 ends the thread, not the process.
const resourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 16 };

// Type stripping runs the sources as they are; a build has the same file compiled.
const workerUrl = new URL(`./render-worker${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

interface WaitingRender {
  readonly sent: SentJob;
  readonly resolve: (outcome: JobOutcome) => void;
  readonly reject: (error: BootError) => void;
}

export class RenderThread {
  readonly #thread: JobThread<SentJob, ThreadAnswer>;
  readonly #queue = new FairQueue<WaitingRender>();
  readonly #tenants = new Shares({ limit: maxWaiting });
  readonly #clients = new Shares({ limit: maxWaiting });
  /** Texts of metadata, for as long as the metadata is in use. */
  readonly #texts = new WeakMap<JsonObject, string>();
  #isBusy = false;
  #isStopped = false;

  constructor({ clock, worker = workerUrl }: RenderThreadOptions) {
    this.#thread = new JobThread({ worker, workerData: undefined, resourceLimits, limitMs, idleMs, clock });
  }

  /**
   * Does a job when its turn has come.
   * @throws {BootError} busy, when too many wait; notReady, at the end.
   */
  async run(job: BootJob, { namespace, client }: Customer): Promise<JobOutcome> {
    if (this.#isStopped) throw new BootError("notReady");
    if (!this.#tenants.admits(namespace) || !this.#clients.admits(client)) throw new BootError("busy");
    this.#tenants.add(namespace, 1);
    this.#clients.add(client, 1);
    try {
      const { promise, resolve, reject } = Promise.withResolvers<JobOutcome>();
      this.#queue.push([namespace, client], { sent: this.#sent(job), resolve, reject });
      if (!this.#isBusy) void this.#work();
      return await promise;
    } finally {
      this.#tenants.release(namespace);
      this.#clients.release(client);
    }
  }

  /** Ends the thread and refuses waiting jobs. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#thread.stop();
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const { sent, resolve, reject } = next;
      const end = await this.#thread.run(sent);
      if (this.#isStopped) reject(new BootError("notReady"));
      else resolve({ ...outcomeOf(end), isOfRequest: Atomics.load(sent.asked, 0) === 1 });
    }
    this.#isBusy = false;
  }

  #sent(job: BootJob): SentJob {
    return {
      job: { ...job, group: { selector: job.group.selector, metadata: {} }, defaults: undefined },
      metadataText: this.#textOf(job.group.metadata),
      defaultsText: this.#textOf(job.defaults),
      asked: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
    };
  }

  #textOf(metadata: JsonObject | undefined): string {
    if (metadata === undefined) return "";
    const text = this.#texts.get(metadata) ?? JSON.stringify(metadata);
    this.#texts.set(metadata, text);
    return text;
  }
}

type End = Awaited<ReturnType<JobThread<SentJob, ThreadAnswer>["run"]>>;

/** A job that took too long may be faster on a quieter machine, so this is not final. */
function outcomeOf(end: End) {
  if (end.kind !== "answered") return { error: new RenderError("stopped"), isFinal: false };
  if ("made" in end.answer) return { made: end.answer.made };
  const { reason, position, variable, field } = end.answer.refused;
  return { error: new RenderError(reason, position, { variable, field }), isFinal: true };
}
