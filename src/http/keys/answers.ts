/**
 * Answers to reads and writes of a key. Clients can neither write davit's own documents, nor read templates of Secrets.
 */

import { davitRoot, secretsRoot } from "../../model/objects/documents.ts";
import { isAtOrBelow, type StorePath, storePath } from "../../store/core/node.ts";
import { refusals, StoreError, type StoreRefusal } from "../../store/core/refusal.ts";
import type { StoreIndexes } from "../../store/replica.ts";
import type { Store } from "../../store/store.ts";
import type { Listing } from "../../store/tree/listing.ts";
import type { Answer } from "../exchange.ts";
import { actionBody, errorBody, eventBody, readBody } from "./json.ts";
import type { KeysRequest } from "./request.ts";

/** A successful read whose body is not made yet. The body may be large. */
export interface BegunListing {
  readonly request: ReadRequest;
  readonly headers: readonly string[];
  /** The receiver must end it. */
  readonly listing: Listing;
}

type ReadRequest = Extract<KeysRequest, { kind: "read" }>;
type WriteRequest = Extract<KeysRequest, { kind: "write" }>;

// The limit that docs/reference/api-kv.md gives to users. etcd limits only its request line.
const maxKeyBytes = 32 * 1024;
// In a listing each level repeats its whole path, so a deep key makes a long answer. etcd takes no deeper key either:
// its request line has at most 4,096 bytes.
const maxKeyDepth = 2_048;

// `/machines` is reserved for the state of machines. davit writes nothing there so far.
const documentsRoot = storePath(davitRoot);
const reservedRoots = [documentsRoot, storePath("/machines")];
const hiddenRoot = storePath(secretsRoot);

/** @throws {StoreError} reserved, for a path to which only davit may write. */
function refuseReserved(path: StorePath, index: number): void {
  if (reservedRoots.some((root) => isAtOrBelow(path, root))) throw new StoreError("reserved", path, index);
}

/** True for a path whose answer may have davit's own documents: that of a document, or of a directory above it. */
function mayHaveDocuments(path: StorePath, store: Pick<Store, "hasDirectory">): boolean {
  return isAtOrBelow(path, documentsRoot) || (isAtOrBelow(documentsRoot, path) && store.hasDirectory(documentsRoot));
}

/** True for a path that clients must see as absent. */
export function isSecret(path: StorePath): boolean {
  return isAtOrBelow(path, hiddenRoot);
}

/** @throws {StoreError} keyNotFound, as for a path that was never written. */
function refuseSecret(path: StorePath, index: number): void {
  if (isSecret(path)) throw new StoreError("keyNotFound", hiddenRoot, index);
}

/**
 * Begins the answer to a read.
 * @throws {StoreError} keyNotFound, notDirectory.
 */
export function beginRead(store: Store, request: ReadRequest): BegunListing {
  const { path, recursive, sorted } = request;
  const { indexes } = store;
  refuseSecret(path, indexes.storeIndex);
  const listing = store.list(path, { recursive, sorted });
  return { request, headers: successHeaders(store, indexes, path), listing };
}

/** Answers the read of a file. Undefined for anything else, which `beginRead` answers. */
export function readFile(store: Store, path: StorePath): Answer | undefined {
  const { indexes } = store;
  if (isSecret(path)) return undefined;
  const node = store.getFile(path);
  if (node === undefined) return undefined;
  return { status: 200, headers: successHeaders(store, indexes, path), body: readBody(node) };
}

/**
 * Resolves when the write is on disk.
 * @param maxValueBytes the longest value that a client may write.
 * @throws {StoreError}
 */
export async function write(
  store: Store,
  { command, hidesNode }: WriteRequest,
  maxValueBytes: number,
): Promise<Answer> {
  if ("value" in command && Buffer.byteLength(command.value) > maxValueBytes) {
    throw new StoreError("invalidForm", `value is longer than ${maxValueBytes} bytes`, 0);
  }
  refuseReserved(command.path, store.indexes.storeIndex);
  const { event, indexes } = await store.submit(command);
  const isNew = event.action === "create" || (event.action === "set" && event.prevNode === undefined);
  return {
    status: isNew ? 201 : 200,
    headers: successHeaders(store, indexes, command.path),
    body: hidesNode ? actionBody(event) : eventBody(event),
  };
}

/** Headers of every answer of the API, so that web pages of other origins can read it. */
export const corsHeaders: readonly string[] = [
  ...["Access-Control-Allow-Origin", "*"],
  ...["Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE"],
  ...["Access-Control-Allow-Headers", "accept, content-type, authorization"],
];

export const jsonHead: readonly string[] = ["Content-Type", "application/json", ...corsHeaders];

/**
 * Headers of a success. Existing clients read the `X-Etcd-*` headers, which repeat davit's own. Web pages of other
 * origins cannot read davit's own documents.
 */
export function successHeaders(
  store: Store,
  { storeIndex, raftIndex, raftTerm }: StoreIndexes,
  path: StorePath,
): readonly string[] {
  const raft = ["X-Raft-Index", String(raftIndex), "X-Raft-Term", String(raftTerm)];
  const head = mayHaveDocuments(path, store) ? jsonHead.slice(0, 2) : jsonHead;
  return [...head, ...storeHeaders(store, storeIndex), ...raft];
}

/** @param challenge the `WWW-Authenticate` header, if any; it comes before the store's headers. */
export function refusalAnswer(
  store: Store,
  error: StoreError,
  challenge: readonly string[] = [],
): Answer & { readonly body: string } {
  const { status, retryAfterSeconds }: StoreRefusal = refusals[error.refusal];
  const retryAfter = retryAfterSeconds === undefined ? [] : ["Retry-After", String(retryAfterSeconds)];
  return {
    status,
    headers: [...jsonHead, ...challenge, ...storeHeaders(store, error.index), ...retryAfter],
    body: errorBody(error),
  };
}

function storeHeaders(store: Store, index: number): readonly string[] {
  const text = String(index);
  const { clusterId } = store.identity;
  return ["X-Store-Index", text, "X-Etcd-Index", text, "X-Store-Cluster-Id", clusterId, "X-Etcd-Cluster-Id", clusterId];
}

/** @throws {StoreError} invalidForm for a path that is too long or too deep for a key. */
export function refuseLongKey(path: string): void {
  // Nearly every path returns here. A name with its slash has at least two UTF-16 units, and a unit takes at most three
  // bytes in UTF-8. So a path of this length exceeds neither limit.
  if (path.length <= 2 * maxKeyDepth) return;
  if (Buffer.byteLength(path) > maxKeyBytes) throw tooLong(`key is longer than ${maxKeyBytes} bytes`);
  if (path.split("/", maxKeyDepth + 2).length > maxKeyDepth + 1) {
    throw tooLong(`key is deeper than ${maxKeyDepth} names`);
  }
}

function tooLong(cause: string): StoreError {
  return new StoreError("invalidForm", cause, 0);
}
