/** What machines ask a follower, over real sockets, at writers that take it, at others, and at none. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { RemoteSightings } from "../../src/follow/remote-sightings.ts";
import { Writers } from "../../src/follow/writers.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { permitRoutes } from "../../src/http/store/permit-routes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { MachineSighting } from "../../src/model/sighting.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openStore, silentLog } from "../helpers/test-store.ts";

const sighting: MachineSighting = {
  identities: ["mac/52:54:00:00:00:01"],
  atMs: 0,
  address: "192.0.2.1",
  stage: "ipxe",
  result: "served",
};

let store: Store;
let clock: FakeClock;
const servers: HttpServer[] = [];
const ends: (() => void | Promise<void>)[] = [];
beforeEach(async () => {
  store = await openStore();
  clock = new FakeClock(1_000);
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await store.stop();
});

interface Member {
  readonly url: URL;
  readonly taken: MachineSighting[];
  readonly asked: () => number;
}

/** @param kind `leader`, a member that shows nothing, a davit of an earlier version, or one that refuses the follower. */
async function member(kind: "leader" | "other" | "earlier" | "refusing"): Promise<Member> {
  const taken: MachineSighting[] = [];
  let asked = 0;
  const sighted = (sightings: readonly MachineSighting[]) => (kind === "leader" ? taken.push(...sightings) : undefined);
  const routes = permitRoutes({
    store,
    guard: () => (kind === "refusing" ? new StoreError("unauthorized", "no", 0) : undefined),
    permits: { permit: async () => ({ kind: "late" }), report: async () => "late" },
    sighted,
    handed: { take: async () => 0 },
    clock,
  });
  const notFound = { status: 404, headers: ["Content-Type", "text/plain"], body: "404\n" };
  const server = createServer({
    log: silentLog,
    clock: systemClock,
    answerError,
    handler: {
      begin: () => undefined,
      handle: (exchange) => {
        asked += 1;
        return kind === "earlier" ? notFound : routes.get(exchange.path)?.(exchange);
      },
    },
  });
  servers.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--store-address" });
  return { url: new URL(`http://127.0.0.1:${port}`), taken, asked: () => asked };
}

function handOn(...members: readonly Member[]): RemoteSightings {
  const urls = members.map(({ url }) => url);
  const writers = new Writers({
    urls,
    credentials: async () => ({ token: "token" }),
    clock: systemClock,
    log: silentLog,
    about: "shown",
    maxAsking: 1,
  });
  const sightings = new RemoteSightings({ writers, isBusy: () => false, clock });
  ends.push(
    () => writers.stop(),
    () => sightings.stop(),
  );
  sightings.start();
  sightings.saw(sighting);
  return sightings;
}

it("gets to the member that shows it, whoever is asked first", async () => {
  const [other, leader] = [await member("other"), await member("leader")];
  handOn(other, leader);
  await clock.advance(2_000);
  await expect.poll(() => leader.taken).toEqual([{ ...sighting, atMs: 0 }]);
  expect(other.asked()).toBe(1);
});

it.each(["earlier", "refusing", "other"] as const)(
  "is nobody's at a writer that is %s, and asked rarely",
  async (kind) => {
    const writer = await member(kind);
    handOn(writer);
    await clock.advance(2_000);
    // A single member is asked twice, because its connection may have been closing.
    await expect.poll(writer.asked).toBe(2);
    await expect.poll(() => clock.nextWakeMs).toBe(60_000);
    expect(writer.taken).toEqual([]);
  },
);
