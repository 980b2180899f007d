/**
 * The mark of the ledger in a cluster: a ConfigMap with the ledger's id and an index that its store has reached. It is
 * outside the store, so a store that was rolled back is recognised.
 *
 * The ConfigMap belongs to one ledger at a time. Every write names the version that it replaces, so a slower writer
 * never puts back an older mark.
 */

import type { Clock } from "../../lib/clock.ts";
import { Deadline } from "../../lib/deadline.ts";
import { isJsonObject, type JsonObject, objectOf } from "../../model/json.ts";
import { ApiError } from "./client/api-error.ts";
import type { ApiClient } from "./client/client.ts";
import { collectionPath, objectPath, resources } from "./client/resources.ts";

interface ConfigMapMarkOptions {
  readonly client: Pick<ApiClient, "json">;
  readonly clock: Clock;
  /** davit's own namespace. */
  readonly namespace: string;
  /** The name of the ConfigMap. No davit with another ledger may use it. */
  readonly name: string;
}

/** What the ConfigMap says. */
interface MarkedLedger {
  readonly id: string;
  readonly index: number;
}

interface FoundMark {
  /** Undefined for a ConfigMap without a mark, as the chart makes it. */
  readonly mark: MarkedLedger | undefined;
  readonly resourceVersion: string;
}

// Machines wait for a claim for a second, and then ask again.
const timeoutMs = 5_000;
/** More conflicts than this in a row mean that another ledger writes, too. */
const maxAttempts = 4;

export class ConfigMapMark {
  /** At most five writes a second reach the API server. */
  readonly pauseMs = 200;
  readonly #options: ConfigMapMarkOptions;
  readonly #stopping = new AbortController();
  /** What the last read or write found; undefined if it must be read. */
  #found: FoundMark | undefined;
  /** The ledger whose mark this process has written or seen. */
  #ownId: string | undefined;

  constructor(options: ConfigMapMarkOptions) {
    this.#options = options;
  }

  /**
   * Returns the mark; undefined if there is none.
   * @throws {ApiError} if it is not known: the API server cannot be reached, or the ConfigMap has something else.
   */
  async read(): Promise<MarkedLedger | undefined> {
    const found = await this.#read();
    this.#found = found;
    return found?.mark;
  }

  /**
   * Writes the mark of a ledger. A higher index of the same ledger stays. The first write of a ledger replaces the mark
   * of a former one. After that, a mark of another ledger is an error: two davits with different stores write it.
   * @throws {ApiError} if the mark may not have been written.
   */
  async write(id: string, index: number): Promise<void> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const found = this.#found ?? (await this.#read());
      const mark = found?.mark;
      if (mark?.id === id && mark.index >= index) {
        this.#remember(id, found);
        return;
      }
      if (mark !== undefined && mark.id !== id && this.#ownId === id) {
        this.#found = undefined;
        throw new ApiError("protocol", { what: `ConfigMap ${this.#options.name} has the mark of another ledger` });
      }
      const written = await this.#tryWrite({ id, index }, found);
      if (written !== undefined) {
        this.#remember(id, written);
        return;
      }
      this.#found = undefined;
    }
    throw new ApiError("answered", { status: 409, what: "Conflict" });
  }

  /** Ends requests that are under way; idempotent. */
  stop(): void {
    this.#stopping.abort();
  }

  #remember(id: string, found: FoundMark | undefined): void {
    this.#ownId = id;
    this.#found = found;
  }

  async #read(): Promise<FoundMark | undefined> {
    const { namespace, name } = this.#options;
    const path = objectPath(resources.ConfigMap, namespace, name);
    try {
      return foundMark(await this.#ask({ path }), name);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** @returns undefined if the ConfigMap has changed meanwhile. */
  async #tryWrite({ id, index }: MarkedLedger, found: FoundMark | undefined): Promise<FoundMark | undefined> {
    const { namespace, name } = this.#options;
    const data = { id, index: String(index) };
    try {
      if (found === undefined) {
        const { apiVersion, kind } = resources.ConfigMap;
        const value = { apiVersion, kind, metadata: { namespace, name }, data };
        const path = collectionPath(resources.ConfigMap, namespace);
        const body = { contentType: "application/json", value } as const;
        return foundMark(await this.#ask({ method: "POST", path, body }), name);
      }
      const path = objectPath(resources.ConfigMap, namespace, name);
      // The version is a condition: the API server refuses the patch if the ConfigMap has another one.
      const value = { metadata: { resourceVersion: found.resourceVersion }, data };
      const body = { contentType: "application/merge-patch+json", value };
      return foundMark(await this.#ask({ method: "PATCH", path, body }), name);
    } catch (error) {
      this.#found = undefined;
      // 404: somebody has removed the ConfigMap. The next attempt reads again.
      if (error instanceof ApiError && (error.status === 409 || error.status === 404)) return undefined;
      throw error;
    }
  }

  async #ask(request: Omit<Parameters<ApiClient["json"]>[0], "signal">): Promise<JsonObject> {
    const { client, clock } = this.#options;
    const deadline = new Deadline({ clock, durationMs: timeoutMs });
    try {
      const signal = AbortSignal.any([this.#stopping.signal, deadline.signal]);
      return await client.json({ query: { fieldManager: "davit-ledger" }, ...request, signal, retries: 0 });
    } finally {
      deadline.cancel();
    }
  }
}

/** @throws {ApiError} if the object has no version, or something that is no mark. */
function foundMark({ metadata, data }: JsonObject, name: string): FoundMark {
  const resourceVersion = isJsonObject(metadata) ? metadata.resourceVersion : undefined;
  if (typeof resourceVersion !== "string") throw new ApiError("protocol", { what: "an object without a version" });
  const { id, index } = objectOf(data);
  if (id === undefined && index === undefined) return { mark: undefined, resourceVersion };
  if (typeof id !== "string" || !/^[0-9a-f]{8}$/.test(id) || typeof index !== "string" || !/^\d{1,15}$/.test(index)) {
    throw new ApiError("protocol", { what: `ConfigMap ${name} has no mark that davit can read` });
  }
  return { mark: { id, index: Number(index) }, resourceVersion };
}
