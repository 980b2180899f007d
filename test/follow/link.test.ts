/**
 * The two ways to the writer: a follower's over HTTP, and a boot thread's over a port. Both hand on the same documents,
 * proofs and answers.
 */

import { MessageChannel } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PortFeed } from "../../src/app/threads/boot-thread.ts";
import { Outbox } from "../../src/app/threads/boot-threads.ts";
import { FirstThread } from "../../src/app/threads/first-thread.ts";
import { answerTo } from "../../src/app/threads/thread-answers.ts";
import type { FromThread, ToThread } from "../../src/app/threads/wire.ts";
import { StoreFollower } from "../../src/follow/follow.ts";
import { Writers } from "../../src/follow/writers.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer } from "../../src/http/server.ts";
import { followAnswer } from "../../src/http/store/follow-routes.ts";
import { FollowStreams } from "../../src/http/store/follow-streams.ts";
import { permitRoutes } from "../../src/http/store/permit-routes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { Feed } from "../../src/model/feed.ts";
import { davitRoot } from "../../src/model/objects/documents.ts";
import type { AskWriter, PermitQuestion, PermitReply } from "../../src/model/permits/permit-wire.ts";
import type { SingleCommand } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { openStore, silentLog } from "../helpers/test-store.ts";

/** What a follower or a boot thread has of the writer. */
interface Link {
  readonly feed: Feed;
  readonly provenAtMs: () => number | undefined;
  readonly askWriter: AskWriter;
  /** Begins. The feed has its listener by then. */
  readonly start: () => Promise<void>;
}

let store: Store;
let provenAtMs: number | undefined;
let asked: unknown[];
let reply: () => Promise<PermitReply>;
const stops: (() => void | Promise<void>)[] = [];

const permits = {
  permit: async (question: PermitQuestion) => {
    asked.push(question);
    return await reply();
  },
  report: async (closing: unknown) => {
    asked.push(closing);
    return "final" as const;
  },
};

async function overHttp(): Promise<Link> {
  const streams = new FollowStreams({ store, clock: systemClock, provenAtMs: () => provenAtMs, beatMs: 20 });
  const follow = followAnswer({ store, streams, log: silentLog, guard: () => undefined, isReady: () => true });
  const routes = permitRoutes({
    ...{ store, permits, guard: () => undefined, clock: systemClock },
    ...{ sighted: () => undefined, handed: { take: async () => 0 } },
  });
  const server = createServer({
    ...{ log: silentLog, clock: systemClock, answerError },
    handler: {
      begin: () => undefined,
      handle: (exchange) => (routes.get(exchange.path) ?? follow)(exchange),
      end: () => streams.stop(),
    },
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--store-address" });
  const shared = { urls: [new URL(`http://127.0.0.1:${port}`)], credentials: async () => ({}) };
  const writers = new Writers({ ...shared, clock: systemClock, log: silentLog });
  const feed = new StoreFollower({ ...shared, clock: systemClock, random: () => 0, log: silentLog });
  stops.push(() => server.close());
  stops.push(() => feed.stop());
  stops.push(() => writers.stop());
  const start = () => feed.start();
  return { feed, provenAtMs: () => feed.status.provenAtMs, askWriter: writers.ask, start };
}

async function overPort(): Promise<Link> {
  const { port1: here, port2: there } = new MessageChannel();
  const first = new FirstThread(here, systemClock);
  const feed = new PortFeed();
  here.on("message", (message: ToThread) => {
    if (message.kind === "documents" || message.kind === "changes") feed.take(message);
    else if (message.kind === "state") feed.provenAtMs = message.proven.store;
    else if (message.kind === "answer" || message.kind === "failed") first.answered(message);
  });
  const outbox = new Outbox((message) => there.postMessage(message));
  const fault = () => Promise.reject(new Error());
  const answers = { ...permits, sign: fault, render: fault, hash: fault };
  const answering = { post: (answer: ToThread) => outbox.post(answer), failed: () => undefined };
  there.on("message", (message: FromThread) => {
    if (message.kind === "question") void answerTo(answers, message, answering);
  });
  const beats = setInterval(() => {
    const proven = { store: provenAtMs, ledger: undefined };
    const sentAtMs = systemClock.monotonicMs();
    outbox.post({ kind: "state", proven, settlingSinceMs: undefined, isOpen: true, sentAtMs });
  }, 20);
  stops.push(() => {
    clearInterval(beats);
    here.close();
  });
  const start = async () => void store.follow(davitRoot, outbox.listener("store"));
  return { feed, provenAtMs: () => feed.provenAtMs, askWriter: first.askWriter, start };
}

beforeEach(async () => {
  store = await openStore();
  [provenAtMs, asked, reply] = [undefined, [], async () => ({ kind: "late" })];
});
afterEach(async () => {
  for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
  await store.stop();
});

const set = (name: string, value: string): SingleCommand => ({
  kind: "set",
  path: storePath(`${davitRoot}/${name}`),
  value,
});
const question: PermitQuestion = { rawQuery: "serial=%7e1", purpose: "script", mayClaim: true, isSealed: false };

describe.each([
  { name: "HTTP", open: overHttp },
  { name: "a port", open: overPort },
])("over $name", ({ open }) => {
  it("a feed has all documents, then each step as a whole, in order", async () => {
    const seen: unknown[] = [];
    const many = Array.from({ length: 1_200 }, (_, at) => set(`many/${at}`, `${at} \u2028`));
    await store.submit({ kind: "batch", commands: [set("a", "1"), ...many] });
    const { feed, start } = await open();
    feed.follow(davitRoot, {
      replaced: (documents) => seen.push(new Map(documents).size),
      changed: (changes) => seen.push(changes.map(({ path, text }) => [path.slice(davitRoot.length), text])),
    });
    await start();
    await expect.poll(() => seen).toContain(1_201);
    await store.submit({ kind: "batch", commands: [set("a", "2"), set("b", "3")] });
    await store.submit({ kind: "delete", path: storePath(`${davitRoot}/a`) });
    await expect.poll(() => seen.at(-1)).toEqual([["/a", undefined]]);
    const steps = [
      [
        ["/a", "2"],
        ["/b", "3"],
      ],
      [["/a", undefined]],
    ];
    // A follower begins with its own copy, which is empty.
    expect(seen.filter((each) => each !== 0)).toEqual([1_201, ...steps]);
  });

  it("a proof is never later than the writer's, and there is none without the writer's", async () => {
    await store.submit(set("synced", "{}"));
    const { feed, provenAtMs: here, start } = await open();
    let isFilled = false;
    const filled = () => {
      isFilled = true;
    };
    feed.follow(davitRoot, { replaced: filled, changed: filled });
    await start();
    await expect.poll(() => isFilled).toBe(true);
    await systemClock.sleep(100);
    expect(here()).toBeUndefined();
    const atMs = systemClock.monotonicMs() - 5_000;
    provenAtMs = atMs;
    await expect.poll(here).toBeLessThanOrEqual(atMs);
    expect(here()).toBeGreaterThan(atMs - 1_000);
  });

  it("the writer gets each question as it was asked, and the answer comes back", async () => {
    const { askWriter } = await open();
    const chosen = { group: "lab/all", profile: "lab/install" };
    reply = async () => ({ kind: "refused", why: "spent", ...chosen });
    expect(await askWriter("permit", question)).toEqual({ kind: "refused", why: "spent", ...chosen });
    const closing = { kind: "report", token: "t", report: { state: "failed", progress: 5 }, address: "::1" } as const;
    expect(await askWriter("report", closing)).toBe("final");
    expect(asked).toEqual([question, closing]);
  });

  it("no answer comes of a fault, and none after a second", async () => {
    const { askWriter } = await open();
    reply = () => Promise.reject(new Error("a bug"));
    expect(await askWriter("permit", question)).toBeUndefined();
    reply = () => new Promise(() => undefined);
    const beganMs = systemClock.monotonicMs();
    expect(await askWriter("permit", question)).toBeUndefined();
    const tookMs = systemClock.monotonicMs() - beganMs;
    expect(tookMs).toBeGreaterThan(900);
    expect(tookMs).toBeLessThan(3_000);
  });
});
