/**
 * One of many clients that write at the same time. It has a directory of its own, keeps one connection, waits for each
 * answer, and knows what its keys must be: after every answer exactly, after a crash but for the write in flight.
 */

import { deepStrictEqual, ok, strictEqual } from "node:assert";
import type { Pick } from "../helpers/fault-files.ts";
import { compare, type Effect, isIn } from "./expected-keys.ts";
import { type KeysAnswer, type KeysCall, type KeysClient, keysIn, type StoredKey, storedKey } from "./keys-client.ts";

interface Operation {
  readonly call: KeysCall;
  readonly effect: Effect;
  /** 200 and 201 are one. */
  readonly status: 200 | 404 | 412;
}

/** What a writer was told. */
export interface Acknowledged {
  readonly index: number;
  readonly action: string;
  readonly path: string;
}

export interface WriterOptions {
  readonly pick: Pick;
  /** Longest value, in characters. */
  readonly maxValueChars: number;
  /** Is told of each write that changed something. */
  readonly onAcknowledged: (write: Acknowledged) => void;
}

export class Writer {
  readonly directory: string;
  readonly #options: WriterOptions;
  #keys = new Map<string, StoredKey>();
  #inFlight: Effect | undefined;
  #index = 0;
  #count = 0;
  /** Writes that were answered with error 300. */
  refused = 0;
  acknowledged = 0;

  constructor(name: string, options: WriterOptions) {
    this.directory = `/w/${name}`;
    this.#options = options;
  }

  /** Writes until it shall not go on, or the connection breaks. */
  async run(client: KeysClient, isOver = () => false): Promise<void> {
    while (!isOver()) {
      const operation = this.#next();
      this.#inFlight = operation.effect;
      const answer = await client.send(operation.call);
      if (answer === undefined) return;
      this.#inFlight = undefined;
      this.#take(operation, answer);
    }
  }

  /**
   * Reads all its keys and compares them with what it knows; what is there is what it goes on from.
   * @throws {Error} when they are not what was acknowledged.
   */
  async check(client: KeysClient): Promise<"found" | "absent" | "none in flight"> {
    const fromMs = Date.now();
    const answer = await client.send({ method: "GET", path: this.directory, fields: { recursive: "true" } });
    ok(answer !== undefined && [200, 404].includes(answer.status), `Reading ${this.directory}: ${answer?.status}`);
    const keys = answer.status === 404 ? new Map<string, StoredKey>() : keysIn(answer);
    const inFlight = this.#inFlight;
    const known = { keys: this.#keys, inFlight, index: this.#index };
    const outcome = compare(known, { keys, fromMs, toMs: Date.now() });
    this.#keys = new Map(keys);
    this.#inFlight = undefined;
    return inFlight === undefined ? "none in flight" : outcome;
  }

  #take({ call, effect, status }: Operation, answer: KeysAnswer): void {
    const isRefused = answer.status === 500 && answer.body.errorCode === 300;
    if (isRefused) {
      this.refused += 1;
      return;
    }
    const found = answer.status === 201 ? 200 : answer.status;
    strictEqual(found, status, `${call.method} ${call.path}: ${JSON.stringify(answer.body).slice(0, 300)}`);
    this.acknowledged += 1;
    if (status !== 200) return;
    const index = this.#apply(effect, answer);
    ok(index > this.#index, `${call.method} ${call.path}: index ${index} after ${this.#index}`);
    this.#index = index;
  }

  /** @returns the index of the change. */
  #apply(effect: Effect, { body }: KeysAnswer): number {
    const node: { key?: unknown; modifiedIndex?: unknown } = Object(body.node);
    const path = String(node.key);
    const index = Number(node.modifiedIndex);
    this.#options.onAcknowledged({ index, action: String(body.action), path });
    if (effect.kind === "remove") {
      strictEqual(path, effect.path);
      for (const key of [...this.#keys.keys()]) if (isIn(key, path)) this.#keys.delete(key);
      return index;
    }
    ok(effect.kind !== "none");
    const expected = effect.kind === "put" ? effect.path : `${effect.directory}/${String(index).padStart(20, "0")}`;
    const stored = storedKey(node);
    deepStrictEqual({ path, value: stored.value }, { path: expected, value: effect.value });
    this.#keys.set(path, stored);
    return index;
  }

  #next(): Operation {
    const { pick } = this.#options;
    this.#count += 1;
    const kind = pick(20);
    if (kind < 8) return this.#set();
    if (kind < 10) return this.#lease();
    if (kind < 14) return this.#swap();
    if (kind < 17) return this.#post();
    return kind < 19 ? this.#remove() : this.#clear();
  }

  #set(): Operation {
    const path = this.#somePath();
    const ttl = this.#options.pick(4) === 0 ? { ttl: "3600" } : {};
    return this.#put(path, ttl);
  }

  /** A key that soon ends by itself. */
  #lease(): Operation {
    const { pick } = this.#options;
    const ttlSeconds = 1 + pick(3);
    const { effect, ...rest } = this.#put(`${this.directory}/lease${pick(3)}`, { ttl: String(ttlSeconds) });
    return { ...rest, effect: { ...effect, endsAtMs: Date.now() + ttlSeconds * 1_000 } };
  }

  /** A compare-and-swap, some of which must be refused. */
  #swap(): Operation {
    const { pick } = this.#options;
    const path = this.#somePath();
    const known = this.#keys.get(path);
    if (known === undefined) return this.#put(path, { prevExist: "false" });
    const conditions = [
      { prevIndex: String(known.modifiedIndex) },
      { prevValue: known.value },
      { prevIndex: String(known.modifiedIndex), prevValue: known.value },
      { prevIndex: String(known.modifiedIndex + 1) },
      { prevExist: "false" },
    ];
    const condition = pick(conditions.length);
    const operation = this.#put(path, conditions[condition]);
    return condition < 3 ? operation : { ...operation, effect: { kind: "none" }, status: 412 };
  }

  #post(): Operation {
    const directory = `${this.directory}/queue`;
    const value = this.#value();
    const call: KeysCall = { method: "POST", path: directory, fields: { value } };
    return { call, effect: { kind: "post", directory, value }, status: 200 };
  }

  #remove(): Operation {
    const path = this.#somePath();
    const known = this.#keys.get(path);
    const call: KeysCall = { method: "DELETE", path };
    if (known === undefined) return { call, effect: { kind: "none" }, status: 404 };
    const isCompared = this.#options.pick(2) === 0;
    const fields = isCompared ? { prevIndex: String(known.modifiedIndex) } : {};
    return { call: { ...call, fields }, effect: { kind: "remove", path }, status: 200 };
  }

  /** Removes the queue with all that is in it. */
  #clear(): Operation {
    const path = `${this.directory}/queue`;
    if (![...this.#keys.keys()].some((key) => isIn(key, path))) return this.#post();
    const call: KeysCall = { method: "DELETE", path, fields: { recursive: "true" } };
    return { call, effect: { kind: "remove", path }, status: 200 };
  }

  #put(path: string, fields: Readonly<Record<string, string>> = {}) {
    const value = this.#value();
    const call: KeysCall = { method: "PUT", path, fields: { ...fields, value } };
    return { call, effect: { kind: "put", path, value }, status: 200 } as const;
  }

  #somePath(): string {
    return `${this.directory}/key${this.#options.pick(6)}`;
  }

  /** A value that no other write has; one of ten is long. */
  #value(): string {
    const { pick, maxValueChars } = this.#options;
    const length = pick(10) === 0 ? pick(maxValueChars) : pick(1 + Math.floor(maxValueChars / 20));
    return `${this.directory} ${this.#count} ${"é".repeat(Math.floor(length / 2))}`;
  }
}
