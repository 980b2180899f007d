/** Reads bodies of the key API: forms of PUT and POST, and those of `/v2/members`. No other body is read. */

import type { IncomingMessage } from "node:http";
import { Shares } from "../../lib/shares.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Clients } from "../client-shares.ts";
import { isForm } from "./form.ts";

// As many bytes as the reference reads (net/http, Request.ParseForm).
const maxBodyBytes = 10 * 1024 * 1024;

/** Of all bodies that are being received. No client has more of them than are left free: three of the largest forms. */
const maxReceivedBytes = 64 * 1024 * 1024;

/** What a chunk takes beside its bytes, which may be one. */
const chunkBytes = 32;

/** Shorter bodies are not counted: they come in one piece or few, and the limit on connections holds them. */
const smallBytes = 16 * 1024;

export class BodyReader {
  readonly #clients: Clients;
  readonly #received = new Shares({ limit: maxReceivedBytes });

  /** @param clients knows which client sent a request. */
  constructor(clients: Clients) {
    this.#clients = clients;
  }

  /**
   * The form, decoded as latin1; undefined when there is none.
   * @throws {StoreError} invalidForm for a content type or a length that the protocol refuses; crowded.
   */
  form(request: IncomingMessage): Promise<string> | undefined {
    return isForm(request.headers["content-type"]) ? this.#read(request) : undefined;
  }

  /** The body, whatever its type, decoded as UTF-8; empty when too much was sent. */
  async text(request: IncomingMessage): Promise<string> {
    const text = await this.#read(request).catch(() => "");
    return Buffer.from(text, "latin1").toString();
  }

  /**
   * Never settles when the connection ends first: nobody is left to get an answer.
   * By events: an iterator over the body would take a tenth of the time of a small PUT.
   */
  #read(request: IncomingMessage): Promise<string> {
    let text = "";
    const takes = this.#counted(request);
    let bytes = 0;
    let refusal: StoreError | undefined;
    return new Promise((resolve, reject) => {
      request.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxBodyBytes) refusal ??= new StoreError("invalidForm", "http: POST too large", 0);
        else if (refusal === undefined && !takes(chunk.length + chunkBytes))
          refusal = new StoreError("crowded", "too many bodies are being received", 0);
        // The rest is read and dropped, so that the client can read the answer.
        text = refusal === undefined ? text + chunk.toString("latin1") : "";
      });
      request.on("end", () => {
        if (refusal === undefined) resolve(text);
        else reject(refusal);
      });
    });
  }

  /** Returns a function that counts bytes in the client's share, until the request ends; false where none is left. */
  #counted(request: IncomingMessage): (bytes: number) => boolean {
    if (Number(request.headers["content-length"]) <= smallBytes) return () => true;
    const client = this.#clients.ofRequest(request);
    let heldBytes = 0;
    const release = () => {
      this.#received.release(client, heldBytes);
      heldBytes = 0;
    };
    request.once("end", release).once("close", release);
    return (bytes) => {
      const isTaken = this.#received.take(client, bytes);
      if (isTaken) heldBytes += bytes;
      else release();
      return isTaken;
    };
  }
}
