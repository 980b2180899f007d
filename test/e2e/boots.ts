/**
 * Machines that boot all the time: each boot is the requests of an iPXE for scripts, kernel and initrd on one connection
 * that it keeps, as iPXE does. They have iPXE's patience and no more: they wait as long as Retry-After says, and connect
 * once more when a connection that was kept turns out to be closed. All else is a failed boot, unless their firmware
 * begins again: then it is one when they never boot, or get a wrong answer.
 */

import { Agent, type IncomingMessage, request } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { systemClock } from "../../src/lib/clock.ts";
import { codeOf } from "../../src/lib/errors.ts";

export interface BootsSeen {
  readonly boots: number;
  /** Answers that told a machine to wait. */
  readonly waits: number;
  /** Kept connections that were closed. */
  readonly reconnects: number;
  /** Boots whose connection was refused or cut, and that firmware began again. */
  readonly restarts: number;
  /** The longest time in which no machine booted. */
  readonly longestGapMs: number;
  /** The longest boot. */
  readonly longestMs: number;
  /** What kept machines from booting, in the order of time. */
  readonly failures: readonly string[];
}

export interface BootsOptions {
  readonly origin: string;
  /** 4 unless given. */
  readonly machines?: number;
  /** Between two boots of a machine, on average; 50 ms unless given. */
  readonly pauseMs?: number;
  /** How often firmware begins a boot again whose connection is refused or cut; 0 unless given. */
  readonly restarts?: number;
  /** What one boot asks for, in its order. */
  readonly asksOf: (machine: number) => readonly Ask[];
}

export interface Ask {
  readonly path: string;
  /** Called before the request. What it returns judges the answer, and returns what is wrong with it. */
  readonly expect?: () => (text: string) => string | undefined;
}

const restartMs = 1_000;
// iPXE gives up on a silent connection after a minute.
const silenceLimitMs = 60_000;

export class Boots {
  readonly #options: BootsOptions;
  readonly #stop = new AbortController();
  readonly #done: Promise<unknown>;
  #boots = 0;
  #waits = 0;
  #reconnects = 0;
  #restarts = 0;
  #longestMs = 0;
  #longestGapMs = 0;
  #lastMs = systemClock.monotonicMs();
  readonly #failures: string[] = [];

  constructor(options: BootsOptions) {
    this.#options = options;
    const { machines = 4 } = options;
    this.#done = Promise.all(Array.from({ length: machines }, (_, machine) => this.#bootAgainAndAgain(machine)));
  }

  /** Lets the boots that have begun end. */
  async stop(): Promise<BootsSeen> {
    this.#stop.abort();
    await this.#done;
    return this.seen;
  }

  get seen(): BootsSeen {
    return {
      boots: this.#boots,
      waits: this.#waits,
      reconnects: this.#reconnects,
      restarts: this.#restarts,
      longestGapMs: Math.round(this.#longestGapMs),
      longestMs: Math.round(this.#longestMs),
      failures: [...this.#failures],
    };
  }

  async #bootAgainAndAgain(machine: number): Promise<void> {
    const { pauseMs = 50, asksOf } = this.#options;
    const asks = asksOf(machine);
    const pause = () => systemClock.sleep(2 * pauseMs * Math.random(), this.#stop.signal);
    await pause();
    while (!this.#stop.signal.aborted) {
      const startMs = systemClock.monotonicMs();
      try {
        await this.#boot(asks);
        this.#sawBoot(startMs);
      } catch (error) {
        this.#failures.push(String(codeOf(error) ?? error));
      }
      await pause();
    }
  }

  #sawBoot(startMs: number): void {
    const nowMs = systemClock.monotonicMs();
    this.#boots += 1;
    this.#longestMs = Math.max(this.#longestMs, nowMs - startMs);
    this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }

  async #boot(asks: readonly Ask[]): Promise<void> {
    const { restarts = 0 } = this.#options;
    for (let left = restarts; ; left -= 1) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      try {
        for (const each of asks) await this.#ask(agent, each);
        return;
      } catch (error) {
        if (left === 0 || codeOf(error) === undefined) throw error;
        this.#restarts += 1;
        await systemClock.sleep(restartMs);
      } finally {
        agent.destroy();
      }
    }
  }

  async #ask(agent: Agent, { path, expect }: Ask): Promise<void> {
    for (;;) {
      const judge = expect?.();
      const { status, text, retryAfterSeconds } = await this.#answer(agent, path);
      const wrong = status === 200 ? judge?.(text) : undefined;
      if (wrong !== undefined) throw new Error(`${path}: ${wrong}`);
      if (status === 200) return;
      if (retryAfterSeconds === undefined) throw new Error(`${path} is answered ${status}`);
      this.#waits += 1;
      await systemClock.sleep(retryAfterSeconds * 1_000);
    }
  }

  async #answer(agent: Agent, path: string): Promise<Answer> {
    const url = new URL(path, this.#options.origin);
    const first = await ask(agent, url);
    if (first !== "closed") return first;
    this.#reconnects += 1;
    const again = await ask(agent, url);
    if (again === "closed") throw new Error(`${path}: a new connection was closed`);
    return again;
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly retryAfterSeconds: number | undefined;
}

/** `closed` when the connection was kept from an answer before, and is gone. */
async function ask(agent: Agent, url: URL): Promise<Answer | "closed"> {
  const sent = request(url, { agent, signal: AbortSignal.timeout(silenceLimitMs) });
  const begun = new Promise<IncomingMessage>((resolve, reject) => {
    sent.on("response", resolve).on("error", reject).end();
  });
  let response: IncomingMessage;
  try {
    response = await begun;
  } catch (error) {
    if (sent.reusedSocket && codeOf(error) === "ECONNRESET") return "closed";
    throw error;
  }
  // A connection that breaks before its end is thrown.
  const text = await textOf(response);
  const seconds = Number(response.headers["retry-after"]);
  const mayWait = response.statusCode === 503 && Number.isFinite(seconds);
  return { status: response.statusCode ?? 0, text, retryAfterSeconds: mayWait ? seconds : undefined };
}
