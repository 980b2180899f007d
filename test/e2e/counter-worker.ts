/**
 * Counts in davit's store from a pod, by compare-and-swap, with several writers and a watcher. It has no imports but
 * Node's, because it runs in davit's image: `counter.ts` puts it there. Each line that it prints is a JSON object.
 *
 * Every value names its operation, so the watcher's chain of events shows whether a write was lost or happened twice.
 */

import { readFileSync } from "node:fs";
import process, { env, exit, stdout } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";

const { STORE_URLS: stores = "", TOKEN_FILE: tokenFile = "" } = env;
const endpoints = stores.split(",");
const counter = "/v2/keys/e2e/counter";
const writers = 3;
const pauseMs = 100;
// davit answers within 7 s whatever etcd does.
const requestLimitMs = 15_000;
const watchLimitMs = 60_000;
const gapMs = 250;
const lookEveryMs = 250;

interface Node {
  readonly value: string;
  readonly modifiedIndex: number;
}

interface Answer {
  readonly status: number;
  readonly errorCode?: number;
  readonly message?: string;
  readonly name?: string;
  readonly node?: Node;
}

// Nothing was sent then.
const notReached = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

const acknowledged = new Map<string, number>();
const unknown = new Set<string>();
const events: Node[] = [];
let conflicts = 0;
let isStopping = false;
let lastMs = Date.now();

function say(line: object): void {
  stdout.write(`${JSON.stringify({ atMs: Date.now(), ...line })}\n`);
}

/** Has every endpoint. It begins with another one than its neighbours, and goes on to the next when one fails. */
class Client {
  readonly name: string;
  #at: number;

  constructor(name: string, at: number) {
    this.name = name;
    this.#at = at;
  }

  /** @throws {Error} when there is no answer, from an endpoint that may have the request. */
  async ask(path: string, body?: Record<string, string>, limitMs = requestLimitMs): Promise<Answer> {
    for (let left = endpoints.length; ; left -= 1) {
      try {
        const answer = await send(`${endpoints[this.#at]}${path}`, body, limitMs);
        if (answer.status >= 500) this.#next();
        return answer;
      } catch (error) {
        this.#next();
        if (left === 1 || !notReached.test(reasonOf(error))) throw error;
        say({ kind: "moved", who: this.name, reason: reasonOf(error) });
      }
    }
  }

  #next(): void {
    this.#at = (this.#at + 1) % endpoints.length;
  }
}

async function send(url: string, body: Record<string, string> | undefined, limitMs: number): Promise<Answer> {
  const headers = { authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}` };
  const form = body && { method: "PUT", body: new URLSearchParams(body) };
  const response = await fetch(url, { ...form, headers, signal: AbortSignal.timeout(limitMs) });
  const text = await response.text();
  // A member that stops ends its watches without an event.
  return { ...(text === "" ? {} : JSON.parse(text)), status: response.status };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error ? String("code" in cause ? cause.code : cause.message) : error.name;
}

/** Asks until there is an answer about the key. What went wrong is printed. */
async function newest(client: Client): Promise<Node> {
  const who = client.name;
  for (;;) {
    try {
      const { status, node, errorCode } = await client.ask(`${counter}?quorum=true`);
      if (status === 200 && node !== undefined) return node;
      say({ kind: "error", who, did: "read", status, errorCode });
    } catch (error) {
      say({ kind: "error", who, did: "read", reason: reasonOf(error) });
    }
    await sleep(pauseMs);
  }
}

async function count(writer: number): Promise<void> {
  const client = new Client(`w${writer}`, writer);
  let known = await newest(client);
  for (let turn = 1; !isStopping; turn += 1) {
    known = (await write(client, known, `${client.name}-${turn}`)) ?? (await newest(client));
    await sleep(pauseMs);
  }
}

/** @returns the new node, or nothing where somebody else was first or the outcome is not known. */
async function write(client: Client, known: Node, operation: string): Promise<Node | undefined> {
  const value = `${Number.parseInt(known.value, 10) + 1} ${operation}`;
  const beganMs = Date.now();
  const failed = (what: object): undefined => {
    unknown.add(operation);
    say({ kind: "error", who: operation, did: "write", ms: Date.now() - beganMs, ...what });
  };
  try {
    const { status, node, errorCode } = await client.ask(`${counter}?prevIndex=${known.modifiedIndex}`, { value });
    if (status === 200 && node !== undefined) {
      acknowledge(operation, node, beganMs);
      return node;
    }
    if (errorCode !== 101) return failed({ status, errorCode });
    conflicts += 1;
    return undefined;
  } catch (error) {
    return failed({ reason: reasonOf(error) });
  }
}

function acknowledge(operation: string, { modifiedIndex }: Node, beganMs: number): void {
  acknowledged.set(operation, modifiedIndex);
  const nowMs = Date.now();
  if (nowMs - lastMs > gapMs) say({ kind: "gap", fromMs: lastMs, ms: nowMs - lastMs });
  if (nowMs - beganMs > gapMs) say({ kind: "slow", who: operation, ms: nowMs - beganMs });
  lastMs = nowMs;
}

/** Collects every event from an index on, at whichever member answers. */
async function watch(fromIndex: number): Promise<never> {
  const client = new Client("watch", 0);
  let next = fromIndex;
  for (;;) {
    try {
      const { status, node, errorCode } = await client.ask(
        `${counter}?wait=true&waitIndex=${next}`,
        undefined,
        watchLimitMs,
      );
      if (status === 200 && node !== undefined) {
        events.push(node);
        next = node.modifiedIndex + 1;
        continue;
      }
      if (status !== 200) say({ kind: "error", who: "watch", did: "watch", status, errorCode });
    } catch (error) {
      say({ kind: "error", who: "watch", did: "watch", reason: reasonOf(error) });
    }
    await sleep(pauseMs);
  }
}

/** Prints each new leader's name, and when there is none. */
async function watchLeader(): Promise<never> {
  const client = new Client("leader", 0);
  let last = "";
  for (;;) {
    const now = await client.ask("/v2/members/leader").then(
      ({ name, message }) => name ?? message ?? "",
      () => last,
    );
    if (now !== last) say({ kind: "leader", name: now });
    last = now;
    await sleep(lookEveryMs);
  }
}

/** What the chain of events has that it should not, or lacks. */
function problems(): readonly string[] {
  const found: string[] = [];
  const at = new Map<string, number>();
  for (const [place, { value, modifiedIndex }] of events.entries()) {
    const [number = "", operation = ""] = value.split(" ");
    if (Number(number) !== place + 1) found.push(`event ${place + 1} has the value ${value}`);
    if (at.has(operation)) found.push(`${operation} happened twice`);
    if (!(acknowledged.has(operation) || unknown.has(operation))) found.push(`nobody did ${operation}`);
    at.set(operation, modifiedIndex);
  }
  for (const [operation, index] of acknowledged) {
    if (at.get(operation) !== index)
      found.push(`${operation} was acknowledged at ${index}, and is at ${at.get(operation)}`);
  }
  return found;
}

async function begin(): Promise<Node> {
  const { node, message } = await new Client("begin", 0).ask(counter, { value: "0" });
  if (node === undefined) throw new Error(`The counter cannot be made: ${message}`);
  return node;
}

process.on("SIGUSR2", () => {
  isStopping = true;
});
const first = await begin();
say({ kind: "begin" });
void watch(first.modifiedIndex + 1);
void watchLeader();
await Promise.all(Array.from({ length: writers }, (_, writer) => count(writer)));
const final = await newest(new Client("end", 0));
while ((events.at(-1)?.modifiedIndex ?? 0) < final.modifiedIndex) await sleep(pauseMs);
const done = events.filter(({ value }) => unknown.has(value.split(" ")[1] ?? "")).length;
say({
  kind: "end",
  count: Number.parseInt(final.value, 10),
  acknowledged: acknowledged.size,
  unknown: unknown.size,
  unknownDone: done,
  conflicts,
  problems: problems().slice(0, 10),
});
exit(0);
