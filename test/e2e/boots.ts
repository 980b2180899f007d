/**
 * Machines that boot all the time: each boot is the requests of an iPXE for scripts, kernel and initrd on one connection
 * that it keeps, as iPXE does. They have iPXE's patience and no more: they wait as long as Retry-After says, and connect
 * once more when a connection that was kept turns out to be closed. All else is a failed boot.
 */

import { Agent, type IncomingMessage, request } from "node:http";
import { systemClock } from "../../src/lib/clock.ts";
import { codeOf } from "../../src/lib/errors.ts";

export interface BootsSeen {
  readonly boots: number;
  /** Answers that told a machine to wait. */
  readonly waits: number;
  /** Kept connections that were closed. */
  readonly reconnects: number;
  /** The longest boot. */
  readonly longestMs: number;
  /** What kept machines from booting, in the order of time. */
  readonly failures: readonly string[];
}

const machines = 4;
const pauseMs = 50;
// iPXE gives up on a silent connection after a minute.
const silenceLimitMs = 60_000;

export class Boots {
  readonly #origin: string;
  readonly #paths: readonly string[];
  readonly #stop = new AbortController();
  readonly #done: Promise<unknown>;
  #boots = 0;
  #waits = 0;
  #reconnects = 0;
  #longestMs = 0;
  readonly #failures: string[] = [];

  /** @param paths what one boot asks for, in its order. */
  constructor(origin: string, paths: readonly string[]) {
    this.#origin = origin;
    this.#paths = paths;
    this.#done = Promise.all(Array.from({ length: machines }, () => this.#bootAgainAndAgain()));
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
      longestMs: Math.round(this.#longestMs),
      failures: [...this.#failures],
    };
  }

  async #bootAgainAndAgain(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const startMs = systemClock.monotonicMs();
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      try {
        for (const path of this.#paths) await this.#ask(agent, path);
        this.#boots += 1;
        this.#longestMs = Math.max(this.#longestMs, systemClock.monotonicMs() - startMs);
      } catch (error) {
        this.#failures.push(String(codeOf(error) ?? error));
      } finally {
        agent.destroy();
      }
      await systemClock.sleep(pauseMs, this.#stop.signal);
    }
  }

  async #ask(agent: Agent, path: string): Promise<void> {
    for (;;) {
      const answer = await this.#answer(agent, path);
      if (answer.status === 200) return;
      if (answer.retryAfterSeconds === undefined) throw new Error(`${path} is answered ${answer.status}`);
      this.#waits += 1;
      await systemClock.sleep(answer.retryAfterSeconds * 1_000);
    }
  }

  async #answer(agent: Agent, path: string): Promise<Answer> {
    const url = new URL(path, this.#origin);
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
  for await (const _ of response) {
    // Read to its end; a connection that breaks before is thrown.
  }
  const seconds = Number(response.headers["retry-after"]);
  const mayWait = response.statusCode === 503 && Number.isFinite(seconds);
  return { status: response.statusCode ?? 0, retryAfterSeconds: mayWait ? seconds : undefined };
}
