import { beforeEach, describe, expect, it } from "vitest";
import type { ApiError } from "../../../src/sources/kubernetes/client/api-error.ts";
import type { ApiRequest } from "../../../src/sources/kubernetes/client/client.ts";
import { TestBed, until } from "./client-under-test.ts";
import { type Handler, sendStatus } from "./fake-api-server.ts";
import { useFakeServer } from "./fake-server-suite.ts";

const suite = useFakeServer();
const signal = new AbortController().signal;
const get: ApiRequest = { path: "/api/v1/namespaces/default/configmaps/a", signal };
const patch: ApiRequest = {
  ...get,
  method: "PATCH",
  body: { contentType: "application/apply-patch+yaml", value: { status: { configs: "ipxe" } } },
};

beforeEach(() => {
  suite.server.put({ kind: "ConfigMap", name: "a", content: { data: { key: "value" } } });
});

function bedOf(...limits: { timeoutMs?: number; maxBodyBytes?: number }[]): TestBed {
  const bed = new TestBed(suite.server.url, ...limits);
  suite.stopsLater(bed.client);
  return bed;
}

const answers =
  (code: number, headers = {}): Handler =>
  (_, response) =>
    sendStatus(response, code, "Whatever", headers);

/** The error of a call that has to fail. */
function failureOf(call: Promise<unknown>): Promise<ApiError> {
  return call.then(
    () => Promise.reject(new Error("The call succeeded")),
    (error: ApiError) => error,
  );
}

describe("a call", () => {
  it("shows its credentials and who asks, and returns the answer's JSON", async () => {
    const bed = bedOf();
    expect(await bed.client.json(get)).toMatchObject({ data: { key: "value" } });
    const [request] = suite.server.requests;
    expect(request?.headers.authorization).toBe("Bearer first");
    expect(request?.headers["user-agent"]).toBe("davit/1.2.3");
    expect(request?.headers.accept).toBe("application/json");
  });

  it("sends a body as it is told to", async () => {
    const bed = bedOf();
    await bed.client.json(patch);
    const [request] = suite.server.requests;
    expect(request?.method).toBe("PATCH");
    expect(request?.headers["content-type"]).toBe("application/apply-patch+yaml");
    expect(request?.body).toEqual({ status: { configs: "ipxe" } });
  });

  it("uses a connection of the ones before", async () => {
    const bed = bedOf();
    for (let count = 0; count < 20; count++) await bed.client.json(get);
    // A connection is free again only a moment after its answer has ended, so that there may be a second one.
    expect(suite.server.openSockets).toBeLessThanOrEqual(2);
  });

  it("is counted with its code, and timed", async () => {
    const bed = bedOf();
    suite.server.once("get", answers(404));
    await failureOf(bed.client.json(get));
    await bed.client.json(get);
    const host = suite.server.url.slice("http://".length);
    expect(await bed.measured("rest_client_requests_total")).toEqual([
      `rest_client_requests_total{code="200",method="GET",host="${host}"} 1`,
      `rest_client_requests_total{code="404",method="GET",host="${host}"} 1`,
    ]);
    expect(await bed.measured("rest_client_request_duration_seconds_count")).toEqual([
      `rest_client_request_duration_seconds_count{verb="GET",host="${host}"} 2`,
    ]);
  });

  it("passes on what the API server warns of, once each", async () => {
    const bed = bedOf();
    const warn: Handler = (_, response) => void response.writeHead(200, { warning: '299 - "v1 is old"' }).end("{}");
    suite.server.once("get", warn);
    suite.server.once("get", warn);
    await bed.client.json(get);
    await bed.client.json(get);
    expect(bed.told("the API server warns").map(({ warning }) => warning)).toEqual(["v1 is old"]);
  });
});

describe("a call that fails", () => {
  it.each([
    { name: "a refusal", handler: answers(403), failure: "answered", status: 403 },
    { name: "an answer that is no JSON", handler: raw("<html>"), failure: "protocol", status: undefined },
    {
      name: "an answer that is too long",
      handler: raw(`"${"x".repeat(400)}"`),
      failure: "protocol",
      status: undefined,
    },
  ])("by $name is not made again", async ({ handler, failure, status }) => {
    const bed = bedOf({ maxBodyBytes: 200 });
    suite.server.once("get", handler);
    const error = await failureOf(bed.client.json(get));
    expect([error.failure, error.status]).toEqual([failure, status]);
    expect(suite.server.requests).toHaveLength(1);
  });

  it.each([
    { name: "the connection is cut", handler: cut },
    { name: "the server is out of order", handler: answers(500) },
    { name: "the server is busy", handler: answers(429) },
  ])("because $name is made again, if it is a GET", async ({ handler }) => {
    const bed = bedOf();
    suite.server.once("get", handler);
    const called = bed.client.json(get);
    await until(() => bed.clock.nextWakeMs === 250);
    await bed.clock.advance(250);
    expect(await called).toMatchObject({ data: { key: "value" } });
    expect(suite.server.requests).toHaveLength(2);
  });

  it("three times is given up", async () => {
    const bed = bedOf();
    suite.server.always(/./, answers(500));
    const called = failureOf(bed.client.json(get));
    for (const delayMs of [250, 500]) {
      await until(() => bed.clock.nextWakeMs === delayMs);
      await bed.clock.advance(delayMs);
    }
    expect((await called).status).toBe(500);
    expect(suite.server.requests).toHaveLength(3);
  });

  it("and might have changed something is not made again, unless it was a 429", async () => {
    const bed = bedOf();
    suite.server.once("patch", answers(500));
    expect((await failureOf(bed.client.json(patch))).status).toBe(500);
    suite.server.once("patch", answers(429, { "retry-after": "4" }));
    const called = bed.client.json(patch);
    await until(() => bed.clock.nextWakeMs === 4_000);
    expect(suite.server.requests).toHaveLength(2);
    await bed.clock.advance(4_000);
    expect(await called).toMatchObject({ status: { configs: "ipxe" } });
  });

  it("for want of a valid token is made once more with a new one", async () => {
    const bed = bedOf();
    suite.server.always(/./, (request, response) => {
      if (request.headers.authorization === "Bearer first") sendStatus(response, 401, "Unauthorized");
      else response.end("{}");
    });
    await bed.client.json(get);
    expect(bed.renewals).toBe(1);
  });

  it("for want of a valid token twice tells so", async () => {
    const bed = bedOf();
    suite.server.always(/./, answers(401));
    expect((await failureOf(bed.client.json(get))).status).toBe(401);
    expect(suite.server.requests).toHaveLength(2);
  });

  it("because nobody answers ends after its time-out", async () => {
    const bed = bedOf({ timeoutMs: 5_000 });
    suite.server.always(/./, () => {});
    const called = failureOf(bed.client.json({ ...get, retries: 0 }));
    await until(() => suite.server.requests.length === 1);
    await bed.clock.advance(5_000);
    expect((await called).failure).toBe("late");
  });

  it("because the answer stops half-way ends after its time-out", async () => {
    const bed = bedOf({ timeoutMs: 5_000 });
    suite.server.once("get", (_, response) => {
      response.writeHead(200).write('{"data":');
    });
    const called = failureOf(bed.client.json({ ...get, retries: 0 }));
    await until(() => suite.server.requests.length === 1);
    await bed.clock.advance(5_000);
    expect((await called).failure).toBe("late");
  });

  it("tells nothing of what the API server said beyond its reason", async () => {
    const bed = bedOf();
    suite.server.once("get", (_, response) => sendStatus(response, 405, "MethodNotAllowed"));
    const error = await failureOf(bed.client.json(get));
    expect(error.message).toBe("the API server refuses (405 MethodNotAllowed)");
  });
});

describe("a watch", () => {
  it("does not wait for calls, nor they for it", async () => {
    const bed = bedOf();
    const body = await bed.client.watch({ ...get, path: "/api/v1/configmaps", query: { watch: "1" } });
    expect(body).toBeDefined();
    await bed.client.json(get);
    expect(suite.server.openSockets).toBe(2);
  });
});

describe("stopping", () => {
  it("ends calls under way, and leaves no socket", async () => {
    const bed = bedOf();
    suite.server.always(/./, () => {});
    const called = failureOf(bed.client.json({ ...get, retries: 0 }));
    await until(() => suite.server.requests.length === 1);
    await bed.client.stop();
    expect((await called).failure).toBe("unreachable");
    await until(() => suite.server.openSockets === 0);
    expect(bed.clock.sleeping).toBe(0);
  });
});

function raw(text: string): Handler {
  return (_, response) => void response.end(text);
}

function cut(...[, response]: Parameters<Handler>): void {
  response.destroy();
}
