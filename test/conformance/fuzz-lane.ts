/**
 * davit and etcd side by side: what is sent goes to both at once, and the next request waits for both answers. So both
 * go through the same states, and what they answer can be compared.
 *
 * A lane is emptied before each sequence: no keys, one index in both, and a history full of the same events. From then
 * on an index means the same in both, and a sequence finds the same whatever was before.
 */

import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { systemClock } from "../../src/lib/clock.ts";
import type { TestServer } from "../helpers/keys-servers.ts";
import { agentFor, type BegunAnswer, type RawAnswer, sendRaw } from "../helpers/raw-request.ts";
import { hiddenTops } from "./fuzz-paths.ts";

export const sides = ["etcd", "davit"] as const;
export type Side = (typeof sides)[number];

export type Pair<Each> = Readonly<Record<Side, Each>>;

export interface AskedRequest {
  readonly method: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
}

/** An answer, and when it was asked for and there: Unix milliseconds. */
export interface TimedAnswer extends RawAnswer {
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

// Of two answers the later one is there within milliseconds: this is for a server that stopped answering.
const answerLimitMs = 20_000;
const manyLimitMs = 120_000;
// On one machine, the clocks of both differ by the steps of their timers.
const presetClockMs = 60;
const writers = 16;
// What a history holds.
const historyEvents = 1_000;

export class Lane {
  readonly #servers: Pair<TestServer>;
  readonly #agents: Pair<ReturnType<typeof agentFor>> = { etcd: agentFor(), davit: agentFor() };

  private constructor(servers: Pair<TestServer>) {
    this.#servers = servers;
  }

  static async start(start: Pair<() => Promise<TestServer>>): Promise<Lane> {
    const etcd = await start.etcd();
    return new Lane({ etcd, davit: await start.davit() });
  }

  /** See `Known`. */
  get clockMs(): number {
    return this.#servers.davit.clockMs ?? presetClockMs;
  }

  /** Sends to both, and reads both answers to their ends. */
  async ask(request: AskedRequest): Promise<Pair<TimedAnswer>> {
    return await this.#both(async (side) => {
      const sentAtMs = systemClock.nowMs();
      const answer = await (await this.begin(side, request)).whole();
      return { ...answer, sentAtMs, answeredAtMs: systemClock.nowMs() };
    });
  }

  /** Sends to one, and reads only the head of the answer. */
  async begin(side: Side, request: AskedRequest): Promise<BegunAnswer> {
    const { port, nextPort = () => Promise.resolve(port) } = this.#servers[side];
    return await limited(
      sendRaw({ ...request, headers: request.headers ?? {}, port: await nextPort(), agent: this.#agents[side] }),
      `${side} did not answer ${request.method} ${request.target}`,
    );
  }

  /** The index of both stores. */
  async indexes(): Promise<Pair<number>> {
    const answers = await this.ask({ method: "GET", target: "/v2/keys/none" });
    return { etcd: indexOf(answers.etcd), davit: indexOf(answers.davit) };
  }

  /**
   * Empties both stores.
   * @param fillsHistory false when nobody will look at what was before; then that stays as it is.
   */
  async empty(fillsHistory = true): Promise<void> {
    await this.#both((side) => this.#removeAll(side));
    const before = await this.indexes();
    const target = Math.max(before.etcd, before.davit) + (fillsHistory ? historyEvents : 0) + 2;
    await this.#both(async (side) => {
      await this.#fill(side, target - before[side] - 1);
      await sendMany(this.#servers[side].port, "DELETE /v2/keys/fill", 1);
    });
    const after = await this.indexes();
    if (after.etcd !== target || after.davit !== target) {
      throw new Error(`The indexes are not ${target} but ${after.etcd} in etcd and ${after.davit} in davit`);
    }
  }

  async stop(): Promise<void> {
    for (const side of sides) this.#agents[side].destroy();
    await this.#both((side) => this.#servers[side].stop());
  }

  async #both<Each>(run: (side: Side) => Promise<Each>): Promise<Pair<Each>> {
    const [etcd, davit] = await Promise.all([run("etcd"), run("davit")]);
    return { etcd, davit };
  }

  /** Writes one key many times. Its order does not matter, so a store that is slow for one writer gets several. */
  async #fill(side: Side, count: number): Promise<void> {
    const counts = Array.from({ length: writers }, (_, at) => Math.floor((count + at) / writers));
    const { port } = this.#servers[side];
    await Promise.all(
      counts.filter((each) => each > 0).map((each) => sendMany(port, "PUT /v2/keys/fill?value=x", each)),
    );
  }

  async #removeAll(side: Side): Promise<void> {
    const list = await (await this.begin(side, { method: "GET", target: "/v2/keys/" })).whole();
    const keys = [...list.body.matchAll(/"key":("(?:[^"\\]|\\.)*")/g)].map(([, key = '""']) => String(JSON.parse(key)));
    for (const key of [...keys, ...hiddenTops.map((name) => `/${name}`)]) {
      const target = `/v2/keys/${encodeURIComponent(key.slice(1))}?recursive=true`;
      await (await this.begin(side, { method: "DELETE", target })).whole();
    }
  }
}

export function indexOf({ headers }: RawAnswer): number {
  return Number(headers.get("x-etcd-index"));
}

/** Sends a request many times over one connection, without waiting for answers in between. */
async function sendMany(port: number, line: string, count: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  const request = `${line} HTTP/1.1\r\nHost: localhost\r\n`;
  socket.write(`${request}\r\n`.repeat(Math.max(0, count - 1)));
  socket.write(`${request}Connection: close\r\n\r\n`);
  await limited(text(socket), `no answers to ${line}`, manyLimitMs);
}

async function limited<Result>(work: Promise<Result>, complaint: string, limitMs = answerLimitMs): Promise<Result> {
  const done = new AbortController();
  const finished = work.then((result) => ({ result }));
  const outcome = await Promise.race([finished, systemClock.sleep(limitMs, done.signal)]).finally(() => done.abort());
  if (!outcome) throw new Error(complaint);
  return outcome.result;
}
