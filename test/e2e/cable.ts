/**
 * A cable between a machine and the boot service: what goes over it is neither read nor changed, but it can be held at a
 * place in the boot, for as long as something is done to the cluster. When one end hangs up, so does the other; a machine
 * that is held hears of it afterwards, as one would that was busy with something else.
 */

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface CableOptions {
  readonly host: string;
  readonly port: number;
  /** Where it is held, once. */
  readonly holdAt: Place;
  /** What is done meanwhile. */
  readonly held: () => Promise<void>;
}

type Place = RequestPlace | AnswerPlace;

/** Before a request that has this in it goes on. */
interface RequestPlace {
  readonly kind: "request";
  readonly text: string;
}

/**
 * After so many bytes of one connection's answers. Both sides' kernels hold megabytes more, which still arrive, unless the
 * connection is cut: as it is when a whole node goes.
 */
interface AnswerPlace {
  readonly kind: "answer";
  readonly bytes: number;
  readonly isCut: boolean;
}

export interface Cable {
  /** Of this computer's loopback. */
  readonly port: number;
  /** Rejects when what was done meanwhile failed; resolves with whether there was a hold. */
  stop(): Promise<boolean>;
}

export async function startCable({ host, port, holdAt, held }: CableOptions): Promise<Cable> {
  const sockets = new Set<Socket>();
  let hold: Promise<void> | undefined;
  const holdOnce = async () => {
    if (hold !== undefined) return false;
    hold = held();
    // Told by `stop`; the boot goes on, and fails by itself where that matters.
    await hold.catch(() => {});
    return true;
  };
  const server = createServer((machine) => {
    const service = connect(port, host);
    for (const socket of [machine, service]) {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    }
    const isRequest = holdAt.kind === "request";
    const pass = async (from: Socket, to: Socket, way: (chunks: Bytes) => Bytes) => {
      await copy(way(from), to).catch(() => {});
      await hold?.catch(() => {});
      for (const socket of [machine, service]) socket.destroy();
    };
    void pass(machine, service, isRequest ? requestsUntil(holdAt.text, holdOnce) : asIs);
    void pass(service, machine, isRequest ? asIs : bytesUntil(holdAt, holdOnce));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: addressOf(server.address()).port,
    stop: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await hold;
      return hold !== undefined;
    },
  };
}

type Bytes = AsyncIterable<Buffer>;

/** Ends when either end is gone. */
async function copy(chunks: Bytes, to: Socket): Promise<void> {
  // What broke is told by the end that is closed.
  to.on("error", () => {});
  for await (const chunk of chunks) {
    if (to.destroyed) return;
    if (!to.write(chunk)) await Promise.race([once(to, "drain"), once(to, "close")]);
  }
}

async function* asIs(chunks: Bytes): Bytes {
  yield* chunks;
}

function requestsUntil(text: string, hold: () => Promise<unknown>): (chunks: Bytes) => Bytes {
  return async function* (chunks) {
    for await (const chunk of chunks) {
      if (chunk.includes(text)) await hold();
      yield chunk;
    }
  };
}

function bytesUntil({ bytes, isCut }: AnswerPlace, hold: () => Promise<boolean>): (chunks: Bytes) => Bytes {
  return async function* (chunks) {
    let count = 0;
    for await (const chunk of chunks) {
      count += chunk.length;
      if (count > bytes && (await hold()) && isCut) return;
      yield chunk;
    }
  };
}

function addressOf(address: AddressInfo | string | null): AddressInfo {
  if (address === null || typeof address === "string") throw new Error("A server on a port has no port");
  return address;
}
