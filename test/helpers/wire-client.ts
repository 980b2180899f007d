/** A client that sends bytes as they are and tells the answers of its connection apart as HTTP/1.1 says. */

import { connect, type Socket } from "node:net";

export interface ReadAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export class WireClient {
  readonly #socket: Socket;
  #received = "";
  /** Called when there is more to look at. */
  #changed: () => void = () => undefined;
  #isClosed = false;

  constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1").setEncoding("latin1");
    this.#socket.on("data", (text: string) => {
      this.#received += text;
      this.#changed();
    });
    // A cut connection ends what can be read, as a plain end does; what was read tells whether that was right.
    this.#socket.on("error", () => undefined);
    this.#socket.once("close", () => {
      this.#isClosed = true;
      this.#changed();
    });
  }

  /** @param text one character for each byte. */
  send(text: string): void {
    this.#socket.write(text, "latin1");
  }

  /** Says that nothing more will be sent. */
  end(): void {
    this.#socket.end();
  }

  /** Waits for this many answers, or for the end of the connection. */
  async answers(count: number): Promise<readonly ReadAnswer[]> {
    await this.#until(() => this.count >= count);
    return this.#answers;
  }

  /** Waits for this many lines in the body of a chunked answer that goes on. */
  async lines(count: number): Promise<readonly string[]> {
    const whole = () => {
      const end = this.#received.indexOf(headEnd);
      return end < 0
        ? []
        : chunksOf(this.#received.slice(end + headEnd.length))
            .body.split("\n")
            .slice(0, -1);
    };
    await this.#until(() => whole().length >= count);
    return whole();
  }

  get #answers(): readonly ReadAnswer[] {
    return readAnswers(this.#received, this.#isClosed);
  }

  /** How many answers are there already. */
  get count(): number {
    return this.#answers.length;
  }

  /** Waits for the head of the first answer. */
  async head(): Promise<void> {
    await this.#until(() => this.#received.includes(headEnd));
  }

  /** Waits until the other side has ended the connection. */
  async closed(): Promise<void> {
    await this.#until(() => false);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  async #until(isThere: () => boolean): Promise<void> {
    while (!this.#isClosed && !isThere()) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }
}

const headEnd = "\r\n\r\n";

/**
 * Reads every answer that is whole.
 * @param text the bytes, one character each, as latin1 decodes them.
 * @param isClosed the connection has ended, and with it a body without a length.
 */
function readAnswers(text: string, isClosed: boolean): readonly ReadAnswer[] {
  const answers: ReadAnswer[] = [];
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf(headEnd, at);
    if (end < 0) break;
    const [first = "", ...lines] = text.slice(at, end).split("\r\n");
    const headers = new Map(
      lines.map((line) => [line.replace(/:.*/, "").toLowerCase(), line.replace(/^[^:]*: */, "")]),
    );
    const lasts = !isClosed && (first.startsWith("HTTP/1.0") || headers.get("connection") === "close");
    const read = readBody(text.slice(end + headEnd.length), headers);
    if (read === undefined || (lasts && read.isOpenEnded)) break;
    answers.push({ status: Number(first.split(" ")[1]), headers, body: Buffer.from(read.body, "latin1").toString() });
    at = end + headEnd.length + read.length;
  }
  return answers;
}

/** A body and the bytes that it takes; undefined while it is not whole. */
function readBody(
  rest: string,
  headers: ReadonlyMap<string, string>,
): { body: string; length: number; isOpenEnded?: true } | undefined {
  if (headers.get("transfer-encoding") === "chunked") return readChunks(rest);
  const length = headers.get("content-length");
  // Without a length the end of the connection is that of the body.
  if (length === undefined) return { body: rest, length: rest.length, isOpenEnded: true };
  return Number(length) <= rest.length ? { body: rest.slice(0, Number(length)), length: Number(length) } : undefined;
}

function readChunks(rest: string): { body: string; length: number } | undefined {
  const { body, length, isWhole } = chunksOf(rest);
  return isWhole ? { body, length } : undefined;
}

/** What is there of a chunked body, and whether that is all of it. */
function chunksOf(rest: string): { body: string; length: number; isWhole: boolean } {
  let body = "";
  for (let at = 0; ; ) {
    const end = rest.indexOf("\r\n", at);
    if (end < 0) return { body, length: at, isWhole: false };
    const size = Number.parseInt(rest.slice(at, end), 16);
    const next = end + 2 + size + 2;
    if (next > rest.length) return { body, length: at, isWhole: false };
    if (size === 0) return { body, length: next, isWhole: true };
    body += rest.slice(end + 2, end + 2 + size);
    at = next;
  }
}
