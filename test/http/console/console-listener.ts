/** The operations listener with the console, over machines in memory and a history of requests. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { openConsole } from "../../../src/app/boot/console.ts";
import { BootConfigs } from "../../../src/boot/boot-configs.ts";
import { BootIndex } from "../../../src/boot/selection/boot-index.ts";
import { Clients } from "../../../src/http/client-shares.ts";
import type { FollowedStore, StoreHealth } from "../../../src/http/console/pages/context.ts";
import { consoleRoutes } from "../../../src/http/console/routes.ts";
import { KnownStatuses } from "../../../src/http/console/state/objects.ts";
import { answerError } from "../../../src/http/errors.ts";
import { Guard } from "../../../src/http/guard/guard.ts";
import { opsRow } from "../../../src/http/guard/ops-guard.ts";
import { Previews } from "../../../src/http/ops/preview.ts";
import { createOpsServer } from "../../../src/http/ops/server.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { RecentLines } from "../../../src/lib/logging/recent-lines.ts";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import type { ClusterCallers } from "../../../src/model/cluster-callers.ts";
import type { SourceView } from "../../../src/model/objects/source.ts";
import { loadManifests, type Manifests } from "../../../src/offline/load/load-manifests.ts";
import { History } from "../../../src/records/history/history.ts";
import { Holdings } from "../../../src/sources/directory/holdings.ts";
import { soleMembership } from "../../../src/store/core/log-port.ts";
import { groupDocument, profileDocument, syncedDocument } from "../../boot/feed-documents.ts";
import { silentLog } from "../../helpers/test-store.ts";
import { seen } from "../../records/history/seen-requests.ts";
import { bookOf, fakeMachines, officeOf } from "../fake-machines.ts";

export const readToken = "read-token-0123456789";
export const adminToken = "admin-token-0123456789";
export const host = "127.0.0.1:8081";
export const origin = `http://${host}`;

export interface Given {
  readonly tokens?: boolean;
  readonly adminTokens?: boolean;
  readonly boundTo?: string;
  readonly callers?: ClusterCallers;
  readonly follows?: boolean;
  readonly store?: StoreHealth["store"];
  readonly followers?: ReturnType<StoreHealth["followers"]>;
  readonly followed?: ReturnType<FollowedStore["status"]>;
  readonly notReady?: string;
  readonly attention?: readonly string[];
  /** Another member leads the store. */
  readonly isLed?: boolean;
  /** Manifests of files, by their names. Without them there are a Group and a Profile, whose statuses are not known. */
  readonly manifests?: Readonly<Record<string, string>>;
}

export interface Asked {
  readonly method?: "GET" | "HEAD" | "POST" | "PUT";
  readonly headers?: Readonly<Record<string, string>>;
  readonly form?: Readonly<Record<string, string>>;
  /** Where the connection comes from. */
  readonly remoteAddress?: string;
}

export interface Answered {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** Call it at the top of a test file. */
export function consoleListener() {
  let folder = "";
  let stops: (() => unknown)[] = [];
  const listener = {
    fake: fakeMachines(),
    statuses: new KnownStatuses(),
    folder: () => folder,
    start: (given: Given = {}) => start(listener, given, stops),
  };
  beforeEach(async () => {
    listener.fake = fakeMachines();
    listener.statuses = new KnownStatuses();
    folder = await mkdtemp(join(tmpdir(), "davit-console-"));
  });
  afterEach(async () => {
    for (const stop of stops.toReversed()) await stop();
    stops = [];
    await rm(folder, { recursive: true });
  });
  return listener;
}

type Listener = Pick<ReturnType<typeof consoleListener>, "fake" | "statuses" | "folder">;

async function start({ fake, statuses, folder }: Listener, given: Given, stops: (() => unknown)[]) {
  const { tokens = false, adminTokens = false, boundTo = "127.0.0.1", follows = false } = given;
  const metrics = createMetrics("1");
  const row = opsRow({
    tokenFile: tokens ? await writeToken(folder(), "tokens", readToken) : undefined,
    adminTokenFile: adminTokens ? await writeToken(folder(), "admin-tokens", adminToken) : undefined,
    boundTo: () => boundTo,
    metrics,
  });
  const guard = await Guard.open(row, { clock: systemClock, log: silentLog });
  stops.push(() => guard.stop());
  const history = new History({ clock: systemClock, metrics });
  stops.push(() => history.stop());
  const index = new BootIndex({ log: silentLog });
  const loaded = given.manifests && (await load(folder(), given.manifests));
  index.replaced(loaded?.documents ?? presetDocuments);
  for (const { name, status } of loaded?.planned ?? []) if (status) await statuses.write(name, status);
  index.open();
  const grub = { separator: "auto", commands: "auto" } as const;
  const authority = "192.0.2.1:8080";
  const previews = new Previews({ index, configsOver: (view) => new BootConfigs({ index: view, authority, grub }) });
  const server = createOpsServer({ log: silentLog, clock: systemClock, answerError });
  stops.push(() => server.close());
  const lines = new RecentLines(systemClock);
  const log = lines.over(silentLog, "ops");
  const stopping = new AbortController();
  stops.push(() => stopping.abort());
  const { app } = server;
  const options = await openConsole({
    index,
    history,
    previews,
    bootFilesOf: () => undefined,
    machines: { book: bookOf(fake), office: follows ? undefined : officeOf(fake) },
    ...(follows ? followerParts(given) : servedParts(given, statuses, loaded?.view ?? new Holdings())),
    checks: [{ name: "boot", check: () => given.notReady }],
    attention: () => given.attention ?? [],
    lines,
    metrics,
    version: "1.2.3",
    rendering: () => ({ authority, grub }),
    guard,
    clients: new Clients(),
    clock: systemClock,
    log,
    signal: stopping.signal,
  });
  await app.register(consoleRoutes, options);
  const ask = async (url: string, { method = "GET", headers = {}, form, remoteAddress }: Asked = {}) => {
    const sent = form && { payload: new URLSearchParams(form).toString() };
    const type = form && { "content-type": "application/x-www-form-urlencoded" };
    const answer = await app.inject({
      url,
      method,
      headers: { host, ...type, ...headers },
      ...sent,
      ...(remoteAddress !== undefined && { remoteAddress }),
    });
    return { status: answer.statusCode, body: answer.body, headers: answer.headers } satisfies Answered;
  };
  const record = (query: string, given: Parameters<typeof seen>[1] = {}) =>
    history.record({ ...seen("ipxe", given), query, startedMs: systemClock.monotonicMs() });
  return { ask, record, server, history, index, log };
}

function servedParts({ callers, isLed, store, followers }: Given, statuses: KnownStatuses, view: SourceView) {
  const health = { store: store ?? soleStore, quotaBytes: 1024 * 1024, followers: () => followers ?? [] };
  const shown = isLed === true ? undefined : view;
  const served = {
    statuses,
    callers: () => callers,
    view: () => shown,
    adminNamespace: () => undefined,
    store: health,
  };
  return { served, followed: undefined };
}

function followerParts({ followed = notConnected }: Given) {
  return { served: undefined, followed: { place: "https://davit.example:2379", status: () => followed } };
}

export const soleStore: StoreHealth["store"] = {
  status: "writable",
  trouble: undefined,
  bytes: 512 * 1024,
  indexes: { storeIndex: 7, raftIndex: 7, raftTerm: 1 },
  membership: soleMembership(() => 0),
  watcherCount: 2,
};

const notConnected = {
  isConnected: false,
  isWithheld: false,
  index: undefined,
  ageSeconds: undefined,
  provenAtMs: undefined,
};

const presetDocuments = [
  profileDocument("racks/flatcar", {
    templates: { ignition: { kind: "text", text: `{"ignition":{"version":"3.4.0"}}`, raw: true } },
  }),
  groupDocument("racks/web", { profile: "flatcar", selector: { mac: "52:54:00:00:00:01" } }),
  syncedDocument(),
];

/** Reads manifests as `davit serve` does. */
async function load(folder: string, files: Readonly<Record<string, string>>): Promise<Manifests> {
  const directory = join(folder, "manifests");
  await mkdir(directory);
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  return await loadManifests({ directories: [directory], log: silentLog });
}

async function writeToken(folder: string, name: string, token: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `${token}\n`, { mode: 0o600 });
  return path;
}

/** Returns the value that a page's forms send back. */
export function formTokenIn(body: string): string {
  return /name="form" value="([^"]+)"/.exec(body)?.[1] ?? "";
}

/** Returns the session's cookie that an answer sets, as the browser sends it back. */
export function cookieOf({ headers }: Answered): string {
  return String(headers["set-cookie"]).split(";")[0] ?? "";
}
