import { describe, expect, it } from "vitest";
import { answerError } from "../../src/http/errors.ts";
import { opsRoutes, type ReadyCheck } from "../../src/http/ops/routes.ts";
import { createOpsServer } from "../../src/http/ops/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";

const good: ReadyCheck = { name: "store", check: () => undefined };
const bad: ReadyCheck = { name: "source", check: () => "no full list yet" };

async function get(url: string, checks: readonly ReadyCheck[] = [good]) {
  const log = createLog({ level: "silent", format: "json" });
  const { app } = createOpsServer({ log, clock: systemClock, answerError });
  await app.register(opsRoutes, { version: "1.2.3", checks, metrics: createMetrics("1.2.3") });
  const answer = await app.inject({ url, headers: { host: "davit" } });
  await app.close();
  return answer;
}

describe("`GET /livez`", () => {
  it("answers ok whatever the checks say", async () => {
    const answer = await get("/livez", [bad]);
    expect([answer.statusCode, answer.body]).toEqual([200, "ok\n"]);
  });
});

describe("`GET /readyz`", () => {
  it("answers ok when every check holds", async () => {
    const answer = await get("/readyz");
    expect([answer.statusCode, answer.body]).toEqual([200, "ok\n"]);
  });

  it("lists the checks with ?verbose", async () => {
    for (const query of ["verbose", "verbose=1", "x=1&verbose"]) {
      expect((await get(`/readyz?${query}`)).body).toBe("[+] store ok\nok\n");
    }
  });

  it("answers 503 and says what does not hold", async () => {
    const answer = await get("/readyz", [good, bad]);
    expect([answer.statusCode, answer.body]).toEqual([503, "[+] store ok\n[-] source: no full list yet\nnot ready\n"]);
  });
});

it("`GET /version` answers JSON", async () => {
  const answer = await get("/version");
  expect(answer.headers["content-type"]).toBe("application/json");
  expect(answer.json()).toEqual({ version: "1.2.3" });
});

it("`GET /metrics` answers what a scrape reads", async () => {
  const answer = await get("/metrics");
  expect(answer.headers["content-type"]).toMatch(/^text\/plain; version=/);
  expect(answer.body).toContain('davit_build_info{version="1.2.3"} 1');
});

it("other methods are refused", async () => {
  const log = createLog({ level: "silent", format: "json" });
  const { app } = createOpsServer({ log, clock: systemClock, answerError });
  await app.register(opsRoutes, { version: "1", checks: [], metrics: createMetrics("1") });
  const answer = await app.inject({ method: "POST", url: "/livez", headers: { host: "davit" } });
  expect([answer.statusCode, answer.headers.allow]).toEqual([405, "GET, HEAD"]);
  await app.close();
});
