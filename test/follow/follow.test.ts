import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:https";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { CopyFile } from "../../src/follow/copy-file.ts";
import { StoreFollower, type StoreFollowerOptions } from "../../src/follow/follow.ts";
import type { StoreCredentials } from "../../src/follow/store-request.ts";
import type { FeedListener } from "../../src/model/feed.ts";
import type { FollowLine } from "../../src/model/follow-line.ts";
import { syncedPath } from "../../src/model/objects/documents.ts";
import { makeAuthority } from "../helpers/certificates.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { missing } from "../helpers/requirements.ts";
import { memoryFiles, silentLog } from "../helpers/test-store.ts";
import { FakeStore } from "./fake-store.ts";

/** Waits between connections pass at once, and are written down; the silence after which one ends does not. */
class QuickClock extends FakeClock {
  readonly waitsMs: number[] = [];

  override async sleep(durationMs: number, signal?: AbortSignal): Promise<void> {
    if (durationMs >= 5_000) return await super.sleep(durationMs, signal);
    this.waitsMs.push(durationMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

let clock: QuickClock;
let store: FakeStore;
let follower: StoreFollower | undefined;
let said: string[];

beforeEach(async () => {
  clock = new QuickClock();
  store = await FakeStore.start();
  said = [];
});

afterEach(async () => {
  await follower?.stop();
  follower = undefined;
  await store.stop();
});

/** What a listener was told, and what it knows by then. */
class Told implements FeedListener {
  readonly documents = new Map<string, string>();
  readonly steps: string[] = [];

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    this.documents.clear();
    for (const [path, text] of documents) this.documents.set(path, text);
    this.steps.push(`replaced ${this.documents.size}`);
  }

  changed(changes: Parameters<FeedListener["changed"]>[0]): void {
    for (const { path, text } of changes) {
      if (text === undefined) this.documents.delete(path);
      else this.documents.set(path, text);
    }
    this.steps.push(`changed ${changes.length}`);
  }
}

async function start(options: Partial<StoreFollowerOptions> = {}): Promise<Told> {
  const say = (data: object, message: string) => said.push(`${message} ${JSON.stringify(data)}`);
  follower = new StoreFollower({
    urls: [store.url],
    credentials: async () => ({}),
    clock,
    random: () => 0,
    log: { ...silentLog, warn: say, error: say },
    ...options,
  });
  const told = new Told();
  follower.follow("/davit", told);
  await follower.start();
  return told;
}

const put = (path: string, text = "t"): FollowLine => ({ kind: "put", path, text });
const commit = (index: number): FollowLine => ({ kind: "commit", index });
const heartbeat = (index: number): FollowLine => ({ kind: "heartbeat", index });
const dump = (cluster: string, index: number, ...documents: readonly FollowLine[]): readonly FollowLine[] => [
  { kind: "dump", cluster },
  ...documents,
  commit(index),
  heartbeat(index),
];
const synced = put(syncedPath, "{}");

describe("a follower", () => {
  it("asks for everything first, and hands on the dump and each later step", async () => {
    const told = await start();
    const connection = await store.next();
    expect(connection.target).toBe("/davit/v1/follow");
    connection.say(
      ...dump("c", 4, put("/davit/a"), put("/davit/b"), synced),
      put("/davit/c"),
      put("/davit/d"),
      commit(6),
    );
    await expect.poll(() => told.steps).toEqual(["replaced 0", "replaced 3", "changed 2"]);
    expect([...told.documents.keys()]).toEqual(["/davit/a", "/davit/b", syncedPath, "/davit/c", "/davit/d"]);
  });

  it("puts together what comes in pieces, cut in the middle of characters", async () => {
    const told = await start();
    const { response } = await store.next();
    const bytes = Buffer.from(
      dump("c", 1, put("/davit/ä", "\u{1F600}"))
        .map((line) => `${JSON.stringify(line)}\n`)
        .join(""),
    );
    response.socket?.setNoDelay(true);
    for (const byte of bytes) await new Promise((resolve) => response.write(Buffer.of(byte), resolve));
    await expect.poll(() => told.documents.get("/davit/ä")).toBe("\u{1F600}");
  });

  it("gives each listener only what is below its prefix", async () => {
    await start();
    const groups = new Told();
    follower?.follow("/davit/groups", groups);
    (await store.next()).say(
      ...dump("c", 1, put("/davit/groups/a"), put("/davit/groupsx")),
      put("/davit/x"),
      commit(2),
    );
    await expect.poll(() => follower?.status.index).toBe(2);
    expect(groups.steps).toEqual(["replaced 0", "replaced 1"]);
  });

  it("is ready once what it serves is what the store has, with a finished sync", async () => {
    await start();
    let isHeard = false;
    void follower?.heard.then(() => {
      isHeard = true;
    });
    const connection = await store.next();
    connection.say(...dump("c", 1, put("/davit/a")));
    await expect.poll(() => follower?.status.isConnected).toBe(true);
    expect(isHeard).toBe(false);
    connection.say(synced, commit(2));
    await expect.poll(() => isHeard).toBe(true);
  });

  it.each([
    { name: "ends", end: (store: FakeStore) => store.next().then(({ response }) => response.end()) },
    { name: "is cut", end: (store: FakeStore) => store.next().then(({ response }) => response.destroy()) },
    {
      name: "is refused",
      end: (store: FakeStore) => store.next().then(({ response }) => response.writeHead(401).end()),
    },
    {
      name: "is sent elsewhere",
      end: (store: FakeStore) =>
        store.next().then(({ response }) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end()),
    },
  ])("comes again when the connection $name, with what it has, and serves that meanwhile", async ({ end }) => {
    const told = await start();
    const first = await store.next();
    first.say(...dump("c f", 7, put("/davit/a"), synced));
    await expect.poll(() => follower?.status.index).toBe(7);
    first.response.end();
    await end(store);
    const again = await store.next();
    expect(again.target).toBe("/davit/v1/follow?cluster=c+f&after=7");
    expect(told.documents.size).toBe(2);
    again.say({ kind: "resume", cluster: "c f" }, put("/davit/b"), commit(8));
    await expect.poll(() => told.steps).toEqual(["replaced 0", "replaced 2", "changed 1"]);
  });

  it("waits longer after each failure, up to 5 s, half of it by chance, and anew once it has caught up", async () => {
    await start({ random: () => 0.5 });
    for (let failure = 0; failure < 7; failure++) (await store.next()).response.destroy();
    const caughtUp = await store.next();
    caughtUp.say(...dump("c", 1));
    await expect.poll(() => follower?.status.isConnected).toBe(true);
    caughtUp.response.destroy();
    await store.next();
    expect(clock.waitsMs).toEqual([250, 500, 1000, 2000, 4000, 5000, 5000, 250].map((wholeMs) => wholeMs * 0.75));
  });

  it("gives a connection up after 30 s of silence, and not before", async () => {
    const told = await start();
    const first = await store.next();
    first.say(...dump("c", 1, synced));
    await expect.poll(() => follower?.status.index).toBe(1);
    await clock.advance(20_000);
    first.say(heartbeat(2));
    await expect.poll(() => follower?.status.index).toBe(2);
    await clock.advance(29_000);
    expect(follower?.status).toMatchObject({ isConnected: true, index: 2, ageSeconds: 29 });
    await clock.advance(1_000);
    expect((await store.next()).target).toContain("after=2");
    expect(said).toEqual([expect.stringContaining('"problem":"the store fell silent"')]);
    expect(told.documents.size).toBe(1);
  });

  it("gives up one that is never answered", async () => {
    await start();
    await store.next();
    await clock.advance(30_000);
    await store.next();
    expect(said).toEqual([expect.stringContaining("the store fell silent")]);
  });

  it("tries anew when there is no connection after 5 s, as at the address of a pod that is gone", async () => {
    let tries = 0;
    const mute = createTcpServer(() => {
      tries += 1;
    });
    mute.listen(0, "127.0.0.1");
    await once(mute, "listening");
    onTestFinished(() => void mute.close());
    const address = mute.address();
    // It takes connections and says nothing, so that TLS never begins.
    await start({ urls: [new URL(`https://127.0.0.1:${typeof address === "object" ? address?.port : ""}`)] });
    await expect.poll(() => tries).toBe(1);
    await clock.advance(4_999);
    expect(said).toEqual([]);
    await clock.advance(1);
    await expect.poll(() => tries).toBe(2);
    expect(said).toEqual([expect.stringContaining("no connection in time")]);
  });

  it.each([
    { name: "is no JSON", bytes: "{nonsense secretword\n", why: "a line is not of this protocol" },
    { name: "is of another protocol", bytes: '{"kind":"secretword"}\n', why: "a line is not of this protocol" },
    { name: "is not UTF-8", bytes: Buffer.from([0xff, 0x0a]), why: "a line is not UTF-8" },
    { name: "is too long", bytes: "x".repeat(300), why: "a line is too long" },
    { name: "has no place", bytes: '{"kind":"commit","index":0}\n', why: "a step into the past" },
  ])("drops the connection for a line that $name, quotes nothing of it, and keeps its copy", async ({ bytes, why }) => {
    const told = await start({ limits: { maxLineBytes: 200 } });
    const first = await store.next();
    first.say(...dump("c", 1, synced));
    await expect.poll(() => told.documents.size).toBe(1);
    first.response.write(bytes);
    expect((await store.next()).target).toContain("after=1");
    expect(said).toEqual([expect.stringContaining(`"why":"${why}"`)]);
    expect(said.join()).not.toContain("secretword");
    expect(told.documents.size).toBe(1);
  });

  it("says the same failure once, however often it happens", async () => {
    await start();
    for (let failure = 0; failure < 5; failure++) (await store.next()).response.writeHead(401).end();
    await store.next();
    expect(said).toEqual([expect.stringContaining('"why":"status 401"')]);
  });

  it("never replaces a copy that has a finished sync by one that has none", async () => {
    const told = await start();
    const first = await store.next();
    first.say(...dump("old", 9, put("/davit/a"), synced));
    await expect.poll(() => told.documents.size).toBe(2);
    first.response.end();
    const second = await store.next();
    expect(second.target).toContain("cluster=old");
    second.say(...dump("new", 1, put("/davit/b")), put("/davit/c"), commit(2));
    await expect.poll(() => said.join()).toContain("the store has not read everything");
    expect([...told.documents.keys()]).toEqual(["/davit/a", syncedPath]);
    second.say(synced, commit(3));
    await expect.poll(() => [...told.documents.keys()]).toEqual(["/davit/b", "/davit/c", syncedPath]);
  });

  it("asks for everything again after a bug of ours, since what was told may differ from the copy", async () => {
    const told = await start();
    const failing: FeedListener = {
      replaced: () => {},
      changed: () => {
        throw new Error("a bug");
      },
    };
    const unfollow = follower?.follow("/davit", failing);
    (await store.next()).say(...dump("c", 1, synced), put("/davit/a"), commit(2));
    const again = await store.next();
    // Without the run. With the index, so that a member of the store that is behind does not answer with less.
    expect(again.target).toBe("/davit/v1/follow?cluster=c&after=2");
    unfollow?.();
    again.say(...dump("c", 2, put("/davit/a"), synced));
    await expect.poll(() => told.steps.at(-1)).toBe("replaced 2");
    expect(said.join()).toContain("following failed");
  });

  it("ends while it is connected, and while it waits", async () => {
    await start();
    await store.next();
    await follower?.stop();
    expect(follower?.status.isConnected).toBe(false);
    await follower?.stop();
  });
});

describe("a follower with credentials", () => {
  it("ends while its credentials are read, and asks nothing after that", async () => {
    const read = Promise.withResolvers<StoreCredentials>();
    await start({ credentials: () => read.promise });
    const stopped = follower?.stop();
    read.resolve({});
    await stopped;
    expect(clock.sleeping).toBe(0);
  });

  it("shows its token, read anew for each connection", async () => {
    const tokens = ["first", "second"];
    await start({ credentials: async () => ({ token: tokens.shift() }) });
    const first = await store.next();
    expect(first.authorization).toBe("Bearer first");
    first.response.writeHead(401).end();
    expect((await store.next()).authorization).toBe("Bearer second");
  });

  it("comes again when they could not be read", async () => {
    let reads = 0;
    const credentials = async (): Promise<StoreCredentials> => {
      reads += 1;
      if (reads === 1) throw new Error('Cannot use "tokens": it cannot be read');
      return {};
    };
    await start({ credentials });
    expect((await store.next()).target).toBe("/davit/v1/follow");
    expect(said).toEqual([expect.stringContaining("it cannot be read")]);
  });
});

describe.skipIf(missing("openssl"))("a follower over TLS", () => {
  it.each([
    { name: "the wrong authority", isExpired: false, isStranger: true, why: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" },
    { name: "an expired certificate", isExpired: true, isStranger: false, why: "CERT_HAS_EXPIRED" },
  ])("hears nothing from a store with $name", async ({ isExpired, isStranger, why }) => {
    const folder = await mkdtemp(join(tmpdir(), "davit-follow-"));
    const authority = makeAuthority(folder);
    const { cert, key } = authority.issue("server", { isExpired });
    const { cert: ca } = isStranger ? makeAuthority(folder, "stranger") : authority;
    let requests = 0;
    const server = createServer({ cert, key }, () => {
      requests += 1;
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const address = server.address();
    const url = new URL(`https://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
    await start({ urls: [url], credentials: async () => ({ ca, token: "secret-token" }) });
    await expect.poll(() => said).toEqual([expect.stringContaining(why)]);
    await follower?.stop();
    server.close();
    expect(requests).toBe(0);
    await rm(folder, { recursive: true });
  });
});

describe("a follower with a copy on disk", () => {
  const files = memoryFiles;

  it("serves it before the store is reached, tells its age, and goes on from it", async () => {
    const disk = files();
    const first = new CopyFile({ path: "/d/copy", files: disk, clock: new FakeClock(), log: silentLog });
    first.keep({ cluster: "c", index: 5, documents: new Map([[syncedPath, "{}"]]) });
    await first.stop();
    clock.stepWallClock(90_000);
    const told = await start({ copyFile: new CopyFile({ path: "/d/copy", files: disk, clock, log: silentLog }) });
    expect(told.steps).toEqual(["replaced 0", "replaced 1"]);
    expect(follower?.status).toMatchObject({ isConnected: false, index: 5, ageSeconds: 90 });
    const connection = await store.next();
    expect(connection.target).toBe("/davit/v1/follow?cluster=c&after=5");
    connection.say({ kind: "resume", cluster: "c" }, heartbeat(6));
    await follower?.heard;
    expect(follower?.status).toMatchObject({ isConnected: true, index: 6, ageSeconds: 0 });
  });

  it("keeps what it serves, and only what has a finished sync", async () => {
    const disk = files();
    const copyFile = () => new CopyFile({ path: "/d/copy", files: disk, clock: new FakeClock(), log: silentLog });
    await start({ copyFile: copyFile() });
    const connection = await store.next();
    connection.say(...dump("c", 1, put("/davit/a")));
    await expect.poll(() => follower?.status.index).toBe(1);
    expect(await copyFile().load()).toBeUndefined();
    connection.say(synced, commit(2), put("/davit/b"), commit(3));
    await expect.poll(() => follower?.status.index).toBe(3);
    await follower?.stop();
    expect(await copyFile().load()).toMatchObject({ cluster: "c", index: 3 });
  });
});
