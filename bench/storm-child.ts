/**
 * Machines that are powered on: each has one connection and asks on it for what firmware, kernel and Ignition ask for,
 * with their own request heads. A machine that gets 503 waits as long as Retry-After says, as iPXE does.
 */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { systemClock } from "../src/lib/clock.ts";
import { answerQuestions } from "./child.ts";
import { queryOf } from "./machines.ts";

/** What a machine found: how long each answer took, in the order of the steps, waits for Retry-After not included. */
interface Boot {
  readonly latenciesMs: readonly number[];
  readonly totalMs: number;
  readonly refusals: number;
}

const ipxeHead = (host: string) => `Connection: keep-alive\r\nUser-Agent: iPXE/1.21.1+ (g4e456)\r\nHost: ${host}\r\n`;
const ignitionHead = (host: string) =>
  `Host: ${host}\r\nUser-Agent: Ignition/2.14.0\r\nAccept: application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1\r\nAccept-Encoding: identity\r\n`;

answerQuestions(async ({ port, first, count, startMs, assets }) => {
  const host = `127.0.0.1:${port}`;
  const paths = (Array.isArray(assets) ? assets : []).map(String);
  const boots = await Promise.allSettled(
    Array.from({ length: Number(count) }, async (_, at) => {
      // Spread evenly: what is at random would differ from run to run.
      await systemClock.sleep((at / Number(count)) * Number(startMs));
      return await boot(Number(port), requestsOf(host, Number(first) + at, paths));
    }),
  );
  const errors = boots.flatMap((result) => (result.status === "rejected" ? [String(result.reason)] : []));
  return { boots: boots.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])), errors };
});

/** What a machine sends, one after the other. */
function requestsOf(host: string, machine: number, assets: readonly string[]): readonly string[] {
  const query = queryOf(machine);
  const ipxe = ["/boot.ipxe", `/ipxe?${query}`, ...assets].map((target) => requestOf(target, ipxeHead(host)));
  return [
    ...ipxe,
    requestOf(`/ignition?${query}`, ignitionHead(host)),
    requestOf(`/metadata?${query}`, ipxeHead(host)),
  ];
}

function requestOf(target: string, head: string): string {
  return `GET ${target} HTTP/1.1\r\n${head}\r\n`;
}

/** @throws {Error} for a connection that breaks, and for an answer that is neither 200 nor 503. */
async function boot(port: number, requests: readonly string[]): Promise<Boot> {
  const startedMs = systemClock.monotonicMs();
  const machine = await Machine.connect(port);
  const latenciesMs: number[] = [];
  let refusals = 0;
  try {
    for (let next = 0; next < requests.length; ) {
      const askedMs = systemClock.monotonicMs();
      const { status, retryAfterSeconds } = await machine.ask(requests[next] ?? "");
      if (status === 200) {
        latenciesMs.push(systemClock.monotonicMs() - askedMs);
        next++;
      } else {
        if (status !== 503) throw new Error(`status ${status}`);
        refusals++;
        await systemClock.sleep(retryAfterSeconds * 1_000);
      }
    }
  } finally {
    machine.close();
  }
  return { latenciesMs, totalMs: systemClock.monotonicMs() - startedMs, refusals };
}

interface Answer {
  readonly status: number;
  readonly retryAfterSeconds: number;
}

/** One connection; of a body only the length counts. */
class Machine {
  readonly #socket: Socket;
  #head = "";
  /** Of the body, once the head is whole. */
  #missingBytes: number | undefined;
  #settle: ((error?: Error) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk) => this.#take(chunk));
    socket.on("error", (error) => this.#settle?.(error));
    socket.on("close", () => this.#settle?.(new Error("connection closed before the answer was whole")));
  }

  static async connect(port: number): Promise<Machine> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return new Machine(socket);
  }

  async ask(request: string): Promise<Answer> {
    this.#head = "";
    this.#missingBytes = undefined;
    if (this.#socket.destroyed) throw new Error("connection closed while the machine waited");
    const whole = new Promise<void>((resolve, reject) => {
      this.#settle = (error) => (error === undefined ? resolve() : reject(error));
    });
    this.#socket.write(request, "latin1");
    await whole;
    const status = Number(this.#head.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
    return { status, retryAfterSeconds: Number(/^Retry-After: (\d+)\r$/im.exec(this.#head)?.[1] ?? 1) };
  }

  close(): void {
    this.#settle = undefined;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    if (this.#missingBytes !== undefined) {
      this.#missingBytes -= chunk.length;
    } else {
      const before = this.#head.length;
      const text = this.#head + chunk.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      this.#head = end < 0 ? text : text.slice(0, end + 4);
      if (end < 0) return;
      const lengthBytes = Number(/^Content-Length: (\d+)\r$/im.exec(this.#head)?.[1]);
      this.#missingBytes = lengthBytes - (before + chunk.length - this.#head.length);
    }
    if (this.#missingBytes === 0) this.#settle?.();
    else if (!(this.#missingBytes > 0)) this.#settle?.(new Error("an answer of another length than it says"));
  }
}
