/**
 * A client for a resource that the cluster may not know yet, because its CRDs are of an older davit. Such a resource
 * has no objects, so its list is empty instead of an error, and its watch waits until the cluster knows it.
 *
 * The empty list has the version of another resource of davit, which every davit's CRDs have. So it is proven like any
 * list: the API server has answered, and this is its newest version. Once the cluster has known the resource, its
 * absence is an error: somebody removed the CRD, and with it objects that held machines.
 */

import type { Clock } from "../../../lib/clock.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import { ApiError } from "../client/api-error.ts";
import type { ApiClient, ApiRequest } from "../client/client.ts";
import { collectionPath, type Resource, resources } from "../client/resources.ts";

interface UnknownResourceOptions {
  readonly client: Pick<ApiClient, "json" | "watch">;
  readonly clock: Clock;
  readonly resource: Resource;
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
}

/** How often davit looks whether the cluster knows the resource now. */
const lookMs = 5_000;

export class UnknownResource implements Pick<ApiClient, "json" | "watch"> {
  readonly #options: UnknownResourceOptions;
  /** By the last answer. */
  #isAbsent = false;
  /** By the last list. */
  #isUnknown = false;
  #wasKnown = false;

  constructor(options: UnknownResourceOptions) {
    this.#options = options;
  }

  /** True from an empty list in place of an error until a real list was taken in. */
  get isUnknown(): boolean {
    return this.#isUnknown;
  }

  /** Called when a list was taken in. */
  listed(): void {
    this.#isUnknown = this.#isAbsent;
  }

  /** @throws {ApiError} */
  async json(request: ApiRequest): Promise<JsonObject> {
    const { client } = this.#options;
    try {
      const answer = await client.json(request);
      this.#wasKnown = true;
      this.#isAbsent = false;
      return answer;
    } catch (error) {
      if (this.#wasKnown || !(error instanceof ApiError) || error.status !== 404) throw error;
      const version = await this.#otherVersion(request);
      this.#isAbsent = true;
      return { metadata: { resourceVersion: version }, items: [] };
    }
  }

  /** @throws {ApiError} */
  async watch(request: ApiRequest): Promise<AsyncIterable<Buffer>> {
    return this.#isAbsent ? this.#untilKnown(request) : this.#options.client.watch(request);
  }

  /** Yields a bookmark for each look. It ends when the cluster knows the resource, or after the asked time. */
  async *#untilKnown(request: ApiRequest): AsyncIterable<Buffer> {
    const { clock } = this.#options;
    const { signal, query = {} } = request;
    const durationMs = Number(query.timeoutSeconds ?? "300") * 1_000;
    const endMs = clock.monotonicMs() + durationMs;
    while (clock.monotonicMs() < endMs) {
      await clock.sleep(Math.min(lookMs, durationMs / 2), signal);
      signal.throwIfAborted();
      const { metadata = null } = await this.json({ ...request, query: { limit: "1" }, retries: 0 });
      if (!this.#isAbsent) return;
      yield Buffer.from(`${JSON.stringify({ type: "BOOKMARK", object: { metadata } })}\n`);
    }
  }

  /** Returns the newest version of Profiles. @throws {ApiError} also if the cluster does not know them either. */
  async #otherVersion({ signal }: ApiRequest): Promise<string> {
    const { client, namespace } = this.#options;
    const path = collectionPath(resources.Profile, namespace);
    const { metadata } = await client.json({ path, query: { limit: "1" }, signal, retries: 0 });
    const version = isJsonObject(metadata) ? metadata.resourceVersion : undefined;
    if (typeof version !== "string") throw new ApiError("protocol", { what: "the answer is no list" });
    return version;
  }
}

/** For people: what to do while the cluster does not know a resource. */
export function unknownText({ plural, apiVersion }: Resource): string {
  const [group] = apiVersion.split("/");
  return (
    `the cluster does not know ${plural}.${group} (404), so there are none: ` +
    "apply the CRDs of this version of davit, kubectl apply --server-side -f crds/"
  );
}
