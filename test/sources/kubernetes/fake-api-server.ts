/**
 * An API server in the test's own process: real HTTP, real lists and watches over objects that a test changes, and
 * whatever misbehaviour a test asks for. It does not validate; the suites with a real API server are for that.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { isJsonObject, type JsonObject } from "../../../src/model/json.ts";
import { placeOf, readRequest, type SeenRequest } from "./fake-request.ts";

/** What a test gives; the server adds what every object carries. */
export interface NewObject {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** `spec`, `data` and so on. */
  readonly content?: JsonObject;
}

/** Takes over an answer. */
export type Handler = (request: SeenRequest, response: ServerResponse) => void;

interface OpenWatch {
  readonly request: SeenRequest;
  readonly response: ServerResponse;
  /** Lines that are held back; undefined where they are sent. */
  late?: string[];
}

export interface FakeCopy {
  readonly objects: ReadonlyMap<string, JsonObject>;
  readonly version: number;
}

interface LoggedEvent {
  readonly version: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: JsonObject;
}

const plurals: Readonly<Record<string, string>> = {
  Profile: "profiles",
  Group: "groups",
  Machine: "machines",
  ConfigMap: "configmaps",
  Secret: "secrets",
};

export class FakeApiServer {
  readonly requests: SeenRequest[] = [];
  readonly events: JsonObject[] = [];
  /** Namespaces that do not exist, in which nothing can be created: they list as empty ones. */
  readonly missingNamespaces = new Set<string>();
  /** False: its bookmarks lag, as where etcd does not report its progress. */
  sendsLastBookmarks = true;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #objects = new Map<string, JsonObject>();
  readonly #history: LoggedEvent[] = [];
  readonly #watches = new Set<OpenWatch>();
  readonly #once: { readonly kind: SeenRequest["kind"]; readonly path: RegExp; readonly handler: Handler }[] = [];
  readonly #always: { readonly path: RegExp; readonly handler: Handler }[] = [];
  #version = 100;
  #uids = 0;
  /** Versions up to this one are forgotten. */
  #compacted = 0;

  static async start(): Promise<FakeApiServer> {
    const fake = new FakeApiServer();
    await new Promise<void>((resolve) => fake.#server.listen(0, "127.0.0.1", resolve));
    return fake;
  }

  private constructor() {
    this.#server = createServer((request, response) => void this.#take(request, response));
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  get version(): string {
    return String(this.#version);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Requests of a kind so far, on paths that match. */
  seen(kind: SeenRequest["kind"], path = /./): readonly SeenRequest[] {
    return this.requests.filter((request) => request.kind === kind && path.test(request.path));
  }

  /** Answers the next request of a kind (on a path) in another way; handlers queue up. */
  once(kind: SeenRequest["kind"], handler: Handler, path = /./): void {
    this.#once.push({ kind, path, handler });
  }

  /** Answers every request to a path in another way, until the returned function is called. */
  always(path: RegExp, handler: Handler): () => void {
    const entry = { path, handler };
    this.#always.push(entry);
    return () => void this.#always.splice(this.#always.indexOf(entry), 1);
  }

  /** Adds an object or changes it; open watches hear of it. */
  put({ kind, name, namespace = "default", uid, generation = 1, content = {}, ...given }: NewObject): JsonObject {
    const { labels, annotations } = given;
    const key = `${plurals[kind]}/${namespace}/${name}`;
    const before = this.#objects.get(key);
    const known = metadataOf(before);
    this.#version += 1;
    const metadata = {
      name,
      namespace,
      uid: uid ?? (typeof known.uid === "string" ? known.uid : `uid-${++this.#uids}`),
      resourceVersion: this.version,
      generation,
      ...(labels && { labels: { ...labels } }),
      ...(annotations && { annotations: { ...annotations } }),
    };
    const status = before?.status;
    const object: JsonObject = { ...content, metadata, ...(status !== undefined && { status }) };
    this.#objects.set(key, object);
    this.#log(before === undefined ? "ADDED" : "MODIFIED", kind, object);
    return object;
  }

  delete(kind: string, name: string, namespace = "default"): void {
    const key = `${plurals[kind]}/${namespace}/${name}`;
    const object = this.#objects.get(key);
    if (object === undefined) return;
    this.#objects.delete(key);
    this.#version += 1;
    const metadata = { ...metadataOf(object), resourceVersion: this.version };
    this.#log("DELETED", kind, { ...object, metadata });
  }

  object(kind: string, name: string, namespace = "default"): JsonObject | undefined {
    return this.#objects.get(`${plurals[kind]}/${namespace}/${name}`);
  }

  /** Forgets the history: watches from before get 410. */
  compact(): void {
    this.#compacted = this.#version;
  }

  /** What it holds now, to go back to. */
  copy(): FakeCopy {
    return { objects: new Map(this.#objects), version: this.#version };
  }

  /** Goes back to an older state, as with a restored etcd: connections break, and older versions come again. */
  restore({ objects, version }: FakeCopy): void {
    this.#objects.clear();
    for (const [key, object] of objects) this.#objects.set(key, object);
    this.#history.length = 0;
    this.#version = version;
    this.cut();
  }

  /** Sends every open watch a bookmark of the version that is now. */
  bookmark(): void {
    for (const open of this.#watches) writeEvent(open, "BOOKMARK", bookmarkOf(this.version));
  }

  /** From now on holds back every line of the watches of a path that are open now, as a slow connection does. */
  stall(path = /./): void {
    for (const open of this.#watches) if (path.test(open.request.path)) open.late ??= [];
  }

  /** Sends the first line that each stalled watch holds back. */
  trickle(): void {
    for (const { response, late = [] } of this.#watches) response.write(late.shift() ?? "");
  }

  /** Writes to every open watch as it is. */
  write(bytes: string | Uint8Array): void {
    for (const { response } of this.#watches) response.write(bytes);
  }

  /** Ends the open watches of a path in good order; all of them by default. */
  endWatches(path = /./): void {
    for (const open of [...this.#watches].filter(({ request }) => path.test(request.path))) {
      open.response.end();
      this.#watches.delete(open);
    }
  }

  /** Resets every connection. */
  cut(path?: RegExp): void {
    const watches = [...this.#watches].filter(({ request }) => path?.test(request.path));
    const sockets = path === undefined ? [...this.#sockets] : watches.map(({ response }) => response.socket);
    for (const socket of sockets) socket?.resetAndDestroy();
  }

  async #take(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(incoming);
    this.requests.push(request);
    const { kind, path } = request;
    const at = this.#once.findIndex((entry) => entry.kind === kind && entry.path.test(path));
    const [planned] = at < 0 ? [] : this.#once.splice(at, 1);
    const handler = planned ?? this.#always.find((entry) => entry.path.test(path));
    if (handler === undefined) this.answer(request, response);
    else handler.handler(request, response);
  }

  /** Answers as an API server does; a handler of a test may leave it at that. */
  answer(request: SeenRequest, response: ServerResponse): void {
    switch (request.kind) {
      case "list":
      case "look":
        this.#list(request, response);
        return;
      case "watch":
        this.#watch(request, response);
        return;
      case "post":
        this.#create(request, response);
        return;
      default:
        this.#one(request, response);
    }
  }

  #create({ path, query, body = {} }: SeenRequest, response: ServerResponse): void {
    const isThere = !this.missingNamespaces.has(placeOf(path).namespace ?? "");
    if (isThere && !query.has("dryRun")) this.events.push(body);
    if (isThere) sendJson(response, 201, body);
    else sendStatus(response, 404, "NotFound");
  }

  #one({ kind, path, body }: SeenRequest, response: ServerResponse): void {
    const { plural, namespace, name } = placeOf(path);
    const key = `${plural}/${namespace}/${name}`;
    const object = this.#objects.get(key);
    if (object === undefined) {
      sendStatus(response, 404, "NotFound");
      return;
    }
    if (kind === "get") {
      sendJson(response, 200, object);
      return;
    }
    const changed = { ...object, ...(body?.status !== undefined && { status: body.status }) };
    if (JSON.stringify(changed) === JSON.stringify(object)) {
      sendJson(response, 200, object);
      return;
    }
    this.#version += 1;
    const written = { ...changed, metadata: { ...metadataOf(object), resourceVersion: this.version } };
    this.#objects.set(key, written);
    sendJson(response, 200, written);
    this.#log("MODIFIED", kindOfPlural(plural), written);
  }

  #list(request: SeenRequest, response: ServerResponse): void {
    const limit = Number(request.query.get("limit") ?? "0") || Number.MAX_SAFE_INTEGER;
    const [version = this.version, from = "0"] = (request.query.get("continue") ?? "").split("/").filter(Boolean);
    const all = [...this.#objects]
      .filter(([key, object]) => isWanted(request, key, object))
      .map(([, object]) => object);
    const end = Number(from) + limit;
    const items = all.slice(Number(from), end).map((object) => shown(request, object));
    const place = end < all.length ? { continue: `${version}/${end}` } : {};
    sendJson(response, 200, { kind: "List", metadata: { resourceVersion: version, ...place }, items });
  }

  #watch(request: SeenRequest, response: ServerResponse): void {
    const from = Number(request.query.get("resourceVersion"));
    if (from < this.#compacted) {
      sendStatus(response, 410, "Expired");
      return;
    }
    this.openWatch(request, response);
    const open = { request, response };
    for (const event of this.#history) if (event.version > from) this.#tell(open, event);
    // A bookmark comes two seconds before the end that the watch has asked for.
    const isShort = Number(request.query.get("timeoutSeconds")) <= 8;
    if (isShort && this.sendsLastBookmarks) writeEvent(open, "BOOKMARK", bookmarkOf(this.version));
  }

  /** The head of a watch's answer; a handler of a test may send it, too. */
  openWatch(request: SeenRequest, response: ServerResponse): void {
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    const open = { request, response };
    this.#watches.add(open);
    response.on("close", () => this.#watches.delete(open));
  }

  #log(type: LoggedEvent["type"], kind: string, object: JsonObject): void {
    const event = { version: this.#version, type, object: { kind, ...object } };
    this.#history.push(event);
    // A watch from a version that is still to come hears nothing before it.
    for (const open of this.#watches) if (event.version > placeIn(open)) this.#tell(open, event);
  }

  #tell(open: OpenWatch, { type, object }: LoggedEvent): void {
    const { request } = open;
    const { kind } = object;
    const { namespace, name } = metadataOf(object);
    if (typeof kind !== "string") return;
    if (isWanted(request, `${plurals[kind]}/${namespace}/${name}`, object)) {
      writeEvent(open, type, shown(request, object));
    }
  }
}

function placeIn({ request }: OpenWatch): number {
  return Number(request.query.get("resourceVersion"));
}

/** A watch event as a line. */
export function eventLine(type: string, object: JsonObject): string {
  return `${JSON.stringify({ type, object })}\n`;
}

function writeEvent({ response, late }: OpenWatch, type: string, object: JsonObject): void {
  const line = eventLine(type, object);
  if (late === undefined) response.write(line);
  else late.push(line);
}

export function bookmarkOf(resourceVersion: string): JsonObject {
  return { metadata: { resourceVersion } };
}

const denied = 'it is forbidden: User "davit" cannot do resource "it" in API group ""';

/** A failure as the API server tells it. */
export function statusOf(code: number, reason: string): JsonObject {
  const message = code === 403 ? denied : "told";
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
}

export function sendStatus(
  response: ServerResponse,
  code: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendJson(response, code, statusOf(code, reason), headers);
}

/** Answers with a failure, whatever is asked. */
export function answers(code: number, reason = "Whatever", headers: Readonly<Record<string, string>> = {}): Handler {
  return (_, response) => sendStatus(response, code, reason, headers);
}

function sendJson(response: ServerResponse, code: number, value: JsonObject, headers = {}): void {
  response.writeHead(code, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
}

function kindOfPlural(plural: string | undefined): string {
  return Object.entries(plurals).find(([, known]) => known === plural)?.[0] ?? "";
}

function isWanted({ path, query }: SeenRequest, key: string, object: JsonObject): boolean {
  const { namespace, plural } = placeOf(path);
  const prefix = namespace === undefined ? `${plural}/` : `${plural}/${namespace}/`;
  const selected = /^metadata\.name=(.*)$/.exec(query.get("fieldSelector") ?? "")?.[1];
  return key.startsWith(prefix) && (selected === undefined || metadataOf(object).name === selected);
}

/** As the API server does for who wants nothing but metadata. */
function shown({ headers }: SeenRequest, object: JsonObject): JsonObject {
  const isPartial = headers.accept?.includes("as=PartialObjectMetadata") === true;
  return isPartial ? { kind: "PartialObjectMetadata", metadata: metadataOf(object) } : object;
}

function metadataOf(object: JsonObject | undefined): JsonObject {
  return isJsonObject(object?.metadata) ? object.metadata : {};
}
