/** Which machines count as stuck: those that boot again and again, and those that wait for long. */

import { describe, expect, it } from "vitest";
import { seen, startHistory } from "./seen-requests.ts";

const minuteMs = 60_000;
const machine = "mac=52-54-00-00-00-01";

/** What the metric says after requests at these minutes, some minutes later. */
async function stuckAfter(
  minutes: readonly number[],
  request: Parameters<typeof seen>[1],
  laterMinutes = 0,
  endpoint = "ipxe",
) {
  const { history, record, clock, metrics } = startHistory();
  for (const minute of minutes) record(seen(endpoint, { ...request, startedMs: minute * minuteMs }), machine);
  await history.current();
  await clock.advance(((minutes.at(-1) ?? 0) + laterMinutes) * minuteMs);
  await history.measure();
  const states = [...(await metrics.text()).matchAll(/^davit_boot_stuck_machines\{state="(\w+)"\} (\d+)$/gm)];
  return Object.fromEntries(states.map(([, state, count]) => [state, Number(count)]));
}

const every = (minutes: number, times: number) => Array.from({ length: times }, (_, at) => at * minutes);
const served = { status: 200 };
const refused = { status: 503 };

describe("a machine loops", () => {
  it.each([
    { name: "five boots, three minutes each", minutes: every(3, 5), looping: 1 },
    { name: "a boot of ten minutes, again and again", minutes: every(10, 12), looping: 1 },
    { name: "three boots of an installation", minutes: every(5, 3), looping: 0 },
    { name: "a script that is asked for ten times within one boot", minutes: every(0.05, 10), looping: 0 },
    { name: "a boot an hour", minutes: every(60, 24), looping: 0 },
  ])("$name: $looping", async ({ minutes, looping }) => {
    expect(await stuckAfter(minutes, served)).toEqual({ looping, waiting: 0 });
  });

  it("not any more when it has booted for good", async () => {
    expect(await stuckAfter(every(3, 6), served, 90)).toEqual({ looping: 0, waiting: 0 });
  });

  it.each([
    { name: "heads", endpoint: "ipxe", request: { ...served, isHead: true } },
    { name: "what is refused", endpoint: "ipxe", request: { status: 404 } },
    { name: "what is no script", endpoint: "ignition", request: served },
  ])("and $name do not count", async ({ endpoint, request }) => {
    expect(await stuckAfter(every(3, 20), request, 0, endpoint)).toEqual({ looping: 0, waiting: 0 });
  });
});

describe("a machine waits for long", () => {
  it("when it was refused for half an hour, and goes on asking", async () => {
    expect(await stuckAfter(every(1, 31), refused)).toEqual({ looping: 0, waiting: 1 });
  });

  it.each([
    { name: "for twenty minutes", minutes: every(1, 20), later: 0 },
    { name: "and is silent since", minutes: every(1, 40), later: 11 },
    { name: "with a pause", minutes: [...every(1, 20), ...every(1, 20).map((minute) => minute + 35)], later: 0 },
  ])("but not $name", async ({ minutes, later }) => {
    expect(await stuckAfter(minutes, refused, later)).toEqual({ looping: 0, waiting: 0 });
  });

  it("but not when it was answered meanwhile", async () => {
    const { history, record, clock, metrics } = startHistory();
    for (let minute = 0; minute < 40; minute++) {
      const status = minute === 20 ? 200 : 503;
      record(seen("ipxe", { startedMs: minute * minuteMs, status }), machine);
    }
    await history.current();
    await clock.advance(40 * minuteMs);
    await history.measure();
    expect(await metrics.text()).toContain('davit_boot_stuck_machines{state="waiting"} 0');
  });
});
