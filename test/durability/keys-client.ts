/** A client of the key API with one connection, which it keeps: one request at a time. */

import { codeOf } from "../../src/lib/errors.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { agentFor, type BegunAnswer, sendRaw } from "../helpers/raw-request.ts";

export interface KeysAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: JsonObject;
}

export interface KeysCall {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** A key without characters that a target escapes, or with them escaped. */
  readonly path: string;
  readonly fields?: Readonly<Record<string, string>>;
}

/** What is stored under a key that is no directory. */
export interface StoredKey {
  readonly value: string;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
  readonly expiration?: string;
}

export class KeysClient {
  readonly #port: number;
  readonly #agent = agentFor();

  constructor(storeUrl: string) {
    this.#port = Number(new URL(storeUrl).port);
  }

  /** @returns undefined when the connection broke before the whole answer was there. */
  async send(call: KeysCall): Promise<KeysAnswer | undefined> {
    try {
      const { status, headers, body } = await (await this.begin(call)).whole();
      return { status, headers, body: parseJsonObject(body) ?? {} };
    } catch (error) {
      if (isBroken(error)) return undefined;
      throw error;
    }
  }

  /** Resolves with the head of the answer. @throws when the connection breaks. */
  begin({ method, path, fields = {} }: KeysCall): Promise<BegunAnswer> {
    const words = String(new URLSearchParams(fields));
    const isForm = method === "PUT" || method === "POST";
    return sendRaw({
      port: this.#port,
      agent: this.#agent,
      method,
      target: `/v2/keys${path}${isForm || words === "" ? "" : `?${words}`}`,
      ...(isForm && { headers: { "content-type": "application/x-www-form-urlencoded" }, body: words }),
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** True for what a client is told when the process at the other end is gone. */
export function isBroken(error: unknown): boolean {
  return ["ECONNRESET", "ECONNREFUSED", "EPIPE"].includes(codeOf(error) ?? "");
}

/** Everything at and below an answer's node that is no directory, by its key. */
export function keysIn(answer: KeysAnswer): ReadonlyMap<string, StoredKey> {
  const keys = new Map<string, StoredKey>();
  const open = [answer.body.node];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (!isJsonObject(node)) throw new Error("A node is an object");
    if (Array.isArray(node.nodes)) open.push(...node.nodes);
    else if (node.dir !== true) keys.set(String(node.key), storedKey(node));
  }
  return keys;
}

/** @throws {Error} for something else than a key's node. */
export function storedKey(node: unknown): StoredKey {
  const { value, createdIndex, modifiedIndex, expiration } = isJsonObject(node) ? node : {};
  if (typeof value !== "string" || typeof createdIndex !== "number" || typeof modifiedIndex !== "number") {
    throw new Error(`Not a key: ${JSON.stringify(node)?.slice(0, 200)}`);
  }
  return { value, createdIndex, modifiedIndex, ...(typeof expiration === "string" && { expiration }) };
}
