/** A proxy before the store of a davit. It refuses some requests, and passes on all others. */

import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";

export interface StoreRelay {
  readonly server: Server;
  readonly url: string;
}

/** @param refusalOf returns the status for a path with its query; undefined passes the request on. */
export async function startStoreRelay(
  store: URL,
  refusalOf: (target: string) => number | undefined,
): Promise<StoreRelay> {
  const pass = (from: IncomingMessage, to: ServerResponse) => {
    const refusal = refusalOf(from.url ?? "");
    if (refusal !== undefined) return void to.writeHead(refusal).end(`${refusal}\n`);
    const headers = { ...from.headers, host: store.host };
    const sent = request(new URL(from.url ?? "", store), { method: from.method, headers }, (answer) => {
      to.writeHead(answer.statusCode ?? 500, answer.headers).flushHeaders();
      answer.pipe(to);
    });
    sent.on("error", () => to.destroy());
    to.on("close", () => sent.destroy());
    from.pipe(sent);
  };
  const server = createServer(pass);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return { server, url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}` };
}
