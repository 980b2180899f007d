/** A boot thread without news from the first one, one with an old proof, and one that dies. */

import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { BootThread } from "../../src/app/threads/boot-thread.ts";
import { BootThreads, type ThreadStart } from "../../src/app/threads/boot-threads.ts";
import { FirstThread } from "../../src/app/threads/first-thread.ts";
import { threadRequests } from "../../src/app/threads/thread-answers.ts";
import type { FromThread, ThreadState, ToThread } from "../../src/app/threads/wire.ts";
import { ProfileAssetIndex } from "../../src/assets/profile-asset-index.ts";
import { encodeMeta, metaPath } from "../../src/installs/ledger/ledger-documents.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import type { FeedListener } from "../../src/model/feed.ts";
import { type Labels, labelsFromQuery, sentLabels } from "../../src/model/labels/labels.ts";
import { freePorts } from "../../tools/cluster/ports.ts";
import { groupDocument, profileDocument, syncedDocument } from "../boot/feed-documents.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { silentLog } from "../helpers/test-store.ts";

const boot = { kernel: "/assets/linux", initrd: [], args: [], efiInitrd: false, kind: "kernel" } as const;
const documents = [
  profileDocument("lab/linux", { boot }),
  profileDocument("lab/wipe", { boot, effect: "Install" }),
  groupDocument("lab/node", { profile: "linux", selector: { serial: "1" } }),
  groupDocument("lab/new", { profile: "wipe", selector: { serial: "2" } }),
  syncedDocument(),
];

const proven = (atMs: number | undefined) => ({ store: atMs, ledger: atMs });

const fault = () => Promise.reject(new RangeError("a secret"));
/** A first thread that answers no question, by a fault of davit. */
const faulty = { permit: fault, report: fault, sign: fault, render: fault, hash: fault };

/** The state of an open davit whose documents are proven now. */
function stateAt(clock: Clock, more: Partial<ThreadState> = {}): ToThread {
  const nowMs = clock.monotonicMs();
  const rest = { proven: proven(nowMs), settlingSinceMs: undefined, isOpen: true, sentAtMs: nowMs };
  return { kind: "state", ...rest, ...more };
}

let folder: string;
let start: ThreadStart;
let url: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-threads-"));
  const [port = 0] = await freePorts(1);
  const bootAddress = { host: "127.0.0.1", port };
  url = `http://127.0.0.1:${port}`;
  start = {
    config: {
      ...{ bootAddress, advertiseAddress: bootAddress, bootThreads: 2, installMaxSourceAgeMs: 60_000 },
      ...{
        grubSeparator: "auto",
        grubCommands: "auto",
        assetsDir: folder,
        assetsDotfiles: false,
        limits: { assetsCacheBytes: 1_000_000 },
      },
      ...{ bootTlsAddress: undefined, advertiseTlsAddress: undefined, bootTlsClientCaFile: undefined },
      ...{ bootTlsCertFile: undefined, bootTlsKeyFile: undefined, secretsKeyFile: undefined },
      ...{ signingKey: undefined, grubSigningKey: undefined, clientLimitExempt: undefined, trustedProxies: undefined },
    },
    ...{ publicKeys: { signer: undefined, grubSigner: undefined }, hasDesk: true, fetchesAssets: true },
  };
});
afterEach(() => rm(folder, { recursive: true }));

async function ask(path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const sent = request(`${url}${path}`, { agent: false }, (response) => {
    text(response).then((body) => resolve(`${response.statusCode} ${body.trim()}`), reject);
  });
  sent.on("error", reject).end();
  return await promise;
}

/** Starts a thread as its worker runs it, with another clock. */
async function threadOf(clock: Clock) {
  const posted: FromThread[] = [];
  const thread = new BootThread(
    start,
    new FirstThread({ postMessage: (message) => posted.push(message) }, clock),
    clock,
  );
  await thread.begin();
  return { thread, posted };
}

it("has the monotonic clock of the process", async () => {
  await setTimeout(Math.max(0, 1_000 - performance.now()));
  const worker = new Worker("require('node:worker_threads').parentPort.postMessage(performance.now())", { eval: true });
  const [thereMs] = await once(worker, "message");
  const hereMs = performance.now();
  expect(thereMs).toBeLessThanOrEqual(hereMs);
  // The clock of the thread began with the process, not with the thread.
  expect(thereMs).toBeGreaterThan(1_000);
});

it("listens when it has both feeds and davit is open, and answers nothing after 10 s without news", async () => {
  const clock = new FakeClock();
  const { thread, posted } = await threadOf(clock);
  await thread.take({ kind: "documents", feed: "store", documents, isLast: true });
  await thread.take(stateAt(clock, { proven: proven(undefined) }));
  await expect(ask("/")).rejects.toThrow("ECONNREFUSED");
  await thread.take({ kind: "documents", feed: "ledger", documents: [], isLast: true });
  expect(posted).toContainEqual({ kind: "listening" });
  await thread.take(stateAt(clock));
  for (const path of ["/ipxe?serial=1", "/metadata?serial=1"]) expect(await ask(path)).toMatch(/^200/);
  await clock.advance(9_999);
  expect(await ask("/ipxe?serial=1")).toMatch(/^200/);
  await clock.advance(1);
  for (const path of ["/ipxe?serial=1", "/grub?serial=1", "/metadata?serial=1", "/ipxe?serial=2", "/ipxe?serial=9"]) {
    expect(await ask(path)).toMatch(/^503 (# )?503 not ready/);
  }
  // A proof that the thread reads too late does not count.
  await thread.take(stateAt(clock, { sentAtMs: clock.monotonicMs() - 10_000 }));
  expect(await ask("/ipxe?serial=1")).toMatch(/^503/);
  await thread.take(stateAt(clock));
  expect(await ask("/ipxe?serial=1")).toMatch(/^200/);
  await thread.take({ kind: "stop" });
});

it("installs by its own proof, and by each change in its order", async () => {
  const clock = new FakeClock();
  const { thread } = await threadOf(clock);
  for (const feed of ["store", "ledger"] as const) {
    const all = feed === "store" ? documents : [];
    await thread.take({ kind: "documents", feed, documents: all.slice(0, 2), isLast: false });
    await thread.take({ kind: "documents", feed, documents: all.slice(2), isLast: true });
  }
  await thread.take(stateAt(clock, { proven: proven(undefined) }));
  expect(await ask("/ipxe?serial=2")).toBe("503 503 install not certain");
  await thread.take(stateAt(clock));
  expect(await ask("/ipxe?serial=2")).toMatch(/^200/);
  // Proofs arrive, but the first thread has not heard from its source.
  for (let beat = 0; beat < 61; beat++) {
    await clock.advance(1_000);
    await thread.take(stateAt(clock, { proven: proven(0) }));
  }
  expect(await ask("/ipxe?serial=2")).toBe("503 503 install not certain");
  expect(await ask("/ipxe?serial=1")).toMatch(/^200/);
  await thread.take(stateAt(clock));
  const [path] = groupDocument("lab/new", {});
  await thread.take({ kind: "changes", feed: "store", changes: [{ path, text: undefined }] });
  expect(await ask("/ipxe?serial=2")).toBe("404 404 no matching group");
  await thread.take({ kind: "stop" });
});

it("waits for more objects no longer than the first thread", async () => {
  const clock = new FakeClock();
  await clock.advance(60_000);
  const { thread } = await threadOf(clock);
  const rest = groupDocument("lab/rest", { profile: "wipe", selector: {}, matchAll: true });
  await thread.take({ kind: "documents", feed: "store", documents: [...documents, rest], isLast: true });
  await thread.take({ kind: "documents", feed: "ledger", documents: [], isLast: true });
  await thread.take(stateAt(clock, { settlingSinceMs: clock.monotonicMs() }));
  expect(await ask("/ipxe?serial=9")).toBe("503 503 install not certain");
  await thread.take(stateAt(clock, { settlingSinceMs: 55_000 }));
  await clock.advance(4_999);
  expect(await ask("/ipxe?serial=9")).toBe("503 503 install not certain");
  await clock.advance(1);
  expect(await ask("/ipxe?serial=9")).toMatch(/^200/);
  await thread.take(stateAt(clock, { settlingSinceMs: clock.monotonicMs() }));
  expect(await ask("/ipxe?serial=9")).toBe("503 503 install not certain");
  await thread.take({ kind: "stop" });
});

it("installs by no proof of documents that others have replaced", async () => {
  const clock = new FakeClock();
  const { thread } = await threadOf(clock);
  await thread.take({ kind: "documents", feed: "store", documents, isLast: true });
  await thread.take({ kind: "documents", feed: "ledger", documents: [], isLast: true });
  await thread.take(stateAt(clock));
  // What machines have reported prevents no install here.
  await thread.take({ kind: "documents", feed: "ledger", documents: [], isLast: true });
  expect(await ask("/ipxe?serial=2")).toMatch(/^200/);
  // The followed store was restored from a backup: its documents may be older, and no proof covers them.
  await thread.take({ kind: "documents", feed: "store", documents: documents.slice(0, 2), isLast: false });
  expect(await ask("/ipxe?serial=2")).toMatch(/^200/);
  await thread.take({ kind: "documents", feed: "store", documents: documents.slice(2), isLast: true });
  expect(await ask("/ipxe?serial=2")).toBe("503 503 install not certain");
  expect(await ask("/ipxe?serial=1")).toMatch(/^200/);
  await thread.take(stateAt(clock));
  expect(await ask("/ipxe?serial=2")).toMatch(/^200/);
  await thread.take({ kind: "stop" });
});

it("installs by no proof of a ledger that another has replaced, where machines may report labels", async () => {
  const clock = new FakeClock();
  const { thread } = await threadOf(clock);
  const reporting = profileDocument("lab/once", { boot, reports: { labels: { os: ["installed"] } } });
  const ledger = [[metaPath, encodeMeta({ id: "9f3c0a52", beganAtMs: 0 })]] as const;
  await thread.take({ kind: "documents", feed: "store", documents: [...documents, reporting], isLast: true });
  await thread.take({ kind: "documents", feed: "ledger", documents: ledger, isLast: true });
  await thread.take(stateAt(clock));
  expect(await ask("/ipxe?serial=2")).toMatch(/^200/);
  await thread.take({ kind: "documents", feed: "ledger", documents: ledger, isLast: true });
  expect(await ask("/ipxe?serial=2")).toBe("503 503 install not certain");
  expect(await ask("/ipxe?serial=1")).toMatch(/^200/);
  await thread.take(stateAt(clock));
  expect(await ask("/ipxe?serial=2")).toMatch(/^200/);
  await thread.take({ kind: "stop" });
});

it("reports labels that match no Group as they were sent", async () => {
  const clock = new FakeClock();
  const { thread, posted } = await threadOf(clock);
  await thread.take({ kind: "documents", feed: "store", documents, isLast: true });
  await thread.take({ kind: "documents", feed: "ledger", documents: [], isLast: true });
  await thread.take(stateAt(clock, { proven: proven(undefined) }));
  const query = "uuid=bad&serial=9";
  expect(await ask(`/ipxe?${query}`)).toBe("404 404 no matching group");
  await thread.take({ kind: "stop" });
  const report = vi.fn<(labels: Labels) => void>();
  const takeRequest = threadRequests({ follow: () => () => {}, nearMisses: { report } });
  for (const message of posted.map((each) => structuredClone(each))) {
    if (message.kind === "events") for (const event of message.events) takeRequest(event);
  }
  expect(report.mock.calls.map(([labels]) => sentLabels(labels))).toEqual([sentLabels(labelsFromQuery(query))]);
});

it("logs what cannot be copied to the first thread without it", () => {
  const posted: FromThread[] = [];
  const port = { postMessage: (message: FromThread) => posted.push(structuredClone(message)) };
  const log = new FirstThread(port, new FakeClock()).log("http");
  log.error({ path: "/a", err: new Error("b", { cause: () => "c" }) }, "request failed");
  log.warn({ path: "/a" }, "asset changed");
  expect(posted).toEqual([
    { kind: "log", level: "error", part: "http", data: {}, message: "request failed" },
    { kind: "log", level: "warn", part: "http", data: { path: "/a" }, message: "asset changed" },
  ]);
});

it("is replaced when it dies: counted, its gauges taken back, and without a word of the error", async () => {
  const metrics = createMetrics("0");
  const lines: unknown[] = [];
  const log = { ...silentLog, error: (data: object, message: string) => lines.push({ ...data, message }) };
  const followers = new Set<FeedListener>();
  const feed = (all: typeof documents) => ({
    follow: (_: string, listener: FeedListener) => {
      followers.add(listener);
      listener.replaced(all);
      return () => followers.delete(listener);
    },
  });
  const wanted = new ProfileAssetIndex(() => {});
  const ended: { status: number; isCut: boolean }[] = [];
  const whole = [200, 503, 200].map((status) => ({ status, isCut: false }));
  const threads = new BootThreads({
    ...{ start, wanted, clock: systemClock, log, metrics, count: 1 },
    feeds: { store: feed(documents), ledger: feed([]) },
    state: () => ({ proven: proven(systemClock.monotonicMs()), settlingSinceMs: undefined }),
    answers: faulty,
    follow:
      () =>
      ({ status, isCut }) =>
        ended.push({ status, isCut }),
    nearMisses: { report: () => {} },
    worker: new URL("../helpers/mortal-thread.ts", import.meta.url),
  });
  const has = (line: string) => expect.poll(async () => (await metrics.text()).split("\n")).toContain(line);
  threads.start();
  threads.open();
  await has("davit_boot_threads 1");
  expect(await ask("/ipxe?serial=1")).toMatch(/^200/);
  // A question that fails in the first thread ends no thread.
  expect(await ask(`/report/${"x".repeat(43)}?state=installed`)).toBe("503 503 the report cannot be logged now");
  await expect.poll(() => ended).toEqual(whole.slice(0, 2));
  // A download that its client does not read is running when the thread dies.
  await writeFile(join(folder, "large"), Buffer.alloc(30_000_000));
  const cut = vi.fn();
  const download = request(`${url}/assets/large`, (response) => response.on("error", cut).on("close", cut).pause());
  download.on("error", cut).end();
  await has("davit_boot_asset_streams 1");
  wanted.noteChecked({ name: "die", sha256: "0".repeat(64), profiles: [] });
  await has("davit_boot_threads_lost_total 1");
  await has("davit_boot_asset_streams 0");
  await has("davit_boot_threads 1");
  expect(await ask("/ipxe?serial=1")).toMatch(/^200/);
  expect(followers.size).toBe(2);
  expect(lines).toEqual([
    { question: "report", why: "RangeError", message: "question of a boot thread failed" },
    { waitMs: 500, why: "RangeError", message: "boot thread ended, another one starts" },
  ]);
  download.destroy();
  // A stop cuts this one.
  const cutByStop = request(`${url}/assets/large`, (response) => response.on("error", cut).pause());
  cutByStop.on("error", cut).end();
  await has("davit_boot_asset_streams 1");
  await threads.stop();
  expect(ended).toEqual([...whole, { status: 200, isCut: true }]);
  expect(followers.size).toBe(0);
  await has("davit_boot_threads 0");
});

it("gets a failure in place of an answer that cannot be copied", async () => {
  const error = vi.fn();
  const feed = (all: typeof documents) => ({
    follow: (_: string, { replaced }: FeedListener) => {
      replaced(all);
      return () => undefined;
    },
  });
  const threads = new BootThreads({
    ...{ start, clock: systemClock, metrics: createMetrics("0"), count: 1, wanted: undefined },
    ...{ log: { ...silentLog, error }, feeds: { store: feed(documents), ledger: feed([]) } },
    ...{ follow: () => () => undefined, nearMisses: { report: () => undefined } },
    answers: { ...faulty, report: async () => (() => undefined) as never },
    state: () => ({ proven: proven(systemClock.monotonicMs()), settlingSinceMs: undefined }),
  });
  threads.start();
  threads.open();
  const report = `/report/${"x".repeat(43)}?state=installed`;
  await expect.poll(() => ask(report), { timeout: 20_000 }).toBe("503 503 the report cannot be logged now");
  expect(error.mock.calls).toEqual([
    [{ question: "report", why: expect.any(String) }, "question of a boot thread failed"],
  ]);
  await threads.stop();
});

it("is tried again while the system gives no thread", async () => {
  const clock = new FakeClock();
  const metrics = createMetrics("0");
  const error = vi.fn();
  const feed = { follow: () => () => {} };
  const threads = new BootThreads({
    ...{ start, clock, metrics, count: 1, wanted: undefined, answers: faulty, follow: () => () => {} },
    ...{ log: { ...silentLog, error }, feeds: { store: feed, ledger: feed }, nearMisses: { report: () => {} } },
    state: () => ({ proven: proven(undefined), settlingSinceMs: undefined }),
    // The constructor throws, as when the system allows no further thread.
    worker: new URL("http://localhost/"),
  });
  threads.start();
  await clock.advance(500);
  await clock.advance(1_000);
  expect(error.mock.calls.slice(0, 2)).toEqual([
    [{ waitMs: 500, why: "ERR_INVALID_URL_SCHEME" }, "boot thread ended, another one starts"],
    [{ waitMs: 1_000, why: "ERR_INVALID_URL_SCHEME" }, "boot thread ended, another one starts"],
  ]);
  await threads.stop();
  expect(await metrics.text()).toContain(`davit_boot_threads_lost_total ${error.mock.calls.length}\n`);
});
