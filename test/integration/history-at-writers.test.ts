/** A follower's history, over real sockets, at a writer that takes it, one whose answers are lost, and at others. */

import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpsServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { RemoteHistory } from "../../src/follow/remote-history.ts";
import { Writers } from "../../src/follow/writers.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { permitRoutes } from "../../src/http/store/permit-routes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { HandedIntake } from "../../src/records/history/handed-intake.ts";
import { encodeRequest } from "../../src/records/history/request-text.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { Store } from "../../src/store/store.ts";
import { makeAuthority } from "../helpers/certificates.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { missing } from "../helpers/requirements.ts";
import { openStore, silentLog } from "../helpers/test-store.ts";
import { handed, startHistory } from "../records/history/seen-requests.ts";

const mac = "mac=52-54-00-00-00-01";
let store: Store;
let clock: FakeClock;
const servers: (HttpServer | Server)[] = [];
const ends: (() => void | Promise<void>)[] = [];
beforeEach(async () => {
  store = await openStore();
  clock = new FakeClock(1_000);
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  for (const server of servers.splice(0)) await server.close();
  await store.stop();
});

/** @param kind a writer, one that loses its first answers, a member that does not lead, a davit of an earlier version,
 * or one that refuses. */
async function writer(kind: "taking" | "losing" | "other" | "earlier" | "refusing") {
  const { history } = startHistory();
  await history.load();
  let asked = 0;
  const routes = permitRoutes({
    store,
    guard: () => (kind === "refusing" ? new StoreError("unauthorized", "no", 0) : undefined),
    permits: { permit: async () => ({ kind: "late" }), report: async () => "late" },
    handed: kind === "other" ? { take: async () => undefined } : new HandedIntake({ history, clock }),
    clock,
  });
  const server = createServer({
    log: silentLog,
    clock: systemClock,
    answerError,
    handler: {
      begin: () => undefined,
      handle: async (exchange) => {
        asked += 1;
        if (kind === "earlier") return { status: 404, headers: ["Content-Type", "text/plain"], body: "404\n" };
        const answer = await routes.get(exchange.path)?.(exchange);
        if (kind === "losing" && asked <= 2) exchange.request.socket.destroy();
        return answer;
      },
    },
  });
  servers.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--store-address" });
  const shown = async () => {
    const view = await history.current();
    return view.recent(10).flatMap(({ requests }) => requests.map(({ endpoint, via }) => `${endpoint} ${via}`));
  };
  return { url: new URL(`http://127.0.0.1:${port}`), shown, asked: () => asked };
}

function handOn(urls: readonly URL[], ca?: string): RemoteHistory {
  const credentials = async () => ({ token: "token", ca });
  const writers = new Writers({ urls, credentials, clock: systemClock, log: silentLog, about: "shown" });
  const run = "0123456789abcdef";
  const metrics = createMetrics("1");
  const history = new RemoteHistory({ writers, isBusy: () => false, via: "pod-1", run, metrics, clock });
  ends.push(
    () => history.stop(),
    () => writers.stop(),
  );
  history.start();
  for (const endpoint of ["boot.ipxe", "ipxe"]) history.add(0, encodeRequest(handed(endpoint, {}, mac)));
  return history;
}

it("is shown by the writer", async () => {
  const { url, shown } = await writer("taking");
  handOn([url]);
  await clock.advance(2_000);
  await expect.poll(shown).toEqual(["boot.ipxe pod-1", "ipxe pod-1"]);
});

it("gets to the member that leads, whoever is asked first", async () => {
  const [other, leader] = [await writer("other"), await writer("taking")];
  handOn([other.url, leader.url]);
  await clock.advance(2_000);
  await expect.poll(leader.shown).toEqual(["boot.ipxe pod-1", "ipxe pod-1"]);
  expect([other.asked(), await other.shown()]).toEqual([1, []]);
});

it("is shown once by a writer whose answers were lost", async () => {
  const { url, shown, asked } = await writer("losing");
  handOn([url]);
  await clock.advance(2_000);
  await expect.poll(asked).toBe(2);
  await expect.poll(() => clock.nextWakeMs).toBe(60_000);
  await clock.advance(60_000);
  await expect.poll(asked).toBe(3);
  expect(await shown()).toEqual(["boot.ipxe pod-1", "ipxe pod-1"]);
});

it.each(["earlier", "refusing", "other"] as const)(
  "is shown by no writer that is %s, which is asked rarely",
  async (kind) => {
    const { url, shown, asked } = await writer(kind);
    handOn([url]);
    await clock.advance(2_000);
    // A single member is asked twice, because its connection may have been closing.
    await expect.poll(asked).toBe(2);
    await expect.poll(() => clock.nextWakeMs).toBe(60_000);
    expect(await shown()).toEqual([]);
  },
);

it.skipIf(missing("openssl"))("has ages as of the end of the handshake, not of its beginning", async () => {
  const folder = await mkdtemp(join(tmpdir(), "davit-history-"));
  ends.push(() => rm(folder, { recursive: true }));
  const authority = makeAuthority(folder);
  let body = "";
  const server = createHttpsServer(authority.issue("writer"), (request, response) => {
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => response.end('{"taken":2}'));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.on("connection", () => void clock.advance(3_000));
  handOn([new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)], authority.cert);
  await clock.advance(2_000);
  await expect.poll(() => body).toContain('"agoMs":[5000,5000]');
});
