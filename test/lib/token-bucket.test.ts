import { expect, it } from "vitest";
import { TokenBucket } from "../../src/lib/token-bucket.ts";
import { statusPace } from "../../src/sources/kubernetes/status/status-writer.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

/** How long a first sync writes, where an API server takes one write after the other. */
async function secondsFor(count: number, writeMs: number): Promise<number> {
  const clock = new FakeClock();
  const bucket = new TokenBucket({ clock, ...statusPace });
  for (let written = 0; written < count; ) {
    await clock.advance(writeMs);
    if (bucket.tryTake()) written++;
  }
  return clock.monotonicMs() / 1_000;
}

it("the pace of statuses lets 10,000 through in well under a minute, and no more than 150 a second for long", async () => {
  const start = await secondsFor(0, 4);
  expect((await secondsFor(10_000, 4)) - start).toBeLessThan(50);
  const steady = (await secondsFor(30_000, 4)) - (await secondsFor(15_000, 4));
  expect(Math.round(15_000 / steady)).toBeLessThanOrEqual(150);
});
