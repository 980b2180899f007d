/** gRPC's frames, as servers may send them: a server of HTTP/2 whose answers are bytes of the test. */

import { once } from "node:events";
import { createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EtcdConnection } from "../../packages/etcd-client/src/connection.ts";
import { grpcTransport } from "../../packages/etcd-client/src/grpc-transport.ts";
import { bytesOf } from "../../packages/etcd-client/src/messages.ts";
import { KV, RangeResponseSchema, Watch, WatchResponseSchema } from "../../packages/etcd-client/src/rpc_pb.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { servedPort } from "../../tools/davit-process.ts";

type Answer = (stream: ServerHttp2Stream, request: Buffer) => void;

const ok = { "grpc-status": "0" };
const head = { ":status": 200, "content-type": "application/grpc" };

describe("grpcTransport", () => {
  let server: Http2Server;
  let connection: EtcdConnection;
  let kv: Client<typeof KV>;
  let watch: Client<typeof Watch>;
  let answer: Answer;

  beforeEach(async () => {
    server = createServer().listen(0, "127.0.0.1");
    server.on("stream", (stream) => {
      stream.on("error", () => undefined);
      stream.once("data", (request: Buffer) => answer(stream, request));
    });
    await once(server, "listening");
    const url = new URL(`http://127.0.0.1:${servedPort(server.address())}`);
    connection = new EtcdConnection({ url, tls: {}, clock: systemClock });
    const transport = grpcTransport(connection);
    kv = createClient(KV, transport);
    watch = createClient(Watch, transport);
  });

  afterEach(() => {
    connection.close();
    server.close();
  });

  /** Pieces of an answer, each in a frame of its own. */
  const send = (stream: ServerHttp2Stream, pieces: readonly Uint8Array[], status: Record<string, string> = ok) => {
    stream.respond(head, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(status));
    const next = (at: number): void => {
      const piece = pieces[at];
      if (piece === undefined) stream.end();
      else stream.write(piece, () => setImmediate(() => next(at + 1)));
    };
    next(0);
  };

  it("takes a message in as many frames as the server likes, and sends its own in one", async () => {
    let asked: Buffer = Buffer.alloc(0);
    answer = (stream, request) => {
      asked = request;
      send(
        stream,
        Array.from(framed(range(3)), (byte) => Uint8Array.of(byte)),
      );
    };
    const { header } = await kv.range({ key: bytesOf("/a") });
    expect(header?.revision).toBe(3n);
    expect([asked[0], asked.readUInt32BE(1), asked.subarray(5).toString("latin1")]).toEqual([0, 4, "\n\x02/a"]);
  });

  it("takes several messages of a frame, and one over two", async () => {
    const bytes = Buffer.concat([1, 2, 3].map((revision) => framed(toBinary(WatchResponseSchema, watched(revision)))));
    answer = (stream) => send(stream, [bytes.subarray(0, 3), bytes.subarray(3, -1), bytes.subarray(-1)]);
    const revisions: bigint[] = [];
    for await (const { compactRevision } of watch.watch(one({}))) revisions.push(compactRevision);
    expect(revisions).toEqual([1n, 2n, 3n]);
  });

  it("takes a large message", async () => {
    const value = new Uint8Array(3 * 1024 * 1024).fill(7);
    const bytes = toBinary(RangeResponseSchema, create(RangeResponseSchema, { kvs: [{ value }] }));
    answer = (stream) => send(stream, [framed(bytes)]);
    const { kvs } = await kv.range({ key: bytesOf("/a") });
    expect(Buffer.compare(kvs[0]?.value ?? value.subarray(1), value)).toBe(0);
  });

  it("gives a status of the trailer, and one of an answer without a body", async () => {
    const refused = { "grpc-status": "8", "grpc-message": "etcdserver%3A mvcc" };
    answer = (stream) => send(stream, [framed(range(1))], refused);
    expect(await failure(kv.range({}))).toMatchObject({ code: Code.ResourceExhausted, rawMessage: "etcdserver: mvcc" });
    answer = (stream) => stream.respond({ ...head, ...refused }, { endStream: true });
    expect(await failure(kv.range({}))).toMatchObject({ code: Code.ResourceExhausted, rawMessage: "etcdserver: mvcc" });
  });

  it.each<readonly [what: string, answer: Answer]>([
    ["without a message", (stream) => send(stream, [])],
    ["with two messages", (stream) => send(stream, [framed(range(1)), framed(range(2))])],
    ["with half a message", (stream) => send(stream, [framed(range(1)).subarray(0, -1)])],
    ["with a compressed message", (stream) => send(stream, [Buffer.from([1, 0, 0, 0, 0])])],
    ["without a status", (stream) => send(stream, [framed(range(1))], {})],
    ["of something else than gRPC", (stream) => stream.respond({ ":status": 502 }, { endStream: true })],
    ["that is cut", (stream) => void stream.write(framed(range(1)), () => stream.close(2))],
    ["that breaks with the connection", (stream) => stream.session?.destroy()],
  ])("refuses an answer %s, as one whose outcome is not known", async (_, how) => {
    answer = how;
    const error = await failure(kv.range({}));
    expect(error instanceof ConnectError && error.metadata.has("grpc-status")).toBe(false);
  });

  it("ends a call with its signal, though the server stays silent, and tells the server", async () => {
    const closed = Promise.withResolvers<number | undefined>();
    const stop = new AbortController();
    answer = (stream) => {
      stream.once("close", () => closed.resolve(stream.rstCode));
      stop.abort();
    };
    await failure(kv.range({}, { signal: stop.signal }));
    expect(await closed.promise).toBe(8);
    expect(await failure(kv.range({}, { signal: stop.signal }))).toBeInstanceOf(ConnectError);
  });
});

function range(revision: number): Uint8Array {
  return toBinary(RangeResponseSchema, create(RangeResponseSchema, { header: { revision: BigInt(revision) } }));
}

function watched(compactRevision: number) {
  return create(WatchResponseSchema, { compactRevision: BigInt(compactRevision) });
}

function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

async function* one<T>(value: T): AsyncGenerator<T> {
  yield value;
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => expect.fail("it succeeded"),
    (error: unknown) => error,
  );
}
