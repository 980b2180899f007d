/** When what was recorded is taken into the records, at what cost, and what is lost meanwhile. */

import { describe, expect, it } from "vitest";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { labelsFromQuery } from "../../../src/model/labels/labels.ts";
import { History } from "../../../src/records/history/history.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { beganAtMs, seen, startHistory } from "./seen-requests.ts";

const machine = "mac=52-54-00-00-00-01";

/** A clock that goes on by itself each time somebody looks at it. */
class BusyClock extends FakeClock {
  readonly #stepMs: number;
  looks = 0;

  constructor(stepMs: number) {
    super(beganAtMs);
    this.#stepMs = stepMs;
  }

  override monotonicMs(): number {
    return super.monotonicMs() + this.#stepMs * this.looks++;
  }
}

function endpointsIn(view: Awaited<ReturnType<History["current"]>>): readonly string[] | undefined {
  return view.find(labelsFromQuery(machine), 1)[0]?.requests.map(({ endpoint }) => endpoint);
}

describe("a question", () => {
  it("is answered with the request before it", async () => {
    const { history, record } = startHistory();
    record(seen("ipxe"), machine);
    expect(endpointsIn(await history.current())).toEqual(["ipxe"]);
    record(seen("ignition", { startedMs: 5 }), machine);
    expect(endpointsIn(await history.current())).toEqual(["ipxe", "ignition"]);
  });

  it("is answered with more requests than are taken over at a stretch, in their order", async () => {
    const { history, record } = startHistory();
    const all = Array.from({ length: 1_000 }, (_, at) => `e${at}`);
    for (const [startedMs, endpoint] of all.entries()) record(seen(endpoint, { startedMs }), machine);
    const [one, other] = await Promise.all([history.current(), history.current()]);
    expect(endpointsIn(one)).toEqual(all.slice(-64));
    expect(endpointsIn(other)).toEqual(all.slice(-64));
  });

  it("is answered although requests come as fast as they are taken over", async () => {
    const { history, record } = startHistory();
    for (let at = 0; at < 300; at++) record(seen("before"), machine);
    const answer = history.current();
    for (let at = 0; at < 300; at++) record(seen("after"), machine);
    expect(endpointsIn(await answer)).toContain("before");
  });
});

describe("what was recorded", () => {
  it("is taken over after a rest, without a question", async () => {
    const { history, clock, record } = startHistory();
    record(seen("ipxe"), machine);
    const waitingBytes = history.sizeBytes;
    expect(clock.sleeping).toBe(1);
    await clock.advance(200);
    // A machine and its address take more memory than what waited.
    expect(history.sizeBytes).toBeGreaterThan(waitingBytes + 500);
    expect(clock.sleeping).toBe(0);
  });

  it("is taken over for half a per cent of the time at most", async () => {
    const clock = new BusyClock(0.3);
    const history = new History({ clock, metrics: createMetrics("1") });
    for (let at = 0; at < 100; at++) history.record(seen("ipxe", { query: machine }));
    const looks = [];
    for (let rest = 0; rest < 3; rest++) {
      const before = clock.looks;
      await clock.advance(200);
      looks.push(clock.looks - before);
    }
    // When it began, and then before each request until a millisecond was over.
    expect(looks).toEqual([5, 5, 5]);
    expect(clock.sleeping).toBe(1);
  });

  it("is still found after a stop, which leaves nobody waiting", async () => {
    const { history, clock, record } = startHistory();
    record(seen("ipxe"), machine);
    await history.stop();
    await clock.advance(0);
    record(seen("ignition", { startedMs: 1 }), machine);
    expect(clock.sleeping).toBe(0);
    expect(endpointsIn(await history.current())).toEqual(["ipxe", "ignition"]);
  });
});

describe("a flood", () => {
  it("loses the oldest that wait, and tells how many and when", async () => {
    const { history, record } = startHistory({ maxWaiting: 4, maxWaitingBytes: 4_096 });
    for (let at = 0; at < 10; at++) record(seen(`e${at}`, { startedMs: at * 1_000 }), machine);
    const view = await history.current();
    expect(endpointsIn(view)).toEqual(["e6", "e7", "e8", "e9"]);
    expect(view.unrecorded).toEqual({ count: 6, firstAtMs: beganAtMs, lastAtMs: beganAtMs + 5_000 });
  });

  it("is a metric, which grows by each request that is lost, and by no other", async () => {
    const { history, metrics, record } = startHistory({ maxWaiting: 4, maxWaitingBytes: 4_096 });
    const lost = async () => {
      await history.measure();
      return /^davit_boot_history_lost_total (\d+)$/m.exec(await metrics.text())?.[1];
    };
    expect(await lost()).toBe("0");
    for (let at = 0; at < 10; at++) record(seen("ipxe"), machine);
    expect([await lost(), await lost()]).toEqual(["6", "6"]);
    await history.current();
    for (let at = 0; at < 5; at++) record(seen("ipxe"), machine);
    expect(await lost()).toBe("7");
  });

  it("of 32,768 requests with what iPXE sends is held", async () => {
    const { history, record } = startHistory();
    const query = `uuid=a1b2c3d4-0000-4000-8000-000000000001&${machine}&domain=lab.example&hostname=node-0001&serial=123456789`;
    for (let at = 0; at < 32_768; at++) record(seen("ipxe", { startedMs: at }), query);
    expect((await history.current()).unrecorded).toBeUndefined();
    record(seen("ipxe"), query);
    expect((await history.current()).unrecorded).toBeUndefined();
  });

  it("takes no more memory than a history has", () => {
    const { history, record } = startHistory();
    for (let at = 0; at < 40_000; at++) record(seen("ipxe"), `mac=52-54-00-00-00-01&note=${"n".repeat(at % 2_000)}`);
    expect(history.sizeBytes).toBeLessThan(32 * 1024 * 1024);
  });
});
