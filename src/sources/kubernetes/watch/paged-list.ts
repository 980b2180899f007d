/**
 * Reads a whole list page by page. All pages show the same version. The token for the next page expires after a few
 * minutes (410). The list then begins again, but only once: a second expiry is a failure.
 */

import { nextTurn, Slices } from "../../../lib/slices.ts";
import { isJsonObject, type JsonObject, objectOf } from "../../../model/json.ts";
import { ApiError } from "../client/api-error.ts";
import type { ApiClient, ApiRequest } from "../client/client.ts";
import type { MirroredObject } from "./mirror.ts";

interface PagedListOptions<Value> {
  readonly client: Pick<ApiClient, "json">;
  readonly request: ApiRequest;
  /** The maximum number of objects in a page. */
  readonly pageSize: number;
  /** Reads an item; undefined for an item that is no object. */
  readonly prepare: (object: JsonObject) => MirroredObject<Value> | undefined;
}

interface ListedObjects<Value> {
  readonly items: readonly MirroredObject<Value>[];
  readonly resourceVersion: string;
}

// Reading an object takes up to a tenth of a millisecond. Between slices davit answers machines.
const itemsPerSlice = 50;

/** Reads all objects of a list. @throws {ApiError} */
export async function pagedList<Value>(options: PagedListOptions<Value>): Promise<ListedObjects<Value>> {
  try {
    return await listOnce(options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 410) throw error;
    return await listOnce(options);
  }
}

async function listOnce<Value>(options: PagedListOptions<Value>): Promise<ListedObjects<Value>> {
  const items: MirroredObject<Value>[] = [];
  const slices = new Slices(itemsPerSlice);
  let version = "";
  for await (const page of pages(options)) {
    version ||= page.resourceVersion;
    for (const object of page.items) {
      items.push(prepareItem(object, options));
      if (slices.isOver(1)) await nextTurn();
    }
  }
  return { items, resourceVersion: version };
}

async function* pages<Value>({ client, request, pageSize }: PagedListOptions<Value>) {
  const query = { ...request.query, limit: String(pageSize) };
  let page = readPage(await client.json({ ...request, query, retries: 0 }));
  yield page;
  while (page.continue !== "") {
    page = readPage(await client.json({ ...request, query: { ...query, continue: page.continue }, retries: 0 }));
    yield page;
  }
}

function prepareItem<Value>(object: unknown, { prepare }: PagedListOptions<Value>): MirroredObject<Value> {
  const held = isJsonObject(object) ? prepare(object) : undefined;
  if (held === undefined) throw new ApiError("protocol", { what: "an item of a list is no object" });
  return held;
}

function readPage({ items, metadata }: JsonObject) {
  const { resourceVersion, continue: place } = objectOf(metadata);
  // A Go server may send an empty list as null.
  const isList = Array.isArray(items) || items === null;
  if (!isList || typeof resourceVersion !== "string" || resourceVersion === "") {
    throw new ApiError("protocol", { what: "the answer is no list" });
  }
  const found: readonly unknown[] = items ?? [];
  return { items: found, resourceVersion, continue: typeof place === "string" ? place : "" };
}
