import type { Agent } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { toGoDuration } from "../../src/http/keys/endpoints.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type DavitKeys, startDavitKeys } from "../helpers/keys-servers.ts";
import { agentFor, sendRaw } from "../helpers/raw-request.ts";

let keys: DavitKeys;
let agent: Agent;
let clock: FakeClock;

beforeEach(async () => {
  clock = new FakeClock();
  keys = await startDavitKeys({ clock });
  agent = agentFor();
});
afterEach(async () => {
  agent.destroy();
  await keys.stop();
});

async function ask(line: string): Promise<string> {
  const [method = "", target = ""] = line.split(" ");
  return (await (await sendRaw({ port: keys.port, agent, method, target })).whole()).body;
}

/** What is not 0. */
async function counted(): Promise<Record<string, number>> {
  const all: Record<string, number> = JSON.parse(await ask("GET /v2/stats/store"));
  return Object.fromEntries(Object.entries(all).filter(([, count]) => count !== 0));
}

describe("`GET /v2/stats/store` counts", () => {
  beforeEach(async () => {
    await ask("PUT /v2/keys/dir?dir=true");
    await ask("PUT /v2/keys/key?value=x");
  });

  it.each([
    { line: "GET /v2/keys/key", counts: { getsSuccess: 1 } },
    { line: "HEAD /v2/keys/key", counts: { getsSuccess: 1 } },
    { line: "GET /v2/keys/key?quorum=true", counts: { getsSuccess: 1 } },
    { line: "GET /v2/keys/none", counts: { getsFail: 1 } },
    { line: "PUT /v2/keys/other", counts: { setsSuccess: 1 } },
    { line: "PUT /v2/keys/key?refresh=true&ttl=5", counts: { setsSuccess: 1 } },
    { line: "PUT /v2/keys/dir", counts: { setsFail: 1 } },
    { line: "PUT /v2/keys/", counts: { setsFail: 1 } },
    { line: "PUT /v2/keys/other?prevExist=false", counts: { createSuccess: 1 } },
    { line: "POST /v2/keys/dir", counts: { createSuccess: 1 } },
    { line: "PUT /v2/keys/key?prevExist=false", counts: { createFail: 1 } },
    { line: "POST /v2/keys/key", counts: { createFail: 1 } },
    { line: "PUT /v2/keys/key?prevExist=true", counts: { updateSuccess: 1 } },
    { line: "PUT /v2/keys/key?prevExist=true&refresh=true&ttl=5", counts: { updateSuccess: 1 } },
    { line: "PUT /v2/keys/dir?prevExist=true&value=x", counts: { updateFail: 1 } },
    { line: "PUT /v2/keys/key?prevValue=x", counts: { compareAndSwapSuccess: 1 } },
    { line: "PUT /v2/keys/key?prevValue=y", counts: { compareAndSwapFail: 1 } },
    { line: "PUT /v2/keys/none?prevValue=y", counts: { compareAndSwapFail: 1 } },
    { line: "DELETE /v2/keys/key", counts: { deleteSuccess: 1 } },
    { line: "DELETE /v2/keys/dir", counts: { deleteFail: 1 } },
    { line: "DELETE /v2/keys/key?prevValue=x", counts: { compareAndDeleteSuccess: 1 } },
    { line: "DELETE /v2/keys/key?prevValue=y", counts: { compareAndDeleteFail: 1 } },
    { line: "DELETE /v2/keys/dir?prevValue=y", counts: { compareAndDeleteFail: 1 } },
    { line: "GET /v2/keys/key?wait=true&waitIndex=1", counts: {} },
    { line: "PUT /v2/keys/key?ttl=x", counts: {} },
    { line: "PATCH /v2/keys/key", counts: {} },
  ])("$line as $counts", async ({ line, counts }) => {
    const before = await counted();
    await ask(line);
    const after = await counted();
    const grown = Object.entries(after).map(([name, count]) => [name, count - (before[name] ?? 0)] as const);
    expect(Object.fromEntries(grown.filter(([, count]) => count !== 0))).toEqual(counts);
  });

  it("each expiry once, also that of a directory with children", async () => {
    await ask("PUT /v2/keys/d?dir=true&ttl=1");
    await ask("PUT /v2/keys/d/a?ttl=5");
    await ask("PUT /v2/keys/k?ttl=1");
    await clock.advance(9_000);
    expect(await counted()).toMatchObject({ expireCount: 2 });
  });

  it("who waits now as watchers", async () => {
    const waiting = await sendRaw({ port: keys.port, agent, method: "GET", target: "/v2/keys/key?wait=true" });
    expect(await counted()).toMatchObject({ watchers: 1 });
    await ask("PUT /v2/keys/key");
    await waiting.whole();
    expect(await counted()).not.toHaveProperty("watchers");
  });
});

it("`GET /v2/stats/self` tells since when the only member leads", async () => {
  await clock.advance(65_040);
  const { memberId } = keys.store.identity;
  expect(JSON.parse(await ask("GET /v2/stats/self"))).toMatchObject({
    id: memberId,
    state: "StateLeader",
    startTime: "2026-01-01T00:00:00Z",
    leaderInfo: { leader: memberId, uptime: "1m5.04s", startTime: "2026-01-01T00:00:00Z" },
  });
  expect(await ask("GET /v2/stats/leader")).toBe(`{"leader":"${memberId}","followers":{}}`);
});

it.each([
  { ms: 0, text: "0s" },
  { ms: 12.9, text: "12ms" },
  { ms: 1_000, text: "1s" },
  { ms: 37_442, text: "37.442s" },
  { ms: 60_000, text: "1m0s" },
  { ms: 7_384_500, text: "2h3m4.5s" },
  { ms: 360_000_000, text: "100h0m0s" },
])("$ms ms are $text", ({ ms, text }) => {
  expect(toGoDuration(ms)).toBe(text);
});
