/**
 * Creates Machine objects for machines that a Group enrolls, and removes those that are unchanged. Such a Machine is
 * pending: it approves and grants nothing until a person changes it.
 */

import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { ApiError } from "./client/api-error.ts";
import type { ApiClient } from "./client/client.ts";
import { collectionPath, objectPath, resources } from "./client/resources.ts";

/** The label of a Machine that davit has created. */
const pendingLabel = "davit.dev/pending";

interface PendingIdentity {
  readonly uuid?: string;
  readonly macs?: readonly string[];
}

/** The Machine to create. */
interface NewMachine {
  readonly namespace: string;
  readonly name: string;
  readonly identity: PendingIdentity;
}

/** A Machine that may be removed. */
interface PendingName {
  readonly namespace: string;
  readonly name: string;
}

export class MachineCreator {
  readonly #client: Pick<ApiClient, "json">;
  readonly #stopping = new AbortController();

  constructor({ client }: { readonly client: Pick<ApiClient, "json"> }) {
    this.#client = client;
  }

  /**
   * Creates a pending Machine. `exists` means that there is a Machine of this name, which stays as it is.
   * @throws {ApiError} if the API server cannot be reached or refuses.
   */
  async create({ namespace, name, identity }: NewMachine): Promise<"created" | "exists"> {
    const { apiVersion, kind } = resources.Machine;
    const metadata = { namespace, name, labels: { [pendingLabel]: "true" } };
    try {
      await this.#client.json({
        method: "POST",
        path: collectionPath(resources.Machine, namespace),
        query: { fieldManager: "davit-enrolment" },
        body: { contentType: "application/json", value: { apiVersion, kind, metadata, spec: { identity } } },
        signal: this.#stopping.signal,
        retries: 0,
      });
      return "created";
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) return "exists";
      throw error;
    }
  }

  /**
   * Deletes a Machine unless somebody has changed it since `create`. The API server checks that it is still the version
   * that davit has looked at, so a change in between keeps the Machine.
   * @throws {ApiError} if the API server cannot be reached or refuses.
   */
  async deleteUntouched({ namespace, name }: PendingName): Promise<"deleted" | "touched" | "gone"> {
    const path = objectPath(resources.Machine, namespace, name);
    const { signal } = this.#stopping;
    try {
      const preconditions = preconditionsOf(await this.#client.json({ path, signal }));
      if (preconditions === undefined) return "touched";
      const value = { apiVersion: "v1", kind: "DeleteOptions", preconditions };
      const body = { contentType: "application/json", value };
      await this.#client.json({ method: "DELETE", path, body, signal, retries: 0 });
      return "deleted";
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return "gone";
      if (error instanceof ApiError && error.status === 409) return "touched";
      throw error;
    }
  }

  /** Ends requests that are under way; idempotent. */
  stop(): void {
    this.#stopping.abort();
  }
}

/** Returns the version of an untouched Machine; undefined for a touched one. Only its status may have changed. */
function preconditionsOf({ metadata, spec }: JsonObject): object | undefined {
  if (!isJsonObject(metadata) || !isJsonObject(spec)) return undefined;
  const { uid, resourceVersion, generation, labels = {}, annotations = {} } = metadata;
  const { ownerReferences = [], finalizers = [] } = metadata;
  const isOurs = isJsonObject(labels) && labels[pendingLabel] === "true" && Object.keys(labels).length === 1;
  const extras = [annotations, ownerReferences, finalizers].map((each) => Object.keys(each ?? {}).length);
  // The generation counts the changes of the spec.
  const isUntouched = isOurs && generation === 1 && extras.every((count) => count === 0);
  return isUntouched && typeof uid === "string" && typeof resourceVersion === "string"
    ? { uid, resourceVersion }
    : undefined;
}
