/** The operations listener with its door and the routes of machines, over machines in memory. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { answerError } from "../../src/http/errors.ts";
import { Guard } from "../../src/http/guard/guard.ts";
import { opsRow } from "../../src/http/guard/ops-guard.ts";
import { machineChanges } from "../../src/http/ops/machine-changes.ts";
import { machineRoutes } from "../../src/http/ops/machine-routes.ts";
import { guardRoutes } from "../../src/http/ops/routes.ts";
import { createOpsServer } from "../../src/http/ops/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { History } from "../../src/records/history/history.ts";
import { silentLog } from "../helpers/test-store.ts";
import { bookOf, type FakeMachines, fakeMachines, officeOf, plan } from "./fake-machines.ts";

export const readToken = "read-token-0123456789";
export const adminToken = "admin-token-0123456789";
export const mac = "52:54:00:a1:9c:ae";
export const uuid = "4c4c4544-0035-4d10-8051-b9c04f4e3232";
export const webBoot = {
  group: "racks/web",
  profile: "racks/flatcar",
  isHeld: false,
  revision: "r1",
  needsApproval: false,
  grants: [],
  plan,
};

export interface Given {
  readonly tokens?: boolean;
  readonly adminTokens?: boolean;
  readonly boundTo?: string;
  readonly follows?: boolean;
}

export type Method = "GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS";
export type Headers = Readonly<Record<string, string>>;

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Call it at the top of a test file. `fake` of the result is another one in each test. */
export function machinesListener() {
  let folder = "";
  let stops: (() => unknown)[] = [];
  const listener = { fake: fakeMachines(), start: (given: Given = {}) => start(listener.fake, given, folder, stops) };
  beforeEach(async () => {
    listener.fake = fakeMachines();
    folder = await mkdtemp(join(tmpdir(), "davit-ops-machines-"));
  });
  afterEach(async () => {
    for (const stop of stops) await stop();
    stops = [];
    await rm(folder, { recursive: true });
  });
  return listener;
}

async function start(fake: FakeMachines, given: Given, folder: string, stops: (() => unknown)[]) {
  const { tokens = false, adminTokens = false, boundTo = "127.0.0.1", follows = false } = given;
  const row = opsRow({
    tokenFile: tokens ? await tokenFile(folder, "tokens", readToken) : undefined,
    adminTokenFile: adminTokens ? await tokenFile(folder, "admin-tokens", adminToken) : undefined,
    boundTo: () => boundTo,
    metrics: createMetrics("1"),
  });
  const guard = await Guard.open(row, { clock: systemClock, log: silentLog });
  const server = createOpsServer({ log: silentLog, clock: systemClock, answerError });
  const { app } = server;
  stops.push(
    () => guard.stop(),
    () => server.close(),
  );
  const book = bookOf(fake);
  const history = new History({ clock: systemClock, metrics: createMetrics("1") });
  await app.register((changing, _options, done) => {
    guardRoutes(changing, guard, "write");
    void changing.register(machineChanges, { book, office: follows ? undefined : officeOf(fake), log: silentLog });
    done();
  });
  await app.register((guarded, _options, done) => {
    guardRoutes(guarded, guard, "read");
    void guarded.register(machineRoutes, { book, history });
    done();
  });
  const ask = async (method: Method, url: string, headers: Headers = {}, body?: string) => {
    const all = { host: "127.0.0.1:8081", ...headers };
    const answer = await app.inject({ method, url, headers: all, ...(body !== undefined && { body }) });
    return { status: answer.statusCode, body: answer.body, headers: answer.headers };
  };
  const get = async (url: string, headers: Headers = {}) => await ask("GET", url, headers);
  const json = async (url: string) => JSON.parse((await get(url)).body);
  const post = async (action: string, body: object | string, headers: Headers = {}) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const all = { "content-type": "application/json", "x-davit-action": action, ...headers };
    const sent = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
    const answer = await ask("POST", `/machines/${action}`, sent, text);
    return [answer.status, answer.body.trimEnd()];
  };
  return { ask, get, json, post };
}

async function tokenFile(folder: string, name: string, token: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `${token}\n`, { mode: 0o600 });
  return path;
}
