/** A followed resource, and the requests for it. */

import type { ApiRequest } from "../client/client.ts";
import type { Resource } from "../client/resources.ts";

export interface WatchTarget {
  /** For the log: `groups in rack-4`. */
  readonly what: string;
  readonly resource: Resource;
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  /** The name of a single object. */
  readonly name?: string;
  /** The collection's path. */
  readonly path: string;
  /** True to request only the metadata of the objects. */
  readonly metadataOnly?: boolean;
}

/** Makes a request for the collection: with `watch` in its query for a watch, else for a list. */
export function requestFor(
  { path, name, metadataOnly = false }: WatchTarget,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): ApiRequest {
  return {
    path,
    query: { ...query, ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }) },
    ...(metadataOnly && { accept: query.watch === undefined ? acceptMetadataList : acceptMetadata }),
    signal,
  };
}

const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
