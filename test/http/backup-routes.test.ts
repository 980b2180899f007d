import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { answerError } from "../../src/http/errors.ts";
import { type SecretsGuard, secretsGuard } from "../../src/http/guard/store-guard.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { BackupStreams, type BackupStreamsOptions, backupAnswer } from "../../src/http/store/backups.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { nextTurn } from "../../src/lib/slices.ts";
import { readBackup } from "../../src/store/backup/backup.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openStore, silentLog } from "../helpers/test-store.ts";

let clock: FakeClock;
let store: Store;
let streams: BackupStreams;
let server: HttpServer | undefined;
let port = 0;
let said: string[];
const ends: (() => void)[] = [];

beforeEach(async () => {
  clock = new FakeClock();
  store = await openStore();
  await store.submit({ kind: "set", path: storePath("/davit/_secrets/ns/p/h"), value: "secret text" });
  said = [];
});

/** As it is off loopback, without credentials. */
const closed = secretsGuard({ asksForCredentials: false, isLoopback: false, localToken: "unused-0123456789" });

afterEach(async () => {
  for (const end of ends.splice(0)) end();
  await expect.poll(() => streams.count).toBe(0);
  await server?.close();
  server = undefined;
  await store.stop();
});

async function start(
  options: Partial<BackupStreamsOptions> = {},
  guard: SecretsGuard = () => undefined,
): Promise<void> {
  const say = (_data: object, message: string) => said.push(message);
  const log = { ...silentLog, info: say, warn: say, error: say, child: () => log };
  streams = new BackupStreams({ store, clock, log, ...options });
  const handler = { begin: () => undefined, handle: backupAnswer({ store, streams, guard }) };
  server = createServer({ log: silentLog, clock: systemClock, answerError, handler });
  port = (await server.listen({ host: "127.0.0.1", port: 0, option: "--store-address" })).port;
}

const ask = () => fetch(`http://127.0.0.1:${port}/davit/v1/backup`);

/** A backup without an end, made slice by slice: how many of them were asked for, and whether its maker was let go. */
function endless(sliceBytes = 128 * 1024) {
  const seen = { slices: 0, isOver: false };
  const backup = async function* () {
    try {
      for (;;) {
        seen.slices += 1;
        yield Buffer.alloc(sliceBytes);
        await nextTurn();
      }
    } finally {
      seen.isOver = true;
    }
  };
  return { seen, store: { backup } };
}

/** Asks, and reads nothing of the answer. */
async function askWithoutReading(): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  ends.push(() => socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.pause();
  socket.write("GET /davit/v1/backup HTTP/1.1\r\nHost: x\r\n\r\n");
  await expect.poll(() => streams.count).toBeGreaterThan(0);
  return socket;
}

/** Waits until what is made for a reader who reads nothing does not grow any more. */
async function standstill(seen: { readonly slices: number }): Promise<number> {
  await expect.poll(() => clock.sleeping).toBe(1);
  return seen.slices;
}

describe("`GET /davit/v1/backup`", () => {
  it("answers with everything at one index, secrets among it", async () => {
    await start();
    const answer = await ask();
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    const bytes = Buffer.from(await answer.arrayBuffer());
    const { head, tree } = await readBackup(async function* () {
      yield bytes;
    }, "it");
    expect(head).toMatchObject({ clusterId: store.identity.clusterId, index: 1, raftIndex: 2 });
    expect([...tree.walk(storePath("/davit/_secrets/ns/p/h"))]).toMatchObject([{ value: "secret text" }]);
    await expect.poll(() => said).toEqual(["backup begins", "backup sent"]);
    expect(streams.count).toBe(0);
  });

  it("is closed where anyone could ask and secrets would leave the machine", async () => {
    await start({}, closed);
    const refused = await ask();
    expect(refused.status).toBe(403);
    expect(await refused.text()).toBe(
      '{"errorCode":110,"message":"The request requires user authentication",' +
        '"cause":"this store asks for no credentials, and shows no Secrets: start it with --store-token-file or --store-client-ca-file","index":0}\n',
    );
  });

  it("answers 503 while two are sent", async () => {
    const { store: slow } = endless();
    await start({ store: slow });
    for (const count of [1, 2]) {
      await askWithoutReading();
      await expect.poll(() => streams.count).toBe(count);
    }
    const refused = await ask();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "60"]);
  });

  it("is cut when the making of it fails, never ended as if it were whole", async () => {
    const backup = async function* () {
      yield Buffer.from("a part");
      throw new Error("A bug");
    };
    await start({ store: { backup } });
    await expect(ask().then((answer) => answer.text())).rejects.toThrow();
    await expect.poll(() => said).toEqual(["backup begins", "backup failed"]);
    expect(streams.count).toBe(0);
  });
});

describe("a reader", () => {
  it("who reads nothing costs no more than what is on its way", async () => {
    const { seen, store: big } = endless();
    await start({ store: big });
    const socket = await askWithoutReading();
    const slices = await standstill(seen);
    for (let turn = 0; turn < 100; turn++) await nextTurn();
    expect(seen.slices).toBe(slices);
    // What the kernel and the two ends buffer, and not gigabytes.
    expect(slices).toBeLessThan(200);
    socket.resume();
    await expect.poll(() => seen.slices, { timeout: 10_000 }).toBeGreaterThan(2 * slices);
  });

  it("who takes nothing for a minute is cut", async () => {
    const { seen, store: big } = endless();
    await start({ store: big });
    await askWithoutReading();
    await standstill(seen);
    await clock.advance(59_000);
    expect(streams.count).toBe(1);
    await clock.advance(1_000);
    await expect.poll(() => seen.isOver).toBe(true);
    expect(streams.count).toBe(0);
    expect(said).toEqual(["backup begins", "backup cut"]);
  });

  it.each([
    { name: "while it is written to", isReading: true },
    { name: "while it is waited for", isReading: false },
  ])("who goes away $name ends the walk", async ({ isReading }) => {
    const { seen, store: big } = endless();
    await start({ store: big });
    const socket = await askWithoutReading();
    if (isReading) socket.resume();
    else await standstill(seen);
    socket.destroy();
    await expect.poll(() => seen.isOver).toBe(true);
    expect(streams.count).toBe(0);
  });

  it("is cut when the listener closes, and told so by the protocol", async () => {
    const { seen, store: big } = endless(1_000);
    await start({ store: big });
    const answer = await ask();
    await server?.close();
    await expect.poll(() => seen.isOver).toBe(true);
    await expect(answer.arrayBuffer()).rejects.toThrow();
  });
});
