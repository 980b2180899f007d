/** A TCP connection's way through a third party that can cut it, or keep every byte back. */

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";

export class Relay {
  /** Port of 127.0.0.1 to which it leads; another one after a restart of what listens there. */
  target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(target: number) {
    this.target = target;
    this.#server = createServer((socket) => this.#take(socket));
  }

  static async start(target: number): Promise<Relay> {
    const relay = new Relay(target);
    relay.#server.listen(0, "127.0.0.1");
    await once(relay.#server, "listening");
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Closes every connection, and each new one until `heal`. */
  cut(): void {
    this.#isCut = true;
    this.#closeAll();
  }

  /** Keeps back whatever comes on the connections that are open. */
  freeze(): void {
    for (const socket of this.#sockets) socket.pause();
  }

  /** Ends a cut or a freeze. */
  heal(): void {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.resume();
  }

  async stop(): Promise<void> {
    this.#closeAll();
    this.#server.close();
    await once(this.#server, "close");
  }

  #take(near: Socket): void {
    if (this.#isCut) {
      near.destroy();
      return;
    }
    const far = connect(this.target, "127.0.0.1");
    this.#join(near, far);
    this.#join(far, near);
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on("data", (bytes) => to.write(bytes));
    from.on("error", () => from.destroy());
    from.on("close", () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }

  #closeAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
