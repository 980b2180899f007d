/**
 * An API server that holds objects for writers: create, merge patch and delete, with versions and preconditions. It does
 * not validate.
 */

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "../../../src/model/json.ts";

interface Answer {
  readonly status: number;
  readonly body: JsonObject;
}

export interface ObjectRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly contentType: string | undefined;
  readonly body: JsonObject;
}

export class ObjectServer {
  /** By path, such as `/api/v1/namespaces/davit/configmaps/x`. */
  readonly objects = new Map<string, JsonObject>();
  readonly requests: ObjectRequest[] = [];
  /** Called before each request is answered, for changes in between. Its result replaces the answer. */
  before: (request: ObjectRequest) => Answer | undefined = () => undefined;
  readonly #server = createServer((incoming, response) => {
    void readRequest(incoming).then((request) => {
      this.requests.push(request);
      const { status, body } = this.before(request) ?? this.#answer(request);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  });
  #version = 100;

  static async start(): Promise<ObjectServer> {
    const server = new ObjectServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Puts an object there, as somebody else does. */
  put(path: string, object: JsonObject): JsonObject {
    this.#version += 1;
    const [name = ""] = path.split("/").toReversed();
    const metadata = isJsonObject(object.metadata) ? object.metadata : {};
    const known = { name, uid: `uid-${this.#version}`, generation: 1 };
    const whole = { ...object, metadata: { ...known, ...metadata, resourceVersion: String(this.#version) } };
    this.objects.set(path, whole);
    return whole;
  }

  #answer({ method, path, body }: ObjectRequest): Answer {
    if (method === "POST") return this.#create(path, body);
    const object = this.objects.get(path);
    if (object === undefined) return failure(404, "NotFound");
    if (method === "GET") return { status: 200, body: object };
    if (method === "PATCH") return this.#patch(path, object, body);
    const { uid, resourceVersion } = metadataOf(object);
    const { preconditions } = body;
    const wanted = isJsonObject(preconditions) ? preconditions : {};
    if ((wanted.uid ?? uid) !== uid || (wanted.resourceVersion ?? resourceVersion) !== resourceVersion) {
      return failure(409, "Conflict");
    }
    this.objects.delete(path);
    return { status: 200, body: { kind: "Status", status: "Success" } };
  }

  #create(collection: string, body: JsonObject): Answer {
    const path = `${collection}/${String(metadataOf(body).name)}`;
    if (this.objects.has(path)) return failure(409, "AlreadyExists");
    return { status: 201, body: this.put(path, body) };
  }

  #patch(path: string, object: JsonObject, patch: JsonObject): Answer {
    const wanted = metadataOf(patch).resourceVersion;
    if (wanted !== undefined && wanted !== metadataOf(object).resourceVersion) return failure(409, "Conflict");
    return { status: 200, body: this.put(path, merged(object, patch)) };
  }
}

function failure(code: number, reason: string): Answer {
  return { status: code, body: { kind: "Status", status: "Failure", reason, code } };
}

async function readRequest(incoming: IncomingMessage): Promise<ObjectRequest> {
  let text = "";
  for await (const piece of incoming) text += String(piece);
  const { pathname: path, search: query } = new URL(incoming.url ?? "/", "http://server");
  const contentType = incoming.headers["content-type"];
  return { method: incoming.method ?? "GET", path, query, contentType, body: parseJsonObject(text) ?? {} };
}

function metadataOf({ metadata }: JsonObject): JsonObject {
  return isJsonObject(metadata) ? metadata : {};
}

/** RFC 7396. */
function merged(target: JsonObject, patch: JsonObject): JsonObject {
  const result: Record<string, JsonValue> = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    const known = result[name];
    if (value === null) delete result[name];
    else result[name] = isJsonObject(value) ? merged(isJsonObject(known) ? known : {}, value) : value;
  }
  return result;
}
