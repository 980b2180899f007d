/**
 * Starts the boot threads beside the first one (`--boot-threads`), feeds them, and replaces those that end. Each has
 * its own index of all objects and listens on the same ports. The kernel divides the connections among them. The first
 * thread sends them each change in order, and its state each second. It keeps what exists only once: permits, signing
 * keys, log, history, and the thread for slow configs.
 *
 * When a thread ends by itself, its clients lose their connections, as after a restart of davit.
 */

import { Worker } from "node:worker_threads";
import type { ProfileAssetIndex } from "../../assets/profile-asset-index.ts";
import { backoffMs } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/errors.ts";
import { workerBeside } from "../../lib/job-thread.ts";
import type { Log } from "../../lib/log.ts";
import { firstThreadLimits } from "../../lib/memory-limit.ts";
import type { CountedChange } from "../../lib/metrics/boot-metrics.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import type { Answers } from "../../lib/questions.ts";
import type { DocumentChange, Feed, FeedListener } from "../../model/feed.ts";
import { davitRoot } from "../../model/objects/documents.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import { type BoundAddresses, listenerConfig } from "../listener/boot-listener.ts";
import type { OpenedSigners } from "../listener/open-signers.ts";
import { answerTo, type ThreadRequestsOptions, threadRequests } from "./thread-answers.ts";
import {
  type FeedName,
  type FromThread,
  feedNames,
  type ThreadEvent,
  type ThreadQuestion,
  type ThreadQuestions,
  type ThreadState,
  type ToThread,
} from "./wire.ts";

interface BootThreadsOptions extends ThreadRequestsOptions {
  /** The number of threads beside the first one. */
  readonly count: number;
  readonly start: ThreadStart;
  readonly feeds: Readonly<Record<FeedName, Feed>>;
  /** What the index of the first thread knows. It follows the feeds, and got each change before. */
  readonly state: () => Pick<ThreadState, "proven" | "settlingSinceMs">;
  /** Undefined if davit fetches no assets. */
  readonly wanted: ProfileAssetIndex | undefined;
  /** Answers what a thread cannot answer itself. */
  readonly answers: Answers<ThreadQuestions>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "bootThreads" | "bootThreadsLost" | "add">;
  /** The thread's program; `boot-thread-worker` unless given. */
  readonly worker?: URL;
}

/** How often the threads get the state. A thread without one for 10 s serves no config. */
const beatMs = 1_000;
const backoff = { firstMs: 500, capMs: 30_000 } as const;
/** After a thread that ran this long, the wait before the next one is the shortest again. */
const soundMs = 60_000;
/** The longest wait for the end of a thread. Its server closes within 5 s. */
const stopLimitMs = 7_000;

const workerUrl = workerBeside(import.meta.url, "boot-thread-worker");

export class BootThreads {
  readonly #options: BootThreadsOptions;
  readonly #stopping = new AbortController();
  readonly #running = new Set<RunningThread>();
  readonly #keeping: Promise<void>[] = [];
  #isOpen = false;

  constructor(options: BootThreadsOptions) {
    this.#options = options;
  }

  /** Starts the threads. Each listens when it has all documents and the ledger, and `open` was called. */
  start(): void {
    for (let at = 0; at < this.#options.count; at++) this.#keeping.push(this.#keep());
    void this.#beat();
  }

  /** See `BootIndex.open`. */
  open(): void {
    this.#isOpen = true;
    this.sendState();
  }

  /** Call it when the settling time has restarted. */
  sendState(): void {
    for (const thread of this.#running) thread.sendState();
  }

  /** Finishes the requests in flight. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const thread of this.#running) thread.stop();
    await Promise.all(this.#keeping);
  }

  /** Keeps one thread running. */
  async #keep(): Promise<void> {
    const { clock, log, metrics } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; failures++) {
      const startedMs = clock.monotonicMs();
      const why = await this.#run();
      if (signal.aborted) return;
      metrics.bootThreadsLost.inc();
      if (clock.monotonicMs() - startedMs >= soundMs) failures = 0;
      const waitMs = backoffMs(failures, backoff);
      log.error({ waitMs, why }, "boot thread ended, another one starts");
      await clock.sleep(waitMs, signal);
    }
  }

  /** Runs a thread until it ends. @returns why it ended, or why it could not start. */
  async #run(): Promise<string | undefined> {
    try {
      const thread = new RunningThread(this.#options, () => this.#isOpen);
      this.#running.add(thread);
      await thread.ended;
      this.#running.delete(thread);
      return thread.fault;
    } catch (error) {
      // The system may not allow another thread.
      return faultOf(error);
    }
  }

  async #beat(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      this.sendState();
      await clock.sleep(beatMs, this.#stopping.signal);
    }
  }
}

/** Names an error without its message, which may quote what a user wrote. */
function faultOf(error: unknown): string {
  return codeOf(error) ?? (error instanceof Error ? error.name : typeof error);
}

class RunningThread {
  readonly outbox: Outbox;
  readonly ended: Promise<void>;
  readonly #options: BootThreadsOptions;
  readonly #isOpen: () => boolean;
  readonly #worker: Worker;
  readonly #takeRequest: (event: ThreadEvent) => void;
  readonly #unfollow: readonly (() => void)[];
  /** What this thread has added to each gauge. `#end` subtracts it. */
  readonly #gauges = new Map<string, CountedChange>();
  readonly #hasEnded = new AbortController();
  #isListening = false;
  #fault: string | undefined;

  constructor(options: BootThreadsOptions, isOpen: () => boolean) {
    this.#options = options;
    this.#isOpen = isOpen;
    const { feeds, wanted, worker = workerUrl } = options;
    this.#worker = new Worker(worker, { workerData: options.start, resourceLimits: firstThreadLimits() });
    this.#takeRequest = threadRequests(options);
    this.outbox = new Outbox((message: ToThread) => this.#worker.postMessage(message));
    this.#worker.on("message", (message: FromThread) => this.#take(message));
    this.#worker.on("error", (error) => {
      this.#fault = faultOf(error);
    });
    this.ended = new Promise((resolve) => {
      this.#worker.once("exit", (code) => {
        this.#fault ??= `exit code ${code}`;
        this.#end();
        resolve();
      });
    });
    this.#unfollow = [
      ...feedNames.map((name) => feeds[name].follow(davitRoot, this.#listenerOf(name))),
      ...(wanted === undefined ? [] : [wanted.onChecked((demand) => this.outbox.post({ kind: "checked", demand }))]),
    ];
  }

  /** Why the thread ended, without any text of a user. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Sends what the documents sent so far are worth. */
  sendState(): void {
    const { clock, state } = this.#options;
    this.outbox.post({ kind: "state", ...state(), isOpen: this.#isOpen(), sentAtMs: clock.monotonicMs() });
  }

  /** Ends the thread when its requests are answered, or after `stopLimitMs`. */
  stop(): void {
    this.outbox.post({ kind: "stop" });
    void this.#options.clock.sleep(stopLimitMs, this.#hasEnded.signal).then(() => this.#worker.terminate());
  }

  #listenerOf(feed: FeedName): FeedListener {
    const listener = this.outbox.listener(feed);
    const replaced: FeedListener["replaced"] = (documents) => {
      listener.replaced(documents);
      this.sendState();
    };
    return { ...listener, replaced };
  }

  #take(message: FromThread): void {
    switch (message.kind) {
      case "listening":
        this.#isListening = true;
        this.#options.metrics.bootThreads.inc();
        return;
      case "events":
        for (const event of message.events) this.#takeRequest(event);
        return;
      case "question":
        void answerTo(this.#options.answers, message, this.#answering(message));
        return;
      case "counts":
        for (const change of message.changes) this.#count(change);
        return;
      case "log":
        this.#options.log.child({ part: message.part })[message.level](message.data, message.message);
    }
  }

  #answering({ name: question }: ThreadQuestion): Parameters<typeof answerTo>[2] {
    const { log } = this.#options;
    return {
      post: (answer) => this.outbox.post(answer),
      failed: (error) => log.error({ question, why: faultOf(error) }, "question of a boot thread failed"),
    };
  }

  #count(change: CountedChange): void {
    this.#options.metrics.add(change);
    if (!change.isGauge) return;
    const key = `${change.name} ${JSON.stringify(change.labels)}`;
    this.#gauges.set(key, { ...change, by: change.by + (this.#gauges.get(key)?.by ?? 0) });
  }

  #end(): void {
    this.#hasEnded.abort();
    for (const unfollow of this.#unfollow) unfollow();
    this.outbox.close();
    for (const gauge of this.#gauges.values()) this.#options.metrics.add({ ...gauge, by: -gauge.by });
    if (this.#isListening) this.#options.metrics.bootThreads.dec();
  }
}

interface ThreadStartOptions {
  readonly config: ServiceConfig;
  /** Where the first thread listens. */
  readonly bound: BoundAddresses;
  readonly desk: PermitDesk | undefined;
  readonly fetchesAssets: boolean;
  readonly signers: OpenedSigners;
  /** Undefined: davit does not listen for HTTPS. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined;
}

/** What a boot thread gets at its start. It contains no secret. */
export type ThreadStart = ReturnType<typeof threadStart>;

/** Selects what a thread needs. Most options are not for threads, and passphrases stay in the first thread. */
export function threadStart({ config, bound, desk, fetchesAssets, signers, certificate }: ThreadStartOptions) {
  return {
    config: {
      ...listenerConfig(config),
      // The addresses and the certificate of the first thread.
      ...bound,
      bootTlsCertFile: certificate?.certFile,
      bootTlsKeyFile: certificate?.keyFile,
      secretsKeyFile: config.secretsKeyFile,
    },
    /** The armored public key of each signer that davit has. */
    publicKeys: { signer: signers.signer?.publicKey, grubSigner: signers.grubSigner?.publicKey },
    /** False if the first thread has no desk. Then installs that need a permit are refused. */
    hasDesk: desk !== undefined,
    /** True if davit fetches the assets of Profiles. Then it serves only these under their names. */
    fetchesAssets,
  };
}

/** Copying this many documents takes one or two milliseconds. */
const sliceSize = 500;

/**
 * Sends messages to a boot thread in order. All documents of a store go in slices, so that copying 100,000 of them does
 * not delay the answers of the first thread. Later messages wait until all slices are sent.
 */
export class Outbox {
  readonly #send: (message: ToThread) => void;
  #waiting: ToThread[] = [];
  #isClosed = false;

  constructor(send: (message: ToThread) => void) {
    this.#send = send;
  }

  post(message: ToThread): void {
    if (this.#isClosed) return;
    if (this.#waiting.length === 0) this.#send(message);
    else this.#waiting.push(message);
  }

  /** Returns a listener that sends what a feed reports. */
  listener(feed: FeedName): FeedListener {
    return {
      replaced: (texts) => this.#postAll(feed, [...texts]),
      changed: (changes: readonly DocumentChange[]) => this.post({ kind: "changes", feed, changes }),
    };
  }

  /** Drops the messages that wait, and all later ones. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
  }

  #postAll(feed: FeedName, all: readonly (readonly [string, string])[]): void {
    if (this.#isClosed) return;
    const isFirst = this.#waiting.length === 0;
    for (let at = 0; at === 0 || at < all.length; at += sliceSize) {
      const isLast = at + sliceSize >= all.length;
      this.#waiting.push({ kind: "documents", feed, documents: all.slice(at, at + sliceSize), isLast });
    }
    if (isFirst) setImmediate(() => this.#work());
  }

  #work(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#send(next);
    if (this.#waiting.length > 0) setImmediate(() => this.#work());
  }
}
