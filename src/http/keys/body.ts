/**
 * Bodies of the key API. Only forms of PUT and POST are read, and every body on a route that asks for it. All other
 * bodies are discarded, whatever their content type says. Fastify refuses unknown content types, so the header is
 * removed first.
 */

import type { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { Shares } from "../../lib/shares.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Clients, Holder } from "../client-shares.ts";
import { isForm } from "./form.ts";

// As many bytes as the reference reads (net/http, Request.ParseForm).
const maxFormBytes = 10 * 1024 * 1024;

/** Of all bodies that are being received. No client has more of them than are left free: three of the largest forms. */
const maxReceivedBytes = 64 * 1024 * 1024;

/** What Fastify keeps as the body of a request. */
export type ParsedBody = Buffer | "tooLarge" | "tooMany" | undefined;

export interface BodyReader {
  /** Takes the content type from a request that begins. */
  take(request: FastifyRequest): void;
  /** Reads or skips a body; register it as Fastify's only parser. It never rejects because of the client's bytes. */
  read(request: FastifyRequest, payload: Readable): Promise<ParsedBody>;
  /**
   * The form, decoded as latin1; undefined when there is none.
   * @throws {StoreError} invalidForm for a content type or a length that the protocol refuses.
   */
  formOf(request: FastifyRequest): string | undefined;
  /** As it was sent, before it was taken. */
  contentTypeOf(request: FastifyRequest): string | undefined;
  /** The body, decoded as UTF-8; empty when nothing was read, or too much was sent. */
  textOf(request: FastifyRequest): string;
}

/**
 * @param readsAny true for requests whose body is read whatever its content type.
 * @param clients knows which client sent a request.
 */
export function createBodyReader(readsAny: (request: FastifyRequest) => boolean, clients: Clients): BodyReader {
  const contentTypes = new WeakMap<FastifyRequest, string>();
  const bodies = new WeakMap<FastifyRequest, ParsedBody>();
  const received = new Shares({ limit: maxReceivedBytes });
  return {
    take: (request) => {
      const contentType = request.raw.headers["content-type"];
      if (contentType === undefined) return;
      contentTypes.set(request, contentType);
      delete request.raw.headers["content-type"];
    },
    read: async (request, payload) => {
      const isRead = readsAny(request) || isReadable(request, contentTypes.get(request));
      const body = isRead ? await readBody(payload, received, clients.ofRequest(request.raw)) : skip(payload);
      bodies.set(request, body);
      return body;
    },
    formOf: (request) => {
      if (!hasForm(request) || !isForm(contentTypes.get(request))) return undefined;
      const body = bodies.get(request);
      if (body === "tooMany") throw new StoreError("crowded", "too many bodies are being received", 0);
      if (body === "tooLarge") throw new StoreError("invalidForm", "http: POST too large", 0);
      return body?.toString("latin1");
    },
    contentTypeOf: (request) => contentTypes.get(request),
    textOf: (request) => {
      const body = bodies.get(request);
      return Buffer.isBuffer(body) ? body.toString() : "";
    },
  };
}

function hasForm({ method }: FastifyRequest): boolean {
  return method === "PUT" || method === "POST";
}

function isReadable(request: FastifyRequest, contentType: string | undefined): boolean {
  try {
    return hasForm(request) && isForm(contentType);
  } catch {
    // `formOf` reports it when the request is answered.
    return false;
  }
}

/** By events: an iterator over the body would take a tenth of the time of a small PUT. */
function readBody(payload: Readable, received: Shares, client: Holder): Promise<ParsedBody> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let heldBytes = 0;
  let refusal: "tooLarge" | "tooMany" | undefined;
  const release = () => {
    received.release(client, heldBytes);
    heldBytes = 0;
  };
  return new Promise((resolve, reject) => {
    payload.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxFormBytes) refusal ??= "tooLarge";
      if (refusal === undefined && !received.take(client, chunk.length)) refusal = "tooMany";
      if (refusal === undefined) {
        heldBytes += chunk.length;
        chunks.push(chunk);
      } else {
        // The rest is read and dropped, so that the client can read the answer.
        chunks.length = 0;
        release();
      }
    });
    payload.once("end", () => {
      release();
      resolve(refusal ?? Buffer.concat(chunks));
    });
    payload.once("error", reject);
    payload.once("close", () => {
      if (payload.readableEnded) return;
      release();
      reject(new Error("the connection ended in the body of a request"));
    });
  });
}

function skip(payload: Readable): undefined {
  payload.resume();
}
