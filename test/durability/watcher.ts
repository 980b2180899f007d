/**
 * A client that streams every change of the store, over all its crashes: after each it asks again from a little before
 * the last event that it saw. Every index must come, in order and once, and what it saw before must come again alike.
 */

import { ok, strictEqual } from "node:assert";
import { createInterface } from "node:readline";
import { parseJsonObject } from "../../src/model/json.ts";
import { isBroken, type KeysAnswer, type KeysClient } from "./keys-client.ts";
import type { Acknowledged } from "./writer.ts";

// The history has 1,000 events. A start writes fewer than the rest.
const overlap = 50;

export class Watcher {
  /** Every event of this life and the last ones of the one before, by its index. */
  #seen = new Map<number, string>();
  #lastIndex = 0;
  #acknowledged: Acknowledged[] = [];

  /** Index of the last event that it saw. */
  get lastIndex(): number {
    return this.#lastIndex;
  }

  /** Takes what writers were told, to be compared with what it sees. */
  note(write: Acknowledged): void {
    this.#acknowledged.push(write);
  }

  /** Watches until the connection breaks. */
  async run(client: KeysClient): Promise<void> {
    let next = Math.max(1, this.#lastIndex - overlap);
    const fields = { wait: "true", stream: "true", recursive: "true", waitIndex: String(next) };
    try {
      const { response } = await client.begin({ method: "GET", path: "/", fields });
      strictEqual(response.statusCode, 200, `Watching from ${next}`);
      for await (const line of createInterface({ input: response })) {
        this.#see(line, next);
        next += 1;
      }
    } catch (error) {
      if (!isBroken(error)) throw error;
    }
  }

  /** To be called after a crash. @throws {Error} when a writer was told something else than it saw. */
  compare(): void {
    for (const { index, action, path } of this.#acknowledged.filter((write) => write.index <= this.#lastIndex)) {
      const { action: seenAction, node } = parseJsonObject(this.#seen.get(index) ?? "") ?? {};
      const { key: seenPath } = Object(node);
      strictEqual(`${seenAction} ${seenPath}`, `${action} ${path}`, `The event of index ${index}`);
    }
    this.#acknowledged = [];
    this.#seen = new Map([...this.#seen].filter(([index]) => index >= this.#lastIndex - overlap));
  }

  #see(line: string, next: number): void {
    const { node } = parseJsonObject(line) ?? {};
    // The last line may be torn by the crash.
    if (node === undefined) return;
    strictEqual(Object(node).modifiedIndex, next, "Every index has an event, in order");
    if (next <= this.#lastIndex) strictEqual(line, this.#seen.get(next), "What was seen before comes again alike");
    this.#seen.set(next, line);
    this.#lastIndex = Math.max(this.#lastIndex, next);
  }
}

/** Checks the answer to a long poll of everything from an index of long ago. */
export function checkOldWait({ status, headers, body }: KeysAnswer, waitIndex: number): "continued" | "cleared" {
  if (status === 200) {
    strictEqual(Object(body.node).modifiedIndex, waitIndex);
    return "continued";
  }
  strictEqual(`${status} ${body.errorCode}`, "400 401");
  const [, oldest, requested] =
    /^the requested history has been cleared \[(\d+)\/(\d+)\]$/.exec(String(body.cause)) ?? [];
  strictEqual(Number(requested), waitIndex);
  // No more was forgotten than had to be.
  ok(Number(oldest) > waitIndex && Number(headers.get("x-etcd-index")) - Number(oldest) < 1_000);
  return "cleared";
}
