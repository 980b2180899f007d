/** The routes that change the ledger, and their door. */

import { beforeEach, describe, expect, it } from "vitest";
import { entry, hourMs, machine, nowMs } from "./fake-machines.ts";
import { adminToken, bearer, mac, machinesListener, readToken, uuid, webBoot } from "./machines-listener.ts";

const listener = machinesListener();

describe("`POST /machines/adopt`", () => {
  beforeEach(() => {
    listener.fake.grants.set("group/racks/web", undefined);
  });

  it.each([
    { body: { group: "racks/web", hours: 24 }, untilMs: nowMs + 24 * hourMs },
    { body: { group: "racks/web", hours: 0.5 }, untilMs: nowMs + hourMs / 2 },
    { body: { group: "racks/web", until: "2026-11-26T00:00:00+01:00" }, untilMs: nowMs + 11 * hourMs },
  ])("adopts a Group with $body", async ({ body, untilMs }) => {
    const { post } = await listener.start();
    const until = new Date(untilMs).toISOString();
    expect(await post("adopt", body)).toEqual([200, JSON.stringify({ group: "racks/web", until })]);
    expect(listener.fake.logged).toEqual([{ group: "racks/web", untilMs }]);
  });

  it("adopts a machine of an object, of the ledger, and one that davit does not know yet", async () => {
    const identities = [`uuid/${uuid}`, `mac/${mac}`];
    listener.fake.machines.push(machine("racks/node7", { identities }));
    listener.fake.boots.set(`mac/${mac}`, webBoot);
    listener.fake.entries.push(entry("1", { identities: ["mac/52:54:00:00:00:01"], group: "racks/old" }));
    const { post } = await listener.start();
    for (const name of ["racks/node7", "52:54:00:00:00:01", "52-54-00-00-00-02"]) {
      expect(await post("adopt", { machine: name })).toMatchObject([200, expect.stringContaining(name)]);
    }
    expect(listener.fake.logged).toEqual([
      { identities, group: "racks/web" },
      { identities: ["mac/52:54:00:00:00:01"], group: "racks/old" },
      { identities: ["mac/52:54:00:00:00:02"], group: "" },
    ]);
  });

  it.each([
    {},
    { group: "racks/web" },
    { group: "racks/web", hours: 0 },
    { group: "racks/web", hours: -1 },
    { group: "racks/web", hours: "24" },
    { group: "racks/web", hours: 24, until: "2026-11-26T00:00:00Z" },
    { group: "racks/web", until: "tomorrow" },
    { group: "racks/web", until: "2026-13-26T00:00:00Z" },
    { group: "racks/web", until: "2026-11-25T11:00:00Z" },
    { group: 7, hours: 24 },
    { group: "racks/web", machine: mac, hours: 24 },
    { machine: mac, hours: 24 },
    { machine: [mac] },
    { machine: mac, force: true },
  ])("refuses %j", async (body) => {
    const { post } = await listener.start();
    const [status, text] = await post("adopt", body);
    expect([status, text]).toEqual([400, expect.stringMatching(/^400 send \{"group": /)]);
    expect(listener.fake.logged).toEqual([]);
  });

  it("refuses an adoption for years, and Groups and machines that nobody knows", async () => {
    const { post } = await listener.start();
    expect(await post("adopt", { group: "racks/web", hours: 1e300 })).toEqual([
      400,
      "400 a Group can be adopted for at most 90 days",
    ]);
    expect(await post("adopt", { group: "racks/wbe", hours: 1 })).toEqual([
      404,
      "404 davit knows no Group of this name: create it first, or correct the name",
    ]);
    expect((await post("adopt", { machine: "racks/none" }))[0]).toBe(404);
    expect(listener.fake.logged).toEqual([]);
  });

  it.each([
    ["late", [503, "503 the ledger cannot log the change now"]],
    ["full", [409, "409 the ledger has no room for another machine: forget machines that are gone"]],
    ["ambiguous", [409, "409 the ledger knows these identities as several machines: list all in one Machine"]],
  ] as const)("reports %s", async (outcome, answer) => {
    listener.fake.adopting = outcome;
    const { post } = await listener.start();
    expect(await post("adopt", { machine: mac })).toEqual(answer);
  });

  it("changes nothing in a follower", async () => {
    const { post } = await listener.start({ follows: true });
    expect(await post("adopt", { machine: mac })).toEqual([
      409,
      "409 this davit follows another one, which keeps the ledger: ask that one",
    ]);
  });
});

describe("`POST /machines/forget`", () => {
  const identities = [`uuid/${uuid}`, `mac/${mac}`];

  it("forgets a machine by all its identities", async () => {
    listener.fake.machines.push(machine("racks/node7", { identities }));
    const { post } = await listener.start();
    expect(await post("forget", { machine: "racks/node7" })).toEqual([
      200,
      JSON.stringify({ machine: "racks/node7", isRemoved: true }),
    ]);
    expect(listener.fake.logged).toEqual([{ forgotten: identities }]);
  });

  it("forgets a machine that only the ledger knows", async () => {
    listener.fake.entries.push(entry("1", { identities }));
    listener.fake.forgetting = "closed";
    const { post } = await listener.start();
    expect(await post("forget", { machine: mac })).toEqual([200, JSON.stringify({ machine: mac, isRemoved: false })]);
    expect(listener.fake.logged).toEqual([{ forgotten: identities }]);
  });

  it("ends the adoption of a Group", async () => {
    listener.fake.adopted.set("racks/web", nowMs + hourMs);
    const { post } = await listener.start();
    expect((await post("forget", { group: "racks/web" }))[0]).toBe(200);
    expect(listener.fake.logged).toEqual([{ group: "racks/web", untilMs: 0 }]);
    expect(await post("forget", { group: "racks/other" })).toEqual([
      404,
      "404 the Group is not adopted: davit machine ledger shows adopted Groups",
    ]);
  });

  it.each([
    ["unknown", [404, "404 the ledger has no entry of this machine: davit machine list shows all"]],
    ["crowded", [409, "409 too many grants are open: remove spec.install from objects that need none"]],
    ["late", [503, "503 the ledger cannot log the change now"]],
  ] as const)("reports %s", async (outcome, answer) => {
    listener.fake.entries.push(entry("1", { identities }));
    listener.fake.forgetting = outcome;
    const { post } = await listener.start();
    expect(await post("forget", { machine: mac })).toEqual(answer);
  });

  it.each([
    {},
    { machine: 7 },
    { machine: mac, group: "racks/web" },
    { machine: mac, group: 7 },
    { machine: mac, all: true },
  ])("refuses %j", async (body) => {
    const { post } = await listener.start();
    expect(await post("forget", body)).toEqual([400, '400 send {"machine": "NAME"} or {"group": "NAMESPACE/NAME"}']);
  });

  it("does not know a machine without an entry", async () => {
    const { post } = await listener.start();
    expect(await post("forget", { machine: mac })).toEqual([
      404,
      "404 the ledger has no entry of this machine: davit machine list shows all",
    ]);
  });
});

describe("a body", () => {
  it.each([
    ["no JSON", "{", 400],
    ["an array", "[]", 400],
    ["a text", '"x"', 400],
    ["nothing", "", 400],
    ["a name of JavaScript's own", '{"__proto__": {"machine": "x"}}', 400],
    ["too long", `{"machine": "${"x".repeat(65_536)}"}`, 413],
  ])("that is %s is refused", async (_name, body, status) => {
    const { post } = await listener.start();
    expect((await post("adopt", body))[0]).toBe(status);
    expect(listener.fake.logged).toEqual([]);
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json2"])(
    "of type %s is refused: a web page's form could send it",
    async (type) => {
      const { post } = await listener.start();
      expect((await post("adopt", { machine: mac }, { "content-type": type }))[0]).toBe(415);
      expect(listener.fake.logged).toEqual([]);
    },
  );
});

describe("the door of changes", () => {
  const body = { machine: mac };

  it("opens on loopback without tokens", async () => {
    const { post } = await listener.start();
    expect((await post("adopt", body))[0]).toBe(200);
  });

  it.each([
    ["a page's form", { origin: "http://evil.example" }, 403],
    ["a page of an unknown origin", { origin: "null" }, 403],
    ["a page of the same origin, as after DNS rebinding", { origin: "http://127.0.0.1:8081" }, 403],
    ["a page that hides its origin", { "sec-fetch-site": "cross-site" }, 403],
    ["a link of a page", { referer: "http://evil.example/" }, 403],
    ["a request without the header", { "x-davit-action": "" }, 403],
    ["the header of another action", { "x-davit-action": "forget" }, 403],
    ["another host name", { host: "rebound.example:8081" }, 403],
    ["a proxy", { "x-forwarded-for": "192.0.2.9" }, 403],
  ])("stays closed for %s", async (_name, headers, status) => {
    for (const given of [{}, { adminTokens: true }]) {
      // A token alone does not help a page: a browser repeats the password of Basic.
      const { post } = await listener.start(given);
      if ("adminTokens" in given && ("host" in headers || "x-forwarded-for" in headers)) continue;
      expect((await post("adopt", body, { ...bearer(adminToken), ...headers }))[0]).toBe(status);
    }
    expect(listener.fake.logged).toEqual([]);
  });

  it("answers no question of a browser whether it may", async () => {
    const { ask } = await listener.start();
    const headers = { origin: "http://evil.example", "access-control-request-method": "POST" };
    const answer = await ask("OPTIONS", "/machines/adopt", headers);
    expect(answer.status).toBe(405);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  it("needs an admin token where there are some, also on loopback, and a reading token does not help", async () => {
    const { post } = await listener.start({ tokens: true, adminTokens: true });
    const refused = [401, "401 a token of --ops-admin-token-file is needed"];
    expect(await post("adopt", body)).toEqual(refused);
    expect(await post("adopt", body, bearer(readToken))).toEqual(refused);
    expect((await post("adopt", body, bearer(adminToken)))[0]).toBe(200);
    expect(listener.fake.logged).toHaveLength(1);
  });

  it("without admin tokens needs loopback, and a reading token where there are some", async () => {
    const { post } = await listener.start({ tokens: true });
    expect((await post("adopt", body))[0]).toBe(401);
    expect(await post("adopt", body, { ...bearer(readToken), host: "davit.example" })).toEqual([
      403,
      "403 ask by a loopback address without a proxy, or start davit with --ops-admin-token-file FILE and send a token",
    ]);
    expect((await post("adopt", body, bearer(readToken)))[0]).toBe(200);
  });

  it("off loopback needs an admin token, and names the option", async () => {
    const { post } = await listener.start({ tokens: true, boundTo: "0.0.0.0" });
    expect(await post("adopt", body, bearer(readToken))).toEqual([
      403,
      "403 this davit listens off loopback: start it with --ops-admin-token-file FILE, and send one of its tokens",
    ]);
  });

  it("off loopback opens for an admin token", async () => {
    const { post } = await listener.start({ adminTokens: true, boundTo: "0.0.0.0" });
    expect((await post("adopt", body, { ...bearer(adminToken), host: "davit.example" }))[0]).toBe(200);
  });

  it("lets an admin token read, and no stranger", async () => {
    const { get } = await listener.start({ tokens: true, adminTokens: true });
    expect((await get("/ledger", bearer(adminToken))).status).toBe(200);
    expect((await get("/ledger", bearer(readToken))).status).toBe(200);
    expect((await get("/ledger")).status).toBe(401);
    expect((await get("/machines")).status).toBe(401);
  });
});

describe("other methods", () => {
  it.each([
    ["GET", "/machines/adopt", 405, "POST"],
    ["HEAD", "/machines/forget", 405, "POST"],
    ["DELETE", "/machines/adopt", 405, "POST"],
    ["PUT", "/machines/adopt", 405, "POST"],
    ["POST", "/machines", 405, "GET, HEAD"],
    ["POST", "/ledger", 405, "GET, HEAD"],
    ["POST", "/machines/racks/node7", 404, undefined],
    ["POST", "/machines/%61dopt", 404, undefined],
    ["POST", "/machines/adopt/", 404, undefined],
    ["POST", "//machines/adopt", 404, undefined],
  ] as const)("%s %s is answered %i", async (method, url, status, allow) => {
    const { ask } = await listener.start();
    const headers = { "content-type": "application/json", "x-davit-action": "adopt" };
    const answer = await ask(method, url, headers, method === "POST" ? JSON.stringify({ machine: mac }) : undefined);
    expect([answer.status, answer.headers.allow]).toEqual([status, allow]);
    expect(listener.fake.logged).toEqual([]);
  });
});
