/**
 * gRPC over the connection to one endpoint: connect's interface `Transport`, without compression. Each call has a
 * stream of HTTP/2. connect-node could do this, but passes each message through a dozen iterators and sends a request
 * in three frames. For a batch of writes, that took more processor time than all other work of the log.
 */

import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { create, type DescMessage, type DescMethod, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import type { EtcdConnection } from "./connection.ts";

// `rpc.proto` has only the fields that davit reads.
const knownFields = { readUnknownFields: false };

interface GrpcCall {
  readonly stream: ClientHttp2Stream;
  /** The status of the call is in the trailer; in the header, if the answer has no trailer. */
  readonly header: Headers;
  readonly trailer: Headers;
}

// Before a message: a byte that says whether it is compressed, and four bytes of its length.
const prefixBytes = 5;

/** A transport without time limits of its own: only its signal ends a call. */
export function grpcTransport(connection: EtcdConnection): Transport {
  return {
    unary: async (...[method, signal, , headers, input]) => {
      const call = await callOn(opening(connection, method, headers), signal);
      call.stream.end(framed(toBinary(method.input, create(method.input, input))));
      const message = await onlyOne(messagesOf(call, method.output));
      return { stream: false, service: method.parent, method, message, header: call.header, trailer: call.trailer };
    },
    stream: async (...[method, signal, , headers, inputs]) => {
      const call = await callOn(opening(connection, method, headers), signal);
      const send = async () => {
        for await (const input of inputs)
          call.stream.write(framed(toBinary(method.input, create(method.input, input))));
        call.stream.end();
      };
      send().catch((error) => call.stream.destroy(error));
      const message = messagesOf(call, method.output);
      return { stream: true, service: method.parent, method, message, header: call.header, trailer: call.trailer };
    },
  };
}

type GrpcHeaders = Parameters<Transport["unary"]>[3];

function opening(connection: EtcdConnection, method: DescMethod, given: GrpcHeaders): Promise<ClientHttp2Stream> {
  const headers = Object.fromEntries(new Headers(given));
  const path = `/${method.parent.typeName}/${method.name}`;
  return connection.request("POST", path, { "content-type": "application/grpc+proto", te: "trailers", ...headers });
}

/**
 * Resolves when the stream is open. Once the signal aborts, the stream ends.
 * @throws {ConnectFailure | ConnectError}
 */
function callOn(opened: Promise<ClientHttp2Stream>, signal: AbortSignal | undefined): Promise<GrpcCall> {
  return new Promise((resolve, reject) => {
    const cut = () => {
      reject(new ConnectError("davit ended the call", Code.Canceled));
      opened.then((stream) => {
        stream.close(constants.NGHTTP2_CANCEL);
        // A server that stands still would not end it.
        stream.destroy();
      }, reject);
    };
    signal?.addEventListener("abort", cut);
    if (signal?.aborted === true) cut();
    opened.then((stream) => {
      const [header, trailer] = [new Headers(), new Headers()];
      stream.once("response", (fields) => add(header, fields));
      stream.once("trailers", (fields) => add(trailer, fields));
      // The reader of the messages gets the error, too.
      stream.on("error", () => undefined);
      stream.once("close", () => signal?.removeEventListener("abort", cut));
      resolve({ stream, header, trailer });
    }, reject);
  });
}

function add(headers: Headers, fields: IncomingHttpHeaders): void {
  for (const [name, value] of Object.entries(fields)) if (!name.startsWith(":")) headers.set(name, String(value));
}

/** @throws {ConnectError} with the status of the call, unless that is OK. Any error of the stream. */
async function* messagesOf<Schema extends DescMessage>(
  { stream, header, trailer }: GrpcCall,
  schema: Schema,
): AsyncGenerator<MessageShape<Schema>, void> {
  const frames = new Frames();
  for await (const chunk of stream) {
    frames.add(chunk);
    for (let bytes = frames.next(); bytes !== undefined; bytes = frames.next())
      yield fromBinary(schema, bytes, knownFields);
  }
  const ended = trailer.has("grpc-status") ? trailer : header;
  const error = findTrailerError(ended);
  if (error !== undefined) throw error;
  if (!ended.has("grpc-status")) throw new ConnectError("the answer has no status", Code.Unavailable);
}

async function onlyOne<T>(messages: AsyncIterable<T>): Promise<T> {
  const found: T[] = [];
  for await (const message of messages) found.push(message);
  const [message] = found;
  if (message === undefined || found.length > 1) throw new ConnectError("not one message", Code.Internal);
  return message;
}

/** Finds the messages in what arrives. */
class Frames {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** The next message is not whole before so many bytes are there. */
  #wanted = prefixBytes;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** The next message that has arrived. @throws {ConnectError} for a compressed one. */
  next(): Uint8Array | undefined {
    if (this.#bytes < this.#wanted) return undefined;
    const [first] = this.#chunks;
    const all = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    const end = prefixBytes + all.readUInt32BE(1);
    const isWhole = all.length >= end;
    if (all[0] !== 0) throw new ConnectError("the answer is compressed", Code.Internal);
    const rest = isWhole ? all.subarray(end) : all;
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    this.#wanted = isWhole ? prefixBytes : end;
    return isWhole ? all.subarray(prefixBytes, end) : undefined;
  }
}

function framed(message: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(prefixBytes + message.length);
  bytes.writeUInt8(0, 0);
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, prefixBytes);
  return bytes;
}
