/** Reads bodies of the key API: forms of PUT and POST, and bodies of `/v2/members`. No other body is read. */

import type { IncomingMessage } from "node:http";
import { Shares } from "../../lib/shares.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Clients } from "../client-shares.ts";
import { isForm } from "./form.ts";

// etcd reads as many bytes (net/http, Request.ParseForm).
const maxBodyBytes = 10 * 1024 * 1024;

/**
 * The most bytes of all bodies that are being received. No client may hold more than remains free. So a single client
 * gets half: three of the largest forms.
 */
const maxReceivedBytes = 64 * 1024 * 1024;

/** What a chunk takes in memory besides its bytes. It matters for chunks of a single byte. */
const chunkBytes = 32;

/** Bodies up to this length are not counted: the limit on connections bounds their memory. */
const smallBytes = 16 * 1024;

export class BodyReader {
  readonly #clients: Clients;
  readonly #received = new Shares({ limit: maxReceivedBytes });

  /** @param clients names the client of a request. */
  constructor(clients: Clients) {
    this.#clients = clients;
  }

  /**
   * Returns the form, decoded as latin1; undefined when the body is no form.
   * @throws {StoreError} invalidForm for a malformed content type. The promise rejects with invalidForm for too long a
   * body, or with crowded when too many bodies are being received.
   */
  form(request: IncomingMessage): Promise<string> | undefined {
    return isForm(request.headers["content-type"]) ? this.#read(request) : undefined;
  }

  /** Returns the body, whatever its type, decoded as UTF-8. A refused body gives an empty text. */
  async text(request: IncomingMessage): Promise<string> {
    const text = await this.#read(request).catch(() => "");
    return Buffer.from(text, "latin1").toString();
  }

  /**
   * Reads a body, decoded as latin1. The promise never settles if the connection ends first, because nobody is left to
   * get an answer. It uses events: with an iterator, a small PUT takes a tenth longer.
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
        // The rest of a refused body is read and dropped. Otherwise the client might never read the answer.
        text = refusal === undefined ? text + chunk.toString("latin1") : "";
      });
      request.on("end", () => {
        if (refusal === undefined) resolve(text);
        else reject(refusal);
      });
    });
  }

  /**
   * Returns a function that counts received bytes for the client. The function returns false if the client has no room
   * for them. The bytes are counted until the request ends.
   */
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
