import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { reportRoute } from "../../src/http/boot/report.ts";
import type { Recorder } from "../../src/http/boot/request-log.ts";
import { Clients } from "../../src/http/client-shares.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { createMetrics, type Metrics } from "../../src/lib/metrics/metrics.ts";
import type { MachineReport, ReportOutcome } from "../../src/model/permits/permit-desk.ts";
import { accessLog } from "../helpers/access-log.ts";
import { handlerOf } from "./handler-of.ts";

const token = "AbCdEfGhIjKlMnOpQrStUvWxYz012345";

let server: HttpServer;
let port = 0;
let metrics: Metrics;
let outcome: ReportOutcome | Error;
const reports: { token: string; report: MachineReport; address: string | undefined }[] = [];
const lines: string[] = [];
const recorded: Parameters<Recorder["record"]>[0][] = [];

beforeEach(async () => {
  outcome = "taken";
  for (const list of [reports, lines, recorded]) list.length = 0;
  metrics = createMetrics("test");
  const log = createLog({ level: "info", format: "json", destination: { write: (line) => void lines.push(line) } });
  const desk = {
    report: async (sent: string, report: MachineReport, address: string | undefined) => {
      if (outcome instanceof Error) throw outcome;
      reports.push({ token: sent, report, address });
      return outcome;
    },
  };
  const history = { record: (request: (typeof recorded)[number]) => void recorded.push(request) };
  const access = accessLog({ log, clock: systemClock, metrics, history });
  const handler = handlerOf([reportRoute({ desk, clients: new Clients() })], access);
  server = createServer({ log, clock: systemClock, answerError, handler });
  port = (await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" })).port;
});
afterEach(() => server.close());

interface Sent {
  readonly method?: string;
  readonly query?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
  readonly path?: string;
}

async function send({ method = "POST", query = "", body, headers = {}, path = token }: Sent) {
  const url = `http://127.0.0.1:${port}/report/${path}${query}`;
  const answer = await fetch(url, { method, headers, ...(body !== undefined && { body }) });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}
const form = "application/x-www-form-urlencoded";
const formType = { "content-type": form };
const jsonType = { "content-type": "application/json" };

describe("a report", () => {
  it.each<[string, Sent]>([
    ["a form", { body: "state=installed", headers: formType }],
    ["a form with a charset", { body: "state=installed", headers: { "content-type": `${form}; charset=utf-8` } }],
    ["a query", { query: "?state=installed" }],
    [
      "a query beside a form, which counts more",
      { query: "?state=failed", body: "state=installed", headers: formType },
    ],
    ["JSON", { body: '{"state":"installed"}', headers: jsonType }],
    ["JSON that is declared as a form", { body: ' {"state":"installed"}', headers: formType }],
    ["a GET with a state", { method: "GET", query: "?state=installed" }],
  ])("by %s is taken", async (_name, sent) => {
    const { status, text } = await send(sent);
    expect([status, text]).toEqual([200, "taken\n"]);
    expect(reports).toEqual([{ token, report: { state: "installed" }, address: "127.0.0.1" }]);
  });

  it("by a webhook of cloud-init is progress, without a content type", async () => {
    const event = { name: "modules-final", description: "done", event_type: "finish", result: "SUCCESS" };
    const body = Buffer.from(JSON.stringify(event));
    const answer = await fetch(`http://127.0.0.1:${port}/report/${token}`, { method: "POST", body });
    expect(answer.status).toBe(200);
    expect(reports[0]?.report).toEqual({ state: "progress", message: "finish modules-final SUCCESS: done" });
  });

  it.each<[ReportOutcome, number, string | null]>([
    ["taken", 200, null],
    ["unknown", 404, null],
    ["final", 409, null],
    ["tooMany", 429, "1"],
    ["late", 503, "1"],
  ])("with the outcome %s answers %i", async (given, status, retryAfter) => {
    outcome = given;
    const answer = await send({ query: "?state=installed" });
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([status, retryAfter]);
    expect(answer.text).not.toContain(token);
  });
});

describe("what reports nothing", () => {
  it.each([
    ["HEAD", "?state=installed", 405],
    ["PUT", "?state=installed", 405],
    ["DELETE", "?state=installed", 405],
    ["GET", "", 400],
    ["GET", "?progress=5", 400],
    ["POST", "", 400],
  ])("%s with the query %j answers %i", async (method, query, status) => {
    const answer = await send({ method, query });
    expect(answer.status).toBe(status);
    if (status === 405) expect(answer.headers.get("allow")).toBe("GET, POST");
    expect(reports).toEqual([]);
  });

  it.each(["", "short", `${token}.sig`, `${token}/x`, `%41${token}`, "x".repeat(65)])(
    "a path that is no token: %j",
    async (path) => {
      expect((await send({ query: "?state=installed", path })).status).toBe(404);
      expect(reports).toEqual([]);
    },
  );

  it("bad values: the answer names the field and quotes nothing", async () => {
    const answer = await send({ query: "?state=secretword" });
    expect([answer.status, answer.text]).toEqual([400, "400 bad report: state is missing or has a bad value\n"]);
    expect((await send({ body: "{nonsense", headers: jsonType })).text).toContain("body is missing or has a bad value");
  });

  it("another type of body, or a compressed one, which answers 415", async () => {
    expect((await send({ body: "<x/>", headers: { "content-type": "application/xml" } })).status).toBe(415);
    expect((await send({ body: "x", headers: { ...formType, "content-encoding": "gzip" } })).status).toBe(415);
  });

  it.each([
    ["a form of more than 4 KiB", `state=installed&message=${"x".repeat(4_096)}`, 413],
    ["JSON of more than 64 KiB", JSON.stringify({ state: "installed", x: "x".repeat(65_536) }), 413],
    ["JSON of 60 KiB, which is taken", JSON.stringify({ state: "installed", x: "x".repeat(60_000) }), 200],
  ])("%s", async (_name, body, status) => {
    expect((await send({ body, headers: formType })).status).toBe(status);
    expect(reports).toHaveLength(status === 200 ? 1 : 0);
    // The same without an announced length.
    const stream = new Blob([body]).stream();
    const url = `http://127.0.0.1:${port}/report/${token}`;
    const init = { method: "POST", headers: formType, body: stream, duplex: "half" } as const;
    expect((await fetch(url, init)).status).toBe(status);
  });
});

it("its token is in no log, no metric and no history", async () => {
  await send({ query: "?state=installed" });
  await send({ method: "HEAD", query: "?state=installed" });
  await send({ method: "PUT" });
  await send({ method: "GET", query: "?state=installed", path: `${token}.sig` });
  await fetch(`http://127.0.0.1:${port}/%72eport/${token}`);
  await fetch(`http://127.0.0.1:${port}//report/${token}`);
  outcome = new Error("a bug");
  expect((await send({ query: "?state=installed" })).status).toBe(500);
  await expect.poll(() => recorded.length).toBe(7);
  const all = [...lines, JSON.stringify(recorded), await metrics.text()].join("\n");
  expect(all).not.toContain(token);
  expect(all).toContain('"path":"/report"');
  expect(await metrics.text()).toContain('davit_boot_requests_total{endpoint="report",code="200"} 1');
});
