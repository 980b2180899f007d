/** Requests to a test cluster's API server, for what kubectl is too slow or too helpful. */

import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { text } from "node:stream/consumers";
import { type JsonObject, parseJsonObject } from "../../src/model/json.ts";

export interface ApiRequest {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With its query. */
  readonly path: string;
  /** Text goes as it is, an object as JSON. */
  readonly body?: string | JsonObject;
  /** Of the body; default: `application/json`. */
  readonly contentType?: string;
  /** Default: the administrator's. */
  readonly token?: string;
}

export interface ApiAnswer {
  readonly status: number;
  /** What the API server warns of: the headers `Warning`, without their code. */
  readonly warnings: readonly string[];
  /** Empty when the answer is no JSON object. */
  readonly body: JsonObject;
}

export interface ApiClientOptions {
  /** `https://127.0.0.1:PORT`. */
  readonly server: string;
  /** PEM text. */
  readonly ca: string;
  readonly token: string;
}

const answerLimitMs = 30_000;

export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #agent: Agent;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#agent = new Agent({ ca: options.ca, keepAlive: true });
  }

  /** @throws {Error} when there is no answer: the API server is down, or silent for half a minute. */
  async ask({ method = "GET", path, body, contentType, token = this.#options.token }: ApiRequest): Promise<ApiAnswer> {
    const headers: Record<string, string> = { authorization: `Bearer ${token}`, accept: "application/json" };
    if (body !== undefined) headers["content-type"] = contentType ?? "application/json";
    const signal = AbortSignal.timeout(answerLimitMs);
    const sent = request(new URL(path, this.#options.server), { method, headers, agent: this.#agent, signal });
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      sent.once("response", resolve);
      sent.once("error", reject);
    });
    sent.end(typeof body === "object" ? JSON.stringify(body) : body);
    return read(await answer);
  }

  /** Closes its connections. */
  close(): void {
    this.#agent.destroy();
  }
}

async function read(answer: IncomingMessage): Promise<ApiAnswer> {
  const body = parseJsonObject(await text(answer)) ?? {};
  const warnings = answer.headersDistinct.warning ?? [];
  return { status: answer.statusCode ?? 0, body, warnings: warnings.map((line) => line.replace(/^299 - /, "")) };
}
