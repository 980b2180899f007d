/** A TCP proxy before an etcd, for what goes wrong between it and a davit. */

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface EtcdProxy {
  readonly url: URL;
  /** Nothing passes in either direction, and every connection stays open. */
  pause(): void;
  resume(): void;
  /** Ends every connection and refuses new ones. */
  cut(): void;
  mend(): void;
  /**
   * From now on, `isLost` decides for each part of a request that passes. When true, this connection's answers are lost
   * from there on, and the connection ends.
   */
  loseAnswers(isLost: () => boolean): void;
  /** Holds what the server sends from now on. The requests arrive. `cut` loses the answers. */
  holdAnswers(): void;
  stop(): Promise<void>;
}

// Long enough for etcd to carry out what it got.
const untilEndMs = 20;

export async function startEtcdProxy(target: URL): Promise<EtcdProxy> {
  const sockets = new Set<Socket>();
  let isPaused = false;
  let isCut = false;
  let isHeld = false;
  let isLost = () => false;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    let isSilent = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
      if (isPaused) socket.pause();
    }
    client.on("data", (bytes) => {
      upstream.write(bytes);
      if (isSilent || !isLost()) return;
      isSilent = true;
      setTimeout(() => client.destroy(), untilEndMs);
    });
    upstream.on("data", (bytes) => {
      if (!isSilent && !isHeld) client.write(bytes);
    });
    if (isPaused) for (const socket of [client, upstream]) socket.pause();
    if (isCut) client.destroy();
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
    pause: () => {
      isPaused = true;
      for (const socket of sockets) socket.pause();
    },
    resume: () => {
      isPaused = false;
      for (const socket of sockets) socket.resume();
    },
    cut: () => {
      isCut = true;
      isHeld = false;
      cutAll();
    },
    mend: () => {
      isCut = false;
    },
    holdAnswers: () => {
      isHeld = true;
    },
    loseAnswers: (decide) => {
      isLost = decide;
    },
    stop: async () => {
      const closed = once(server, "close");
      server.close();
      cutAll();
      await closed;
    },
  };
}
