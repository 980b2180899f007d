/**
 * What large answers take while their clients fetch them. A body that many machines are sent is in memory once, however
 * many there are; all together take 128 MiB at most, and no client more of it than is left free.
 */

import type { ServerResponse } from "node:http";
import { Shares } from "../lib/shares.ts";
import type { Rendered } from "../render/rendered.ts";
import type { Holder } from "./client-shares.ts";
import { RequestError } from "./errors.ts";

/** Smaller ones are in the buffers of their sockets at once. */
const largeBytes = 64 * 1024;

const presetLimitBytes = 128 * 1024 * 1024;

interface Sent {
  readonly bytes: Buffer;
  /** Whose share it is in: who asked for it first. */
  readonly holder: Holder;
  answers: number;
}

export class LargeBodies {
  readonly #shares: Shares;
  readonly #sent = new Map<Rendered, Sent>();

  constructor(limitBytes = presetLimitBytes) {
    this.#shares = new Shares({ limit: limitBytes });
  }

  /** Of all bodies that are being sent. */
  get bytes(): number {
    return this.#shares.total;
  }

  /**
   * What to send of a text: the bytes that others are sent, too, until the answer's end.
   * @throws {RequestError} unsent, when too much is on its way already.
   */
  take(rendered: Rendered, response: ServerResponse, holder: () => Holder): string | Buffer {
    const { body, byteLength } = rendered;
    if (body.length < largeBytes) return body;
    const sent = this.#sent.get(rendered) ?? this.#begin(rendered, byteLength ?? Buffer.byteLength(body), holder());
    sent.answers += 1;
    response.once("close", () => {
      sent.answers -= 1;
      if (sent.answers > 0) return;
      this.#sent.delete(rendered);
      this.#shares.release(sent.holder, sent.bytes.length);
    });
    return sent.bytes;
  }

  #begin(rendered: Rendered, length: number, holder: Holder): Sent {
    if (!this.#shares.take(holder, length)) throw new RequestError("unsent");
    const sent = { bytes: Buffer.from(rendered.body), holder, answers: 0 };
    this.#sent.set(rendered, sent);
    return sent;
  }
}
