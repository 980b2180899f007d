import { afterEach, expect, it } from "vitest";
import { toRfc3339 } from "../../../src/lib/clock.ts";
import { ExpiryWatch } from "../../../src/trust/sign/signer.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

const dayMs = 24 * 60 * 60 * 1_000;
const watches: ExpiryWatch[] = [];

afterEach(() => {
  for (const watch of watches.splice(0)) watch.stop();
});

function watchKey(daysLeft: number | undefined) {
  const clock = new FakeClock();
  const expiresAtMs = daysLeft === undefined ? undefined : clock.nowMs() + daysLeft * dayMs;
  const said: string[] = [];
  const log = {
    warn: (_data: object, message: string) => void said.push(`warn: ${message}`),
    error: (_data: object, message: string) => void said.push(`error: ${message}`),
  };
  const watch = new ExpiryWatch({ info: { fingerprint: "ABCD", expiresAtMs }, clock, log });
  watches.push(watch);
  return { clock, watch, said, when: toRfc3339(expiresAtMs ?? 0) };
}

it("a key that never ends needs no word, and no timer", () => {
  const { clock, watch, said } = watchKey(undefined);
  expect([said, watch.notice, watch.hasExpired, clock.sleeping]).toEqual([[], undefined, false, 0]);
});

it("the log warns from 30 days before the end on, once a day", async () => {
  const { clock, watch, said, when } = watchKey(33);
  await clock.advance(3 * dayMs - 1);
  expect([said, watch.notice]).toEqual([[], undefined]);
  await clock.advance(1);
  expect(said).toEqual(["warn: signing key expires soon"]);
  expect(watch.notice).toBe(`the signing key expires at ${when}`);
  await clock.advance(2 * dayMs);
  expect(said).toHaveLength(3);
});

it("the log says when the key has ended, once", async () => {
  const { clock, watch, said, when } = watchKey(1.5);
  await clock.advance(1.5 * dayMs - 1);
  expect(watch.hasExpired).toBe(false);
  await clock.advance(1);
  expect(watch.hasExpired).toBe(true);
  expect(watch.notice).toBe(`the signing key expired at ${when}, nothing is signed`);
  await clock.advance(5 * dayMs);
  expect(said).toEqual([
    "warn: signing key expires soon",
    "warn: signing key expires soon",
    "error: signing key has expired, nothing is signed",
  ]);
});

it("a clock that is set forward is noticed within a day", async () => {
  const { clock, said } = watchKey(400);
  await clock.advance(dayMs / 2);
  clock.stepWallClock(390 * dayMs);
  await clock.advance(dayMs);
  expect(said).toEqual(["warn: signing key expires soon"]);
});

it("nothing is said after `stop`", async () => {
  const { clock, watch, said } = watchKey(40);
  watch.stop();
  await clock.advance(50 * dayMs);
  expect([said, clock.sleeping]).toEqual([[], 0]);
});
