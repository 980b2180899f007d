/** Who may see the console, and who may change machines by it. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ClusterCallers } from "../../../src/model/cluster-callers.ts";
import { entry, machine } from "../fake-machines.ts";
import { adminToken, consoleListener, cookieOf, formTokenIn, host, origin, readToken } from "./console-listener.ts";

const listener = consoleListener();
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const mac = "52:54:00:00:00:01";
const fleet = "/console/";

/** Every page of the console that shows something. */
const pages = [fleet, "/console/waiting", `/console/machines/${mac}`];

describe("without token files, on loopback", () => {
  it.each(pages)("%s is shown to this computer, and never kept by a browser", async (url) => {
    const { ask, record } = await listener.start();
    record(`mac=${mac}`);
    const { status, headers } = await ask(url);
    expect(status).toBe(200);
    expect(headers["cache-control"]).toBe("no-store");
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
  });

  it("a name that leads to loopback shows nothing", async () => {
    const { ask } = await listener.start();
    expect((await ask(fleet, { headers: { host: "rebound.example:8081" } })).status).toBe(403);
  });

  it("a listener on every address shows nothing", async () => {
    const { ask } = await listener.start({ boundTo: "0.0.0.0" });
    expect((await ask(fleet)).status).toBe(403);
  });

  it("leads from / to the fleet", async () => {
    const { ask } = await listener.start();
    expect(await ask("/")).toMatchObject({ status: 303, headers: { location: fleet } });
  });
});

describe("with token files", () => {
  it.each([{}, bearer("wrong-token-0123456789"), { cookie: "davit-session=made-up" }])(
    "%o sees the sign-in page and nothing else",
    async (headers) => {
      const { ask, record } = await listener.start({ tokens: true });
      record(`mac=${mac}&hostname=secret-host`);
      for (const url of pages) {
        const { status, body } = await ask(url, { headers });
        expect(status).toBe(401);
        expect(body).not.toContain("secret-host");
        expect(body).not.toContain(mac);
      }
    },
  );

  it("a session stands for its token until it is signed out", async () => {
    const { ask } = await listener.start({ tokens: true });
    const signedIn = await ask("/console/sign-in", { method: "POST", form: { token: readToken }, headers: { origin } });
    expect(signedIn).toMatchObject({ status: 303, headers: { location: fleet } });
    expect(signedIn.headers["set-cookie"]).toMatch(/; HttpOnly; SameSite=Strict; Path=\/console$/);
    expect(String(signedIn.headers["set-cookie"])).not.toContain(readToken);
    const cookie = cookieOf(signedIn);
    const { status, body } = await ask(fleet, { headers: { cookie } });
    expect(status).toBe(200);
    const out = { method: "POST", form: { form: formTokenIn(body) }, headers: { cookie, origin } } as const;
    expect((await ask("/console/sign-out", out)).status).toBe(303);
    expect((await ask(fleet, { headers: { cookie } })).status).toBe(401);
  });

  it("a token that leaves its file ends the session", async () => {
    const { ask } = await listener.start({ tokens: true });
    const cookie = cookieOf(
      await ask("/console/sign-in", { method: "POST", form: { token: readToken }, headers: { origin } }),
    );
    expect((await ask(fleet, { headers: { cookie } })).status).toBe(200);
    await writeFile(join(listener.folder(), "tokens"), "another-token-0123456789\n");
    await expect.poll(async () => (await ask(fleet, { headers: { cookie } })).status, { timeout: 20_000 }).toBe(401);
  });

  it.each([
    { name: "a wrong token", form: { token: "wrong-token-0123456789" } },
    { name: "no token", form: {} },
    { name: "a token that no header could carry", form: { token: "two\nlines" } },
  ])("a sign-in with $name begins no session", async ({ form }) => {
    const { ask } = await listener.start({ tokens: true });
    const answer = await ask("/console/sign-in", { method: "POST", form, headers: { origin } });
    expect(answer.status).toBe(401);
    expect(answer.headers["set-cookie"]).toBeUndefined();
    expect(answer.body).toContain("This token is not known.");
  });

  it("a proxy may pass a token for each request", async () => {
    const { ask } = await listener.start({ tokens: true });
    expect((await ask(fleet, { headers: bearer(readToken) })).status).toBe(200);
  });
});

describe("a change", () => {
  const known = () => listener.fake.entries.push(entry("1", { identities: [`mac/${mac}`] }));
  const adopt = (form: string) => ({ action: "adopt", machine: mac, form, back: fleet });

  it("of the ledger needs an admin token: a reader sees no button, and is refused", async () => {
    known();
    const { ask } = await listener.start({ tokens: true, adminTokens: true });
    const { body } = await ask(`/console/machines/${mac}`, { headers: bearer(readToken) });
    expect(body).not.toContain('value="adopt"');
    const page = await ask(fleet, { headers: bearer(readToken) });
    const form = adopt(formTokenIn(page.body));
    const sent = await ask("/console/actions", { method: "POST", form, headers: { ...bearer(readToken), origin } });
    expect(sent.status).toBe(403);
    expect(listener.fake.logged).toEqual([]);
  });

  it("of the ledger is made for an admin token", async () => {
    known();
    const { ask } = await listener.start({ tokens: true, adminTokens: true });
    const { body } = await ask(`/console/machines/${mac}`, { headers: bearer(adminToken) });
    expect(body).toContain('value="adopt"');
    const form = adopt(formTokenIn(body));
    const sent = await ask("/console/actions", { method: "POST", form, headers: { ...bearer(adminToken), origin } });
    expect(sent).toMatchObject({ status: 200, body: expect.stringContaining("counts as installed") });
    expect(listener.fake.logged).toHaveLength(1);
  });

  it.each([
    { name: "from another page", headers: { origin: "http://evil.example" } },
    { name: "from another port of this computer", headers: { origin: "http://127.0.0.1:8082" } },
    { name: "from a page without an origin", headers: { origin: "null" } },
    { name: "that names no origin", headers: {} },
  ])("$name is refused, also with the right form token", async ({ headers }) => {
    known();
    const { ask } = await listener.start();
    const form = adopt(formTokenIn((await ask(`/console/machines/${mac}`)).body));
    const sent = await ask("/console/actions", { method: "POST", form, headers });
    expect(sent.status).toBe(403);
    expect(listener.fake.logged).toEqual([]);
  });

  it.each(["", "made-up"])("with the form token %o is refused", async (form) => {
    known();
    const { ask } = await listener.start();
    const sent = await ask("/console/actions", { method: "POST", form: adopt(form), headers: { origin } });
    expect(sent.status).toBe(403);
    expect(listener.fake.logged).toEqual([]);
  });

  it("in a follower is refused", async () => {
    known();
    const { ask } = await listener.start({ follows: true });
    const { body } = await ask(`/console/machines/${mac}`);
    expect(body).not.toContain('value="adopt"');
    const form = adopt(formTokenIn((await ask(fleet)).body));
    expect((await ask("/console/actions", { method: "POST", form, headers: { origin } })).status).toBe(403);
  });

  it.each([{ action: "install" }, { action: "__proto__" }, {}])("of the kind %o is refused", async (given) => {
    const { ask } = await listener.start({ tokens: true, adminTokens: true });
    const { body } = await ask(`/console/`, { headers: bearer(adminToken) });
    const form = { machine: mac, form: formTokenIn(body), ...given };
    const sent = await ask("/console/actions", { method: "POST", form, headers: { ...bearer(adminToken), origin } });
    expect(sent.status).toBeGreaterThanOrEqual(400);
    expect(listener.fake.logged).toEqual([]);
  });

  it("concerns the machine of the page, also if it calls itself by another one's address and a version", async () => {
    known();
    const { ask, record } = await listener.start({ tokens: true, adminTokens: true });
    const asAdmin = { headers: bearer(adminToken) };
    record(String(new URLSearchParams({ hostname: `${mac} x 1` })));
    const page = await ask(fleet, asAdmin);
    const [, path = ""] = /<a href="(\/console\/machines\/[^"]*x[^"]*)"/.exec(page.body) ?? [];
    const { body } = await ask(path, asAdmin);
    const [, chosen = ""] = /name="machine" value="([^"]+)"/.exec(body) ?? [];
    expect(chosen).toContain(mac);
    const form = { action: "adopt", machine: chosen, form: formTokenIn(body), back: fleet };
    const sent = await ask("/console/actions", { method: "POST", form, headers: { ...asAdmin.headers, origin } });
    expect(sent.body).toContain("is not changed");
    expect(listener.fake.logged).toEqual([]);
  });

  it.each(["%", "%E0%A4%A", `${mac} x`])("of a machine named %s is answered as for any unknown one", async (name) => {
    known();
    const { ask } = await listener.start({ tokens: true, adminTokens: true });
    const { body } = await ask(`/console/machines/${mac}`, { headers: bearer(adminToken) });
    const form = { action: "adopt", machine: name, form: formTokenIn(body), back: fleet };
    const sent = await ask("/console/actions", { method: "POST", form, headers: { ...bearer(adminToken), origin } });
    expect(sent).toMatchObject({ status: 200, body: expect.stringContaining("is not changed") });
  });

  it("by another method or type is refused", async () => {
    const { ask } = await listener.start();
    expect((await ask("/console/actions")).status).toBe(405);
    expect((await ask("/console/actions", { method: "PUT" })).status).toBe(405);
    const json = { "content-type": "application/json", origin };
    expect((await ask("/console/actions", { method: "POST", headers: json })).status).toBeGreaterThanOrEqual(400);
  });
});

describe("in a cluster", () => {
  const kubernetesToken = "header.payload.signature";
  const asked: string[] = [];
  const callers: ClusterCallers = {
    review: (token) => {
      asked.push(token);
      if (token === kubernetesToken) return Promise.resolve({ kind: "admitted", name: "ada" });
      if (token === "may-look") return Promise.resolve({ kind: "admitted", name: "eve" });
      if (token === "no-rights") return Promise.resolve({ kind: "forbidden", why: "bob may not list machines." });
      if (token === "away") return Promise.resolve({ kind: "away", why: "The token cannot be checked now." });
      return Promise.resolve({ kind: "unknown" });
    },
    mayPatchMachines: (token, namespace) => {
      asked.push(`${token} may ${namespace}`);
      return Promise.resolve(token === kubernetesToken && namespace === "racks");
    },
    patchMachine: (token, { machine: name, spec, seen }) => {
      asked.push(`${token} ${name} ${JSON.stringify(spec)} ${seen?.uid} ${seen?.generation}`);
      return Promise.resolve(
        name === "racks/node8" ? { why: "your account may not patch it", isForbidden: true } : undefined,
      );
    },
  };
  const start = async () => {
    asked.length = 0;
    listener.fake.machines.push(machine("racks/node7", { identities: [`mac/${mac}`] }));
    return await listener.start({ boundTo: "0.0.0.0", callers });
  };
  const signIn = (token: string) => ({ method: "POST", form: { token }, headers: { origin } }) as const;

  it("a Kubernetes token signs in, and changes objects as its owner", async () => {
    const { ask } = await start();
    expect((await ask(fleet)).status).toBe(401);
    const cookie = cookieOf(await ask("/console/sign-in", signIn(kubernetesToken)));
    const { body } = await ask("/console/machines/racks/node7", { headers: { cookie } });
    expect(body).toContain("ada");
    expect(body).toContain('value="approve"');
    expect(body).not.toContain('value="adopt"');
    expect(body).not.toContain(kubernetesToken);
    const form = { action: "approve", machine: "racks/node7 uid-racks/node7 1", form: formTokenIn(body), back: fleet };
    const sent = await ask("/console/actions", { method: "POST", form, headers: { cookie, origin } });
    expect(sent.body).toContain("is approved");
    const may = `${kubernetesToken} may racks`;
    expect(asked).toEqual([kubernetesToken, may, `${kubernetesToken} racks/node7 {"approved":true} uid-racks/node7 1`]);
    expect(body).toContain(`value="${form.machine}"`);
    const refused = { ...form, machine: "racks/node8 uid 1" };
    const other = await ask("/console/actions", { method: "POST", form: refused, headers: { cookie, origin } });
    expect(other.body).toContain("is not changed: your account may not patch it");
    expect(other.status).toBe(403);
  });

  it("shows buttons only where the account may change Machines, and asks once", async () => {
    listener.fake.machines.push(machine("other/node9", { identities: ["mac/52:54:00:00:00:09"] }));
    const { ask } = await start();
    const page = async (token: string, url: string) => (await ask(url, { headers: bearer(token) })).body;
    for (let at = 0; at < 2; at++) {
      expect(await page("may-look", "/console/machines/racks/node7")).not.toContain('value="approve"');
      expect(await page(kubernetesToken, "/console/machines/racks/node7")).toContain('value="approve"');
      expect(await page(kubernetesToken, "/console/machines/other/node9")).not.toContain('value="approve"');
    }
    expect(asked.filter((each) => each.includes(" may "))).toHaveLength(3);
  });

  it("the waiting room offers a choice only of machines that the account may change", async () => {
    for (const [namespace, end] of [
      ["racks", "07"],
      ["other", "09"],
    ] as const) {
      const identities = [`mac/52:54:00:00:00:${end}`];
      listener.fake.machines.push(machine(`${namespace}/node`, { identities, hold: true }));
    }
    const { ask } = await listener.start({ boundTo: "0.0.0.0", callers });
    const { body } = await ask("/console/waiting", { headers: bearer(kubernetesToken) });
    expect(body).toContain("2 machines wait");
    expect(body).toContain('value="racks/node uid-racks/node 1"');
    expect(body).not.toContain('value="other/node"');
    const { body: looked } = await ask("/console/waiting", { headers: bearer("may-look") });
    expect(looked).not.toContain("<button name");
    expect(looked).toContain("your account may not change these machines");
  });

  it.each([
    { token: "no-rights", why: "bob may not list machines." },
    { token: "away", why: "The token cannot be checked now." },
    { token: "unknown", why: "This token is not known." },
  ])("the token $token signs nobody in", async ({ token, why }) => {
    const { ask } = await start();
    const answer = await ask("/console/sign-in", signIn(token));
    expect(answer.status).toBe(401);
    expect(answer.body).toContain(why);
    expect(answer.headers["set-cookie"]).toBeUndefined();
  });

  it.each([
    { name: "from another computer", given: { remoteAddress: "192.0.2.9" } },
    { name: "by a proxy on this computer", given: { headers: { origin, "x-forwarded-for": "192.0.2.9" } } },
    { name: "by a proxy that nobody trusts", given: { headers: { origin, "x-forwarded-proto": "https" } } },
  ])("a token $name is not taken, and the API server never sees it", async ({ given }) => {
    const { ask } = await start();
    const answer = await ask("/console/sign-in", { ...signIn(kubernetesToken), ...given });
    expect(answer.status).toBe(401);
    expect(answer.body).toContain("port-forward");
    expect(asked).toEqual([]);
  });

  it("asks once for many requests, and again for a token that could not be checked", async () => {
    const { ask } = await start();
    for (let at = 0; at < 3; at++) await ask(fleet, { headers: { ...bearer(kubernetesToken), host } });
    expect(asked).toEqual([kubernetesToken]);
    for (let at = 0; at < 2; at++) await ask(fleet, { headers: bearer("away") });
    expect(asked).toEqual([kubernetesToken, "away", "away"]);
  });
});
