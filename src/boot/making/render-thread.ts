/**
 * Makes slow configs in one worker thread, beside the thread that answers machines. It does one job after the other,
 * each within 10 s. Namespaces take turns, and so do the clients of a namespace. So no client waits for all jobs of
 * another one. When half of the places are taken, the namespace or client with the most jobs is the first to be
 * refused.
 */

import type { Clock } from "../../lib/clock.ts";
import { JobThread, workerBeside } from "../../lib/job-thread.ts";
import { jobLimits } from "../../lib/memory-limit.ts";
import { Shares } from "../../lib/shares.ts";
import type { JsonObject } from "../../model/json.ts";
import type { RenderReason } from "../../render/core/render-error.ts";
import type { TextPosition } from "../../render/core/text-position.ts";
import { BootError } from "../core/boot-error.ts";
import type { BootJob, Made } from "./boot-maker.ts";

/**
 * A job as the worker gets it. Metadata is sent as text: copying one text costs the sender less than walking all
 * values.
 */
export interface SentJob {
  readonly job: BootJob;
  readonly metadataText: string;
  /** Empty without defaults. */
  readonly defaultsText: string;
  /**
   * Shared memory. The worker stores 1 in it when the job reads the request. So davit knows this even if the job does
   * not end.
   */
  readonly asked: Int32Array<SharedArrayBuffer>;
}

/** The members of a `RenderError`, which loses its class on the way to another thread. */
interface RefusedRender {
  readonly reason: RenderReason;
  readonly position: TextPosition | undefined;
  readonly variable: string | undefined;
  readonly field: string | undefined;
}

export type RenderAnswer = { readonly made: Made } | { readonly refused: RefusedRender };

/** The namespace and the client that wait for a job. */
export interface Customer {
  readonly namespace: string;
  /** The client's address; empty if it is unknown. */
  readonly client: string;
}

/** The result of a job, for everyone who waits for it. It can be cloned. */
export type JobOutcome = { readonly isOfRequest: boolean } & (
  | { readonly made: Made }
  | { readonly refused: RefusedRender; readonly isFinal: boolean }
);

interface RenderThreadOptions {
  readonly clock: Clock;
  /** The thread's program; `render-worker` unless given. */
  readonly worker?: URL;
}

/** The longest time for a job. A YAML text of the largest size takes two seconds. */
const limitMs = 10_000;
const maxWaiting = 64;
// The thread ends after this long without a job. The machines of a rack ask within a minute or two.
const idleMs = 60_000;
const resourceLimits = jobLimits.render;

const workerUrl = workerBeside(import.meta.url, "render-worker");

export class RenderThread {
  readonly #thread: JobThread<SentJob, RenderAnswer>;
  readonly #tenants = new Shares({ limit: maxWaiting });
  readonly #clients = new Shares({ limit: maxWaiting });
  #isStopped = false;

  constructor({ clock, worker = workerUrl }: RenderThreadOptions) {
    this.#thread = new JobThread({ worker, resourceLimits, limitMs, idleMs, clock });
  }

  /**
   * Does a job when its turn has come.
   * @throws {BootError} busy, if too many jobs wait; notReady, after `stop`.
   */
  async run(job: BootJob, customer: Customer): Promise<JobOutcome> {
    return await this.runSent(sentJob(job), customer);
  }

  /**
   * Like `run`, for a job of another thread.
   * @throws {BootError} as `run`.
   */
  async runSent(sent: SentJob, { namespace, client }: Customer): Promise<JobOutcome> {
    if (this.#isStopped) throw new BootError("notReady");
    if (!this.#tenants.admits(namespace) || !this.#clients.admits(client)) throw new BootError("busy");
    this.#tenants.add(namespace, 1);
    this.#clients.add(client, 1);
    try {
      const end = await this.#thread.run(sent, [namespace, client]);
      if (this.#isStopped) throw new BootError("notReady");
      return { ...outcomeOf(end), isOfRequest: Atomics.load(sent.asked, 0) === 1 };
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
}

/** Texts of metadata. An entry lives as long as its metadata is in use. */
const texts = new WeakMap<JsonObject, string>();

/** Returns a job in the form that is sent to another thread. */
export function sentJob(job: BootJob): SentJob {
  const { selector, machine } = job.group;
  return {
    job: { ...job, group: { selector, machine, metadata: {} }, defaults: undefined },
    metadataText: textOf(job.group.metadata),
    defaultsText: textOf(job.defaults),
    asked: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
  };
}

function textOf(metadata: JsonObject | undefined): string {
  if (metadata === undefined) return "";
  const text = texts.get(metadata) ?? JSON.stringify(metadata);
  texts.set(metadata, text);
  return text;
}

type End = Awaited<ReturnType<JobThread<SentJob, RenderAnswer>["run"]>>;

/** Converts the end of a job. A job without an answer is not final: it may succeed when the processor is less busy. */
function outcomeOf(end: End) {
  if (end.kind !== "answered") {
    return { refused: { reason: "stopped" as const, ...nowhere }, isFinal: false };
  }
  return "made" in end.answer ? end.answer : { ...end.answer, isFinal: true };
}

const nowhere = { position: undefined, variable: undefined, field: undefined };
