/**
 * The line between machines and a davit, with somebody at it: when an answer has come so far, something is done
 * elsewhere before it goes on. Heads pass as they are spelt, and when davit ends, so do the machines' connections.
 */

import { once } from "node:events";
import { type ClientRequest, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { hostSeenByMachine } from "../../tools/firmware/machine.ts";

/** What a machine asked for, and the status of the answer. */
export interface Asked {
  /** With its query. */
  readonly target: string;
  /** 0 when the machine did not get all of it. */
  readonly status: number;
}

/** Happens once, in the first answer with this path and status. */
export interface Moment {
  readonly path: string;
  readonly status: number;
  /** `arrived`: the machine has nothing of it yet. `begun`: it has some. `delivered`: it has all of it. */
  readonly when: "arrived" | "begun" | "delivered";
  readonly does: () => Promise<void>;
}

// The rest of a kernel is then more than what the sockets of a davit that ended still hold.
const begunBytes = 1_048_576;

export class BootLine {
  /** Every request that is over, in the order of their ends. */
  readonly asked: Asked[] = [];
  readonly #server = createServer((incoming, outgoing) => void this.#take(incoming, outgoing));
  readonly #moments: Moment[] = [];
  #port = 0;
  #authority = "";

  static async start(): Promise<BootLine> {
    const line = new BootLine();
    await line.open();
    return line;
  }

  /** `host:port` of the machines' end. */
  get authoritySeenByMachine(): string {
    return `${hostSeenByMachine}:${this.#port}`;
  }

  /** @param authority `host:port` of the davit at the other end. */
  leadTo(authority: string): void {
    this.#authority = authority;
  }

  /** Forgets what was asked and waited for, and waits for these. */
  expect(...moments: readonly Moment[]): void {
    this.asked.length = 0;
    this.#moments.splice(0, this.#moments.length, ...moments);
  }

  /** Takes connections, on the same port as before. */
  async open(): Promise<void> {
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    if (typeof address === "object" && address !== null) this.#port = address.port;
  }

  /** As if nobody were there: open connections end, new ones are refused. */
  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  async #take(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const target = incoming.url ?? "/";
    const status = await this.#handOn(incoming, outgoing).catch(() => 0);
    this.asked.push({ target, status });
    // As a davit that has ended closes it. After a whole answer that is too late to change anything.
    if (status === 0) outgoing.destroy();
    else await this.#moment({ target, status }, "delivered")?.does();
  }

  /** @throws {Error} when either side ends before the answer does. */
  async #handOn(incoming: IncomingMessage, outgoing: ServerResponse): Promise<number> {
    const { method, url: target = "/", headers } = incoming;
    // A connection for each request: one that is kept could be dead by now, which a machine would never meet.
    const onward = incoming.pipe(request(`http://${this.#authority}${target}`, { method, headers, agent: false }));
    const gone = new AbortController();
    outgoing.on("close", () => {
      gone.abort();
      onward.destroy();
    });
    const answer = await responseTo(onward);
    const { statusCode: status = 0, rawHeaders } = answer;
    const arrived = this.#moment({ target, status }, "arrived");
    if (arrived !== undefined) await arrived.does();
    const { socket } = outgoing;
    outgoing.sendDate = false;
    outgoing.writeHead(status, rawHeaders);
    let sentBytes = 0;
    for await (const chunk of answer) {
      if (!outgoing.write(chunk)) await once(outgoing, "drain", gone);
      sentBytes += chunk.length;
      if (sentBytes >= begunBytes) await this.#moment({ target, status }, "begun")?.does();
    }
    outgoing.end();
    await once(outgoing, "finish", gone);
    // The davit that gave this answer may be gone by now, and its connections with it.
    if (arrived !== undefined) socket?.end();
    return status;
  }

  #moment({ target, status }: Asked, when: Moment["when"]): Moment | undefined {
    const [path] = target.split("?");
    const index = this.#moments.findIndex((it) => it.path === path && it.status === status && it.when === when);
    return index < 0 ? undefined : this.#moments.splice(index, 1)[0];
  }
}

function responseTo(onward: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => onward.on("response", resolve).on("error", reject));
}
