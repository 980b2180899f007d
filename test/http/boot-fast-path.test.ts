import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BootConfigs } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/boot-index.ts";
import { accessLog } from "../../src/http/boot/access-log.ts";
import { bootFastPath } from "../../src/http/boot/fast-path.ts";
import { bootRoutes } from "../../src/http/boot/routes.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type FastPath, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/create-log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { groupDocument, profileDocument, syncedDocument } from "../boot/feed-documents.ts";
import { readToEnd } from "./wire.ts";

interface TestedServer {
  readonly http: HttpServer;
  readonly port: number;
  readonly log: JsonObject[];
  /** Requests that the fast path took. */
  readonly taken: string[];
  readonly metrics: () => Promise<string>;
}

let fast: TestedServer;
let routes: TestedServer;

beforeEach(async () => {
  fast = await start(true);
  routes = await start(false);
});
afterEach(async () => {
  await fast.http.close();
  await routes.http.close();
});

async function start(hasFastPath: boolean): Promise<TestedServer> {
  const lines: JsonObject[] = [];
  const write = (line: string) => void lines.push(parseJsonObject(line) ?? {});
  const log = createLog({ level: "info", format: "json", destination: { write } });
  const metrics = createMetrics("test");
  const index = new BootIndex({ log });
  const ignition = { kind: "text", text: `{"ignition":{"version":"3.4.0"},"name":"{{name}}é"}`, raw: false } as const;
  const generic = { kind: "text", text: "{{absent}}", raw: false } as const;
  const parts = {
    "generic/user-data": { kind: "text", text: "name={{name}}", raw: false },
    "generic/bad": generic,
  } as const;
  index.replaced([
    profileDocument("lab/web", { boot: { kind: "local", local: "exit" }, templates: { ignition, generic, ...parts } }),
    groupDocument("lab/node", { selector: { mac: "52:54:00:00:00:01" }, metadata: { name: "a" } }),
    groupDocument("lab/held", { selector: { serial: "1" }, hold: true }),
    syncedDocument(),
  ]);
  index.open();
  const grub = { separator: "auto", commands: "auto" } as const;
  const configs = new BootConfigs({ index, authority: "192.0.2.1:8080", grub });
  const access = accessLog({ log, clock: systemClock, metrics });
  const shared = { log, clock: systemClock, answerError, isReadOnly: true, observe: access.observe };
  const taken: string[] = [];
  const inner = bootFastPath({ configs, accessLog: access });
  const fastPath: FastPath = (request, response, fail) => {
    const isTaken = inner(request, response, fail);
    if (isTaken) taken.push(request.url ?? "");
    return isTaken;
  };
  const http = createServer({ ...shared, ...(hasFastPath && { fastPath }) });
  await http.app.register(bootRoutes, { configs });
  const { port } = await http.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return { http, port, log: lines, taken, metrics: metrics.text };
}

async function ask({ port }: TestedServer, request: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(request, "latin1");
  return (await readToEnd(socket)).toString("latin1").replace(/^Date: .*\r\n/m, "Date\r\n");
}

/** Every line of the log but what differs from run to run. */
function told({ log }: TestedServer): readonly JsonObject[] {
  return log.map((line) => ({ ...line, time: "", durationMs: 0 })).filter(isJsonObject);
}

/** What was counted of requests. */
async function counted({ metrics }: TestedServer): Promise<readonly string[]> {
  return (await metrics()).split("\n").filter((line) => line.startsWith("davit_boot_requests_total{"));
}

const get = (target: string, userAgent = "iPXE/1.21.1") =>
  `GET ${target} HTTP/1.1\r\nHost: davit\r\nUser-Agent: ${userAgent}\r\nConnection: close\r\n\r\n`;
const machine = "mac=52-54-00-00-00-01";

describe("answers with the same bytes as the routes, and the same lines and counts", () => {
  it.each([
    { request: get(`/ipxe?${machine}`) },
    { request: get(`/ignition?${machine}`) },
    { request: get(`/metadata?${machine}&note=a%0ab&x=%zz`) },
    { request: get(`/generic?${machine}`) },
    { request: get(`/generic/user-data?${machine}`) },
    { request: get(`/generic/bad?${machine}`) },
    { request: get(`/generic/meta-data?${machine}`) },
    { request: get("/generic/user-data") },
    { request: get(`/cloud?${machine}`) },
    { request: get("/ipxe?serial=1") },
    { request: get("/ipxe?mac=unknown") },
    { request: get("/ipxe") },
    { request: get(`/ipxe?${Array.from({ length: 300 }, (_, at) => `l${at}=1`).join("&")}`) },
    { request: `GET /ipxe?${machine} HTTP/1.0\r\n\r\n` },
  ])("$request", async ({ request }) => {
    expect(await ask(fast, request)).toBe(await ask(routes, request));
    expect(fast.taken).toHaveLength(1);
    await expect.poll(() => told(fast)).toEqual(told(routes));
    expect(await counted(fast)).toEqual(await counted(routes));
  });
});

describe("leaves to the routes", () => {
  it.each([
    { name: "a HEAD", request: get(`/ipxe?${machine}`).replace("GET", "HEAD") },
    { name: "another method", request: get("/ipxe").replace("GET", "PUT") },
    { name: "GRUB", request: get(`/grub?${machine}`, "GRUB 2.06") },
    { name: "a long target", request: get(`/ipxe?${machine}&x=${"x".repeat(3_000)}`) },
    { name: "another path", request: get("/ipxe/") },
    { name: "a part by an odd name", request: get(`/generic/user%2Ddata?${machine}`) },
    { name: "a part by a name that none may have", request: get(`/generic/User-Data?${machine}`) },
    { name: "a part's signature without a key", request: get(`/generic/user-data.sig?${machine}`) },
    { name: "what is below a part", request: get(`/generic/user-data/x?${machine}`) },
    { name: "no part", request: get(`/generic/?${machine}`) },
    { name: "no Host", request: "GET /ipxe HTTP/1.1\r\nConnection: close\r\n\r\n" },
  ])("$name", async ({ request }) => {
    expect(await ask(fast, request)).toBe(await ask(routes, request));
    expect(fast.taken).toEqual([]);
  });
});
