/** A follower's desk and the writer's routes, over real sockets. The writer's ledger says what a test wants. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RemoteDesk } from "../../src/follow/remote-desk.ts";
import { Writers } from "../../src/follow/writers.ts";
import { answerError } from "../../src/http/errors.ts";
import type { Answer, Exchange } from "../../src/http/exchange.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { permitRoutes } from "../../src/http/store/permit-routes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { Answers } from "../../src/lib/questions.ts";
import type { LedgerEntry, LedgerView } from "../../src/model/permits/permit.ts";
import type { DeskAsk, ReportOutcome } from "../../src/model/permits/permit-desk.ts";
import type { PermitQuestion, PermitQuestions, PermitReply } from "../../src/model/permits/permit-wire.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { Store } from "../../src/store/store.ts";
import { openStore, silentLog } from "../helpers/test-store.ts";

const identities = ["mac/52:54:00:00:00:01"];
const chosen = { group: "lab/all", profile: "lab/install" };
const untilMs = systemClock.nowMs() + 3_600_000;
const grantOf = (generation: number) => ({
  key: "group/lab/all",
  grant: { generation, ledger: "0123abcd", untilMs, scope: "NeverInstalled" as const },
});
const question: DeskAsk = {
  purpose: "script",
  identities,
  grants: [grantOf(2)],
  plan: { then: "sanboot", timeoutSeconds: 60 },
  ...chosen,
  revision: "r1",
  mayClaim: true,
  isSealed: false,
  address: "192.0.2.1",
  rawQuery: "mac=52-54-00-00-00-01",
};
const entry: LedgerEntry = {
  id: "0123456789abcdef",
  identities,
  state: "Claimed",
  grant: { key: "group/lab/all", generation: 2 },
  spent: { "group/lab/all": 2 },
  claimedAtMs: 1,
  changedAtMs: 1,
  timeoutSeconds: 60,
  ...chosen,
  addresses: [],
};
const granted: PermitReply = { kind: "granted", entry, reportToken: "token", ...chosen };

let store: Store;
const servers: HttpServer[] = [];
let asked: PermitQuestion[];
let closings: unknown[];
let reply: PermitReply | Error | Promise<PermitReply>;
let outcome: ReportOutcome;
/** The follower's copy of the ledger. */
let known: LedgerEntry[];
let ledgerId: string | undefined;
let isCurrent: boolean;
let isRefused: boolean;

beforeEach(async () => {
  store = await openStore();
  [asked, closings, known] = [[], [], []];
  [reply, outcome, ledgerId, isCurrent, isRefused] = [granted, "taken", "0123abcd", true, false];
});
afterEach(async () => {
  for (const writers of allWriters.splice(0)) writers.stop();
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await store.stop();
});

async function serve(isOld = false): Promise<URL> {
  const permits: Answers<PermitQuestions> = {
    permit: async (sent) => {
      asked.push(sent);
      if (reply instanceof Error) throw reply;
      return await reply;
    },
    report: async ({ token, report, address }) => {
      closings.push({ token, report, address });
      return outcome;
    },
  };
  const guard = () => (isRefused ? refusal : undefined);
  const routes = permitRoutes({
    store,
    guard,
    permits,
    handed: { take: async () => 0 },
    clock: systemClock,
  });
  const notFound: Answer = { status: 404, headers: ["Content-Type", "text/plain"], body: "404\n" };
  const handle = (exchange: Exchange) => {
    return isOld ? notFound : routes.get(exchange.path)?.(exchange);
  };
  const handler = { begin: () => undefined, handle };
  const server = createServer({ log: silentLog, clock: systemClock, answerError, handler });
  servers.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--store-address" });
  return new URL(`http://127.0.0.1:${port}`);
}
const refusal = new StoreError("unauthorized", "no", 0);

const allWriters: Writers[] = [];
function deskAt(...urls: readonly URL[]): RemoteDesk {
  const credentials = async () => ({ token: "token" });
  const writers = new Writers({ urls, credentials, clock: systemClock, log: silentLog });
  allWriters.push(writers);
  const view: LedgerView = {
    get id() {
      return ledgerId;
    },
    get nowMs() {
      return systemClock.nowMs();
    },
    isFull: false,
    endedGeneration: () => 0,
    adoptedUntilMs: () => 0,
    entriesOf: (which) => known.filter((each) => each.identities.some((identity) => which.includes(identity))),
  };
  return new RemoteDesk({ askWriter: writers.ask, view, isCurrent: () => isCurrent });
}

describe("a follower", () => {
  it("asks the writer with the machine's own query, and serves what the writer grants", async () => {
    const desk = deskAt(await serve());
    expect(await desk.ask(question)).toEqual({ kind: "granted", entry, reportToken: "token" });
    const { rawQuery, purpose, mayClaim, isSealed, address } = question;
    expect(asked).toEqual([{ rawQuery, purpose, mayClaim, isSealed, address }]);
  });

  it.each<[string, Partial<LedgerEntry>, string]>([
    ["the address that has claimed", { claimedFrom: "192.0.2.1" }, "granted"],
    ["another address", { claimedFrom: "192.0.2.2" }, "late"],
    ["an address after another one asked", { claimedFrom: "192.0.2.1", otherAddress: "192.0.2.2" }, "late"],
    ["a writer that does not know the rule", {}, "late"],
  ])("serves what is only for installs to %s: %o is %s", async (_name, given, kind) => {
    reply = { ...granted, entry: { ...entry, state: "Installing", ...given } };
    const desk = deskAt(await serve());
    expect(await desk.ask({ ...question, purpose: "config", isSealed: true })).toMatchObject({ kind });
    expect(asked).toMatchObject([{ isSealed: true }]);
    expect(await desk.ask({ ...question, purpose: "config" })).toMatchObject({ kind: "granted" });
  });

  it.each<[string, PermitReply]>([
    ["another Group", { ...granted, group: "lab/other" }],
    ["another Profile", { ...granted, profile: "lab/other" }],
    ["another generation", { ...granted, entry: { ...entry, grant: { key: "group/lab/all", generation: 3 } } }],
    ["another grant", { ...granted, entry: { ...entry, grant: { key: "machine/lab/m", generation: 2 } } }],
    ["another machine", { ...granted, entry: { ...entry, identities: ["mac/52:54:00:00:00:02"] } }],
    ["another Group's disk", { kind: "disk", ...chosen, group: "lab/other" }],
    ["a lateness of its own", { kind: "late" }],
  ])("waits if the writer answers with %s", async (_name, given) => {
    reply = given;
    expect(await deskAt(await serve()).ask(question)).toEqual({ kind: "late" });
  });

  it("waits if the writer takes the uuid of a request for that of another machine, as earlier versions do", async () => {
    const uuid = "uuid/4c4c4544-0002-4a10-8020-b4c04f202020";
    const asking = { ...question, identities: [uuid, ...identities], listed: identities };
    const desk = deskAt(await serve());
    expect(await desk.ask(asking)).toMatchObject({ kind: "granted" });
    reply = { ...granted, entry: { ...entry, identities: [uuid, "mac/52:54:00:00:00:02"] } };
    expect(await desk.ask(asking)).toEqual({ kind: "late" });
    // Without the Machine, the entry lacks the uuid.
    reply = granted;
    expect(await desk.ask({ ...question, identities: [uuid, ...identities] })).toEqual({ kind: "late" });
  });

  it("passes on a refusal, and a disk", async () => {
    const desk = deskAt(await serve());
    reply = { kind: "refused", why: "spent", ...chosen };
    expect(await desk.ask(question)).toEqual({ kind: "refused", why: "spent" });
    reply = { kind: "disk", ...chosen };
    expect(await desk.ask(question)).toEqual({ kind: "disk" });
  });

  it("gives an installer its configs after the grant was withdrawn, as the writer does", async () => {
    const withdrawn = { ...question, purpose: "config" as const, grants: [] };
    expect(await deskAt(await serve()).ask(withdrawn)).toMatchObject({ kind: "granted" });
  });

  it.each<[string, () => unknown]>([
    ["is a bug", () => new Error("a bug")],
    ["is of a later version", () => ({ kind: "other", ...chosen })],
    ["names no grant", () => ({ ...granted, entry: { ...entry, grant: undefined } })],
    ["is no object", () => []],
  ])("waits if the writer's answer %s", async (_name, make) => {
    reply = make() as PermitReply;
    expect(await deskAt(await serve()).ask(question)).toEqual({ kind: "late" });
  });

  it("waits if the writer is away, refuses it, or is of an earlier version", async () => {
    expect(await deskAt(new URL("http://127.0.0.1:1")).ask(question)).toEqual({ kind: "late" });
    expect(await deskAt(await serve(true)).ask(question)).toEqual({ kind: "late" });
    isRefused = true;
    expect(await deskAt(await serve()).ask(question)).toEqual({ kind: "late" });
  });

  it("waits for a second, and no longer", async () => {
    reply = new Promise(() => undefined);
    const desk = deskAt(await serve());
    const beganMs = systemClock.monotonicMs();
    expect(await desk.ask(question)).toEqual({ kind: "late" });
    expect(systemClock.monotonicMs() - beganMs).toBeGreaterThan(900);
    expect(systemClock.monotonicMs() - beganMs).toBeLessThan(3_000);
  });

  it("goes on at the next member", async () => {
    const desk = deskAt(new URL("http://127.0.0.1:1"), await serve());
    expect(await desk.ask(question)).toMatchObject({ kind: "granted" });
  });

  it("asks at most 512 questions at a time", async () => {
    reply = new Promise(() => undefined);
    const desk = deskAt(await serve());
    const all = Array.from({ length: 513 }, () => Promise.resolve(desk.ask(question)));
    expect(await Promise.race(all)).toEqual({ kind: "late" });
    await Promise.all(all);
  });

  it("boots a disk by its own copy, without the writer", async () => {
    known = [{ ...entry, state: "Installed" }];
    expect(deskAt(new URL("http://127.0.0.1:1")).ask(question)).toEqual({ kind: "disk" });
  });

  it("refuses by its own copy only while that is current, and a config never", async () => {
    const desk = deskAt(await serve());
    expect(desk.ask({ ...question, grants: [] })).toEqual({ kind: "refused", why: "noGrant" });
    expect(asked).toHaveLength(0);
    await desk.ask({ ...question, purpose: "config" });
    expect(asked).toHaveLength(1);
    isCurrent = false;
    await desk.ask({ ...question, grants: [] });
    expect(asked).toHaveLength(2);
  });
});

describe("what closes a permit", () => {
  it.each<ReportOutcome>(["taken", "unknown", "final", "tooMany", "late"])("is reported: %s", async (given) => {
    outcome = given;
    const report = { state: "failed" as const, progress: 5, message: "m", labels: { os: "x" } };
    expect(await deskAt(await serve()).report("the-token", report, "192.0.2.1")).toBe(given);
    expect(closings).toEqual([{ token: "the-token", report, address: "192.0.2.1" }]);
  });

  it("is late while the writer is away", async () => {
    const desk = deskAt(new URL("http://127.0.0.1:1"));
    expect(await desk.report("the-token", { state: "installed" }, undefined)).toBe("late");
  });
});

describe("the writer's routes", () => {
  it.each([
    ["permit", "", 400],
    ["permit", "[]", 400],
    ["permit", '{"rawQuery":"","purpose":"other","mayClaim":true}', 400],
    ["permit", '{"rawQuery":"","purpose":"script"}', 400],
    ["permit", JSON.stringify({ rawQuery: "x".repeat(70_000), purpose: "script", mayClaim: true }), 400],
    ["report", '{"kind":"report","token":"x","report":{"state":"other"}}', 400],
    ["report", '{"kind":"fetched","path":"/x","address":"192.0.2.1"}', 400],
  ])("%s answers %j with %i", async (name, body, status) => {
    const answer = await fetch(new URL(`/davit/v1/${name}`, await serve()), { method: "POST", body });
    expect(answer.status).toBe(status);
  });

  it.each([
    ["192.0.2.1", 200],
    ["2001:db8::1", 200],
    ["fe80::1%br-lan.7", 200],
    ["::ffff:192.0.2.1", 200],
    ["", 400],
    ["A".repeat(60_000), 400],
    ["1".repeat(46), 400],
    ["\u001b]0;pwn\u0007\u202e<b>", 400],
    ["192.0.2.1 ", 400],
    ["192.0.2.1\n", 400],
    [`fe80::1%${"e".repeat(17)}`, 400],
    [7, 400],
    [null, 400],
    [["192.0.2.1"], 400],
  ])("take the address of a client, or refuse it: case %#", async (address, status) => {
    const base = await serve();
    const bodies = [
      ["permit", { rawQuery: "mac=52-54-00-00-00-01", purpose: "script", mayClaim: true, address }],
      ["report", { kind: "report", token: "x", report: { state: "failed" }, address }],
    ] as const;
    for (const [name, body] of bodies) {
      const answer = await fetch(new URL(`/davit/v1/${name}`, base), { method: "POST", body: JSON.stringify(body) });
      expect(answer.status).toBe(status);
    }
    if (status === 400) expect([asked, closings]).toEqual([[], []]);
  });

  it("answer nobody without credentials", async () => {
    isRefused = true;
    const body = JSON.stringify({ rawQuery: "", purpose: "script", mayClaim: true });
    for (const name of ["permit", "report"]) {
      const answer = await fetch(new URL(`/davit/v1/${name}`, await serve()), { method: "POST", body });
      expect(answer.status).toBe(401);
    }
    expect([asked, closings]).toEqual([[], []]);
  });
});
