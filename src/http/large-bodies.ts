/**
 * Limits the memory of large answers while clients fetch them. A body that many machines fetch, or an event that many
 * watchers get, is in memory only once. By default, such bodies together take at most 128 MiB. No client may hold more
 * than remains free.
 */

import type { ServerResponse } from "node:http";
import { Shares } from "../lib/shares.ts";
import type { Rendered } from "../render/core/rendered.ts";
import type { Holder } from "./client-shares.ts";
import { RequestError } from "./errors.ts";
import { WireResponse } from "./response-headers.ts";

/** Smaller bodies are not counted, because the sockets' buffers take them immediately. */
const largeBytes = 64 * 1024;

const presetLimitBytes = 128 * 1024 * 1024;

/** Bytes to send, and the function to call when the answer has ended. */
interface HeldBytes {
  readonly bytes: Buffer;
  readonly release: () => void;
}

interface Sent {
  readonly bytes: Buffer;
  /** The client that asked first. davit counts the bytes only for this client. */
  readonly holder: Holder;
  answers: number;
}

export class LargeBodies {
  readonly #shares: Shares;
  readonly #sent = new Map<object, Sent>();

  /** @param shares counts these bodies. The listener may count other memory of its clients there, too. */
  constructor(shares = new Shares({ limit: presetLimitBytes })) {
    this.#shares = shares;
  }

  /** The bytes that `shares` counts now. */
  get bytes(): number {
    return this.#shares.total;
  }

  /**
   * Returns what to send for a text. Answers with the same large text share its bytes until they end.
   * @throws {RequestError} unsent, when too much is being sent already.
   */
  take(rendered: Rendered, response: ServerResponse, holder: () => Holder): string | Buffer {
    const { body } = rendered;
    // A closed response emits no further `close`, so its bytes would never be released.
    if (!isLarge(body) || response.destroyed) return body;
    const held = this.hold(rendered, body, holder);
    if (held === undefined) throw new RequestError("unsent");
    if (response instanceof WireResponse) response.isCountedElsewhere = true;
    response.once("close", held.release);
    return held.bytes;
  }

  /**
   * Returns the bytes of a text; all who send the text share them.
   * @param of identifies the text: the same object for equal texts, different objects for different texts.
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
    // A text has at least as many bytes as units. So this check refuses most texts that are too large before they are
    // encoded.
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
