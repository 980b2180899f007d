/**
 * Limits the memory of large answers while their clients fetch them. A body for many machines, or an event with many
 * watchers, is in memory once. All together take at most 128 MiB, and no client takes more than remains free.
 */

import type { ServerResponse } from "node:http";
import { Shares } from "../lib/shares.ts";
import type { Rendered } from "../render/core/rendered.ts";
import type { Holder } from "./client-shares.ts";
import { RequestError } from "./errors.ts";
import { WireResponse } from "./response-headers.ts";

/** Smaller bodies go into their sockets' buffers at once. */
const largeBytes = 64 * 1024;

const presetLimitBytes = 128 * 1024 * 1024;

/** Bytes that are being sent, and the function to call when this answer has ended. */
export interface HeldBytes {
  readonly bytes: Buffer;
  readonly release: () => void;
}

interface Sent {
  readonly bytes: Buffer;
  /** The client that asked first: the bytes count in its share. */
  readonly holder: Holder;
  answers: number;
}

export class LargeBodies {
  readonly #shares: Shares;
  readonly #sent = new Map<object, Sent>();

  /** @param shares of all that the listener keeps for its clients. */
  constructor(shares = new Shares({ limit: presetLimitBytes })) {
    this.#shares = shares;
  }

  /** Of all bodies that are being sent. */
  get bytes(): number {
    return this.#shares.total;
  }

  /**
   * The bytes to send for a text, shared with other answers until this one ends.
   * @throws {RequestError} unsent, when too much is being sent already.
   */
  take(rendered: Rendered, response: ServerResponse, holder: () => Holder): string | Buffer {
    const { body } = rendered;
    // A client that has left gets nothing, and would never release what is held for it.
    if (!isLarge(body) || response.destroyed) return body;
    const held = this.hold(rendered, body, holder);
    if (held === undefined) throw new RequestError("unsent");
    if (response instanceof WireResponse) response.isCountedElsewhere = true;
    response.once("close", held.release);
    return held.bytes;
  }

  /**
   * The bytes of a text, the same for all its receivers.
   * @param of the same object for equal texts, and different objects for others.
   * @returns undefined when too much is being sent already.
   */
  hold(of: object, text: string, holder: () => Holder): HeldBytes | undefined {
    const sent = this.#sent.get(of) ?? this.#begin(of, text, holder());
    if (sent === undefined) return undefined;
    sent.answers += 1;
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      sent.answers -= 1;
      if (sent.answers > 0) return;
      this.#sent.delete(of);
      this.#shares.release(sent.holder, sent.bytes.length);
    };
    return { bytes: sent.bytes, release };
  }

  #begin(of: object, text: string, holder: Holder): Sent | undefined {
    // A unit of text is at least one byte, so bytes are made only where there is room.
    if (!this.#shares.admits(holder, text.length)) return undefined;
    const bytes = Buffer.from(text);
    if (!this.#shares.take(holder, bytes.length)) return undefined;
    const sent = { bytes, holder, answers: 0 };
    this.#sent.set(of, sent);
    return sent;
  }
}

/** True for a text that is large enough to count. */
export function isLarge(text: string): boolean {
  return text.length >= largeBytes;
}
