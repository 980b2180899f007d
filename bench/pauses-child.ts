/** The helpers of `pauses.ts`, each in a process of its own: one fills a data directory, one asks, one reads listings. */

import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { systemClock } from "../src/lib/clock.ts";
import { diskFiles } from "../src/lib/files/files.ts";
import type { SingleCommand } from "../src/store/command/command.ts";
import { storePath } from "../src/store/core/node.ts";
import { Store } from "../src/store/store.ts";
import { lockDirectory } from "../src/store/wal/lock.ts";
import { FileLog } from "../src/store/wal/wal.ts";
import { silentLog } from "../test/helpers/test-store.ts";
import { answerQuestions } from "./child.ts";
import { RawConnection, requestText } from "./raw-client.ts";

// For each method: a PUT that waits for the disk must not keep a GET from being sent.
const connectionCount = 16;
const directoryCount = 1_000;
const batchLength = 1_000;

let probe: Probe | undefined;

answerQuestions(async (question) => {
  switch (question.kind) {
    case "fill":
      return fill(String(question.directory), Number(question.keys));
    case "begin":
      probe = await Probe.begin(String(question.url), Number(question.keys), Number(question.intervalMs));
      return {};
    case "end":
      return (await probe?.end()) ?? {};
    default:
      return list(String(question.url), String(question.target));
  }
});

const pathOf = (at: number) => `/many/${at % directoryCount}/${at}`;

/** Writes keys of 100 bytes by the store's own hand, and ends it cleanly. */
async function fill(directory: string, keyCount: number): Promise<object> {
  const log = await FileLog.open({
    directory,
    files: diskFiles,
    lock: lockDirectory,
    clock: systemClock,
    random: randomBytes,
    log: silentLog,
  });
  const store = await Store.open({ log, clock: systemClock });
  for (let from = 0; from < keyCount; from += batchLength) {
    const length = Math.min(batchLength, keyCount - from);
    const commands = Array.from({ length }, (_, offset): SingleCommand => {
      return { kind: "set", path: storePath(pathOf(from + offset)), value: "x".repeat(100) };
    });
    await store.submit({ kind: "batch", commands });
  }
  await store.stop();
  return {};
}

/** Asks at a steady rate: what is late for its answer does not make the next request later. */
class Probe {
  readonly #gets: Lane;
  readonly #puts: Lane;

  private constructor(gets: Lane, puts: Lane) {
    this.#gets = gets;
    this.#puts = puts;
  }

  static async begin(url: string, keyCount: number, intervalMs: number): Promise<Probe> {
    const anyKey = () => Math.floor(Math.random() * keyCount);
    const get = () => requestText("GET", `/v2/keys${pathOf(anyKey())}`);
    const form = `value=${"y".repeat(100)}`;
    const put = () => requestText("PUT", `/v2/keys/probe/${anyKey() % directoryCount}`, form);
    return new Probe(await Lane.begin(url, get, intervalMs * 2), await Lane.begin(url, put, intervalMs * 2));
  }

  async end(): Promise<object> {
    return { getsMs: await this.#gets.end(), putsMs: await this.#puts.end() };
  }
}

/** Requests of one kind, on connections of their own. */
class Lane {
  readonly #connections: RawConnection[];
  readonly #request: () => string;
  readonly #intervalMs: number;
  readonly #timer: NodeJS.Timeout;
  readonly #latenciesMs: number[] = [];
  readonly #asked = new Set<Promise<void>>();
  /** When the next request is due. */
  #nextMs = performance.now();

  private constructor(connections: RawConnection[], request: () => string, intervalMs: number) {
    this.#connections = connections;
    this.#request = request;
    this.#intervalMs = intervalMs;
    this.#timer = setInterval(() => this.#sendDue(), intervalMs);
  }

  static async begin(url: string, request: () => string, intervalMs: number): Promise<Lane> {
    const connections = await Promise.all(Array.from({ length: connectionCount }, () => RawConnection.open(url)));
    return new Lane(connections, request, intervalMs);
  }

  async end(): Promise<readonly number[]> {
    clearInterval(this.#timer);
    await Promise.all(this.#asked);
    for (const connection of this.#connections) connection.close();
    return this.#latenciesMs;
  }

  #sendDue(): void {
    for (; this.#nextMs <= performance.now(); this.#nextMs += this.#intervalMs) {
      const connection = this.#connections.shift();
      // All of them wait: the next request is late, and counts as late.
      if (connection === undefined) return;
      const asked = this.#ask(connection, this.#nextMs).finally(() => this.#asked.delete(asked));
      this.#asked.add(asked);
    }
  }

  async #ask(connection: RawConnection, dueMs: number): Promise<void> {
    await connection.ask(this.#request());
    this.#latenciesMs.push(performance.now() - dueMs);
    this.#connections.push(connection);
  }
}

/** Reads a listing to its end as fast as it comes. */
function list(url: string, target: string): Promise<object> {
  const { hostname, port } = new URL(url);
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    let bytes = 0;
    let end = "";
    const socket = connect({ host: hostname, port: Number(port) });
    socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    socket.on("data", (chunk) => {
      bytes += chunk.length;
      end = (end + chunk.subarray(-5).toString("latin1")).slice(-5);
    });
    socket.on("error", reject).on("close", () => {
      if (end === "0\r\n\r\n") resolve({ bytes, seconds: (performance.now() - startMs) / 1_000 });
      else reject(new Error(`The listing was cut after ${bytes} bytes`));
    });
  });
}
