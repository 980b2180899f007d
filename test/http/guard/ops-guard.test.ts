/** What shows machines on the operations listener, as those who ask meet its guard. */

import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { answerError } from "../../../src/http/errors.ts";
import { Guard } from "../../../src/http/guard/guard.ts";
import { type OpsGuard, opsRow } from "../../../src/http/guard/ops-guard.ts";
import { guardRoutes } from "../../../src/http/ops/routes.ts";
import { createOpsServer, type OpsServer } from "../../../src/http/ops/server.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { silentLog } from "../../helpers/test-store.ts";

const token = "first-token-0123456789";
const otherToken = "other-token-0123456789";
const soon = { timeout: 10_000 };

let folder: string;
let guard: OpsGuard | undefined;
let server: OpsServer | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-ops-guard-"));
});

afterEach(async () => {
  await server?.close();
  guard?.stop();
  [server, guard] = [undefined, undefined];
  await rm(folder, { recursive: true });
});

interface Given {
  readonly tokenFile?: string;
  /** What the listener is bound to, as the guard sees it. */
  readonly boundTo?: string;
}

/** A listener with an open route and a guarded one. */
async function start({ tokenFile, boundTo = "127.0.0.1" }: Given) {
  const metrics = createMetrics("1");
  const row = opsRow({ tokenFile, adminTokenFile: undefined, boundTo: () => boundTo, metrics });
  const opened = await Guard.open(row, { clock: systemClock, log: silentLog });
  guard = opened;
  server = createOpsServer({ log: silentLog, clock: systemClock, answerError });
  const { app } = server;
  app.get("/open", (_request, reply) => reply.send("open\n"));
  await app.register((guarded, _options, done) => {
    guardRoutes(guarded, opened, "read");
    guarded.get("/guarded", (_request, reply) => reply.send("shown\n"));
    done();
  });
  const ask = async (headers: Readonly<Record<string, string>> = {}, url = "/guarded") => {
    const answer = await app.inject({ url, headers: { host: "127.0.0.1:8081", ...headers } });
    return { status: answer.statusCode, body: answer.body, challenge: answer.headers["www-authenticate"] };
  };
  return { ask, metrics };
}

const writeTokens = (...lines: readonly string[]) => writeTokensAs(0o600, ...lines);

async function writeTokensAs(mode: number, ...lines: readonly string[]): Promise<string> {
  const path = join(folder, "tokens");
  await writeFile(`${path}.next`, lines.map((line) => `${line}\n`).join(""), { mode });
  await rename(`${path}.next`, path);
  return path;
}

describe("without a file of tokens", () => {
  it.each(["127.0.0.1", "127.1.2.3", "::1"])("a listener on %s shows machines", async (boundTo) => {
    const { ask } = await start({ boundTo });
    expect(await ask()).toMatchObject({ status: 200, body: "shown\n" });
  });

  it.each(["0.0.0.0", "::", "192.0.2.1", "fd00::1"])(
    "a listener on %s shows none, and names the option, wherever one asks from",
    async (boundTo) => {
      const { ask, metrics } = await start({ boundTo });
      const body =
        "403 this davit listens off loopback: start it with --ops-token-file FILE, and send one of its tokens\n";
      expect(await ask()).toMatchObject({ status: 403, body });
      expect(await ask({ authorization: `Bearer ${token}` })).toMatchObject({ status: 403, body });
      expect(await metrics.text()).toContain("davit_ops_unauthorized_total 2");
    },
  );

  it.each(["127.0.0.1", "127.0.0.1:8081", "localhost:8081", "LOCALHOST", "[::1]:8081", "[::1]"])(
    "a loopback listener is asked as %s",
    async (host) => {
      const { ask } = await start({});
      expect((await ask({ host })).status).toBe(200);
    },
  );

  it.each([
    { name: "a name that leads to loopback, as a web page may have it", headers: { host: "rebound.example:8081" } },
    { name: "a name that begins as loopback does", headers: { host: "127.0.0.1.example" } },
    { name: "a port alone", headers: { host: ":8081" } },
    { name: "a host that is none", headers: { host: "[::1" } },
    { name: "a proxy that tells for whom it asks", headers: { "x-forwarded-for": "192.0.2.9" } },
    { name: "a proxy that tells so by the standard's header", headers: { forwarded: "for=192.0.2.9" } },
    { name: "a proxy that tells of itself", headers: { via: "1.1 proxy" } },
    { name: "nginx as most set it up", headers: { "X-Real-IP": "192.0.2.9" } },
    { name: "a proxy that tells which host was asked", headers: { "X-Forwarded-Host": "davit.example" } },
    { name: "a proxy that tells which protocol was spoken", headers: { "x-forwarded-proto": "https" } },
    { name: "a proxy that tells which port was asked", headers: { "x-forwarded-port": "443" } },
    { name: "a proxy that tells nothing, but says so", headers: { "x-forwarded-for": "" } },
    { name: "Envoy", headers: { "x-envoy-external-address": "192.0.2.9" } },
    { name: "a proxy of those who run networks", headers: { "cf-connecting-ip": "192.0.2.9" } },
  ])("a loopback listener is not asked by $name", async ({ headers }) => {
    const { ask } = await start({});
    expect(await ask(headers)).toMatchObject({
      status: 403,
      body: "403 ask by a loopback address without a proxy, or start davit with --ops-token-file FILE, and send a token\n",
    });
  });
});

describe("with a file of tokens", () => {
  it.each(["127.0.0.1", "0.0.0.0"])("a listener on %s shows machines to who has one of them", async (boundTo) => {
    const { ask } = await start({ boundTo, tokenFile: await writeTokens("# ours", token, otherToken) });
    const host = "davit.example";
    expect(await ask({ host, authorization: `Bearer ${otherToken}` })).toMatchObject({ status: 200 });
    const basic = Buffer.from(`me:${token}`).toString("base64");
    expect(await ask({ host, authorization: `Basic ${basic}` })).toMatchObject({ status: 200 });
  });

  it.each([
    { name: "nothing", headers: {} },
    { name: "a wrong token", headers: { authorization: `Bearer ${token}x` } },
    { name: "the beginning of a token", headers: { authorization: `Bearer ${token.slice(0, -1)}` } },
    { name: "a comment of the file", headers: { authorization: "Bearer #-comment-of-the-file" } },
    { name: "a token in another header", headers: { "x-token": token } },
  ])("refuses $name, also on loopback, and says what it would take", async ({ headers }) => {
    const { ask, metrics } = await start({ tokenFile: await writeTokens("#-comment-of-the-file", token) });
    expect(await ask(headers)).toEqual({
      status: 401,
      body: "401 a token of --ops-token-file is needed\n",
      challenge: 'Bearer realm="davit", Basic realm="davit"',
    });
    expect(await metrics.text()).toContain("davit_ops_unauthorized_total 1");
  });

  it("takes new tokens and no longer old ones once the file has changed, and none when it is emptied", async () => {
    const { ask } = await start({ tokenFile: await writeTokens(token) });
    const statuses = async () => [
      (await ask({ authorization: `Bearer ${token}` })).status,
      (await ask({ authorization: `Bearer ${otherToken}` })).status,
    ];
    expect(await statuses()).toEqual([200, 401]);
    await writeTokens(otherToken);
    await expect.poll(statuses, soon).toEqual([401, 200]);
    await writeTokens("# nobody");
    await expect.poll(statuses, soon).toEqual([401, 401]);
  });

  it("does not open without a token in the file, or without the file", async () => {
    const tokenFile = await writeTokens("# nobody");
    await expect(start({ tokenFile })).rejects.toThrow(/^Cannot use ".*tokens": it has no token$/);
    const open = await writeTokensAs(0o644, token);
    const sentence = `Cannot use "${open}": other users can read or write it: chmod o= "${open}"`;
    await expect(start({ tokenFile: open })).rejects.toThrow(sentence);
    await expect(start({ tokenFile: join(folder, "none") })).rejects.toThrow(
      /^Cannot read ".*none": there is no such file/,
    );
  });
});

it("routes beside the guarded ones stay open", async () => {
  const { ask } = await start({ boundTo: "0.0.0.0", tokenFile: await writeTokens(token) });
  expect(await ask({}, "/open")).toMatchObject({ status: 200, body: "open\n" });
});
