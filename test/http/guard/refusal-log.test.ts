/** Requests that the store's guard refuses are logged: enough to find who asks, and never as many as are asked. */

import { expect, it } from "vitest";
import { storeRow } from "../../../src/http/guard/store-guard.ts";
import { createLog } from "../../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { parseJsonObject } from "../../../src/model/json.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

function underTest() {
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = createLog({ level: "info", format: "json", destination: { write: (line: string) => lines.push(line) } });
  return { clock, lines, refused: storeRow({ clock, log, metrics: createMetrics("1") }).refused };
}

it("names client, method and reason, once a minute, and counts the rest", async () => {
  const { clock, lines, refused } = underTest();
  const request = { client: "192.0.2.7", method: "GET", reason: "unauthorized" } as const;
  for (let count = 0; count < 5; count++) refused(request);
  refused({ ...request, reason: "forbidden" });
  await clock.advance(60_000);
  refused(request);
  const { time: _, level: __, ...first } = parseJsonObject(lines[0] ?? "") ?? {};
  expect(first).toEqual({ ...request, msg: "request refused" });
  expect(lines.map((line) => parseJsonObject(line)?.unlogged)).toEqual([undefined, 4, undefined]);
});

it("writes few lines for many clients", async () => {
  const { clock, lines, refused } = underTest();
  for (let second = 0; second < 60; second++) {
    for (let host = 0; host < 100; host++) {
      refused({ client: `192.0.${second}.${host}`, method: "PUT", reason: "wrongHost" });
    }
    await clock.advance(1_000);
  }
  expect(lines.length).toBeGreaterThan(10);
  expect(lines.length).toBeLessThan(25);
});
