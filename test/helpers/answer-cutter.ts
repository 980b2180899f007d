/** A TCP proxy whose server's answers can be held back and lost: the request arrives, and its sender never knows. */

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface AnswerCutter {
  readonly url: URL;
  /** Holds what the server sends from now on. */
  hold(): void;
  /** Loses what was held, and every connection. New ones are not held. */
  cut(): void;
  stop(): Promise<void>;
}

export async function startAnswerCutter(target: URL): Promise<AnswerCutter> {
  const sockets = new Set<Socket>();
  let isHeld = false;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on("data", (bytes) => {
      if (!isHeld) client.write(bytes);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: new URL(`http://127.0.0.1:${port}`),
    hold: () => {
      isHeld = true;
    },
    cut: () => {
      isHeld = false;
      cutAll();
    },
    stop: async () => {
      const closed = once(server, "close");
      server.close();
      cutAll();
      await closed;
    },
  };
}
