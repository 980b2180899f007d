/** HTTP requests whose target is sent as it is written. */

import { Agent, type IncomingMessage, request } from "node:http";

export interface RawRequest {
  readonly port: number;
  readonly agent?: Agent;
  readonly method: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Connections of one test, to be destroyed at its end. */
export function agentFor(): Agent {
  return new Agent({ keepAlive: true });
}

/** An answer that has begun; `whole` reads it to its end. */
export interface BegunAnswer {
  readonly response: IncomingMessage;
  /** What is there already, without a body. */
  head(): RawAnswer;
  whole(): Promise<RawAnswer>;
}

/** Resolves when the head of the answer is there. */
export async function sendRaw(raw: RawRequest): Promise<BegunAnswer> {
  const { port, agent, method, target, headers, body } = raw;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const sent = request({ host: "127.0.0.1", port, agent, method, path: target, headers: { ...headers, ...length } });
    sent.on("response", resolve).on("error", reject).end(body);
  });
  return { response, head: () => headOf(response), whole: () => answerOf(response) };
}

function headOf(response: IncomingMessage): RawAnswer {
  const headers = new Map(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
  return { status: response.statusCode ?? 0, headers, body: "" };
}

async function answerOf(response: IncomingMessage): Promise<RawAnswer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(Buffer.from(chunk));
  return { ...headOf(response), body: Buffer.concat(chunks).toString() };
}
