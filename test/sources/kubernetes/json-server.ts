/** A server that answers with JSON, and remembers what it was asked. */

import { createServer } from "node:http";

export interface JsonAnswer {
  readonly status: number;
  readonly body: object;
}

export interface JsonRequest {
  readonly method: string | undefined;
  readonly url: string | undefined;
  /** What was sent; undefined for nothing. */
  readonly body: unknown;
}

export async function startJsonServer(answer: (url: string) => JsonAnswer) {
  const requests: JsonRequest[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += String(piece);
    const { method, url } = request;
    requests.push({ method, url, body: text === "" ? undefined : JSON.parse(text) });
    const { status, body } = answer(url ?? "");
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
