/** Requests that followers answered, which come late into the writer's history, beside its own. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { labelsFromQuery } from "../../../src/model/labels/labels.ts";
import { bootsOf, plainStage } from "../../../src/records/history/boots.ts";
import { type Given, handed, seen, startHistory } from "./seen-requests.ts";

const one = "mac=52-54-00-00-00-01";
const other = "mac=52-54-00-00-00-02";

/** A history with the requests of this davit and of a follower, in the order of their arrival. */
function arrived(
  ...requests: readonly (readonly [from: "own" | "pod", endpoint: string, given: Given, query?: string | undefined])[]
) {
  const started = startHistory();
  const { history, record } = started;
  const arrive = async () => {
    for (const [from, endpoint, given, query] of requests) {
      if (from === "pod") history.add(handed(endpoint, given, query));
      else record(seen(endpoint, given), query);
      // The own queue is moved before the next arrival.
      await history.current();
    }
    return history.current();
  };
  return { ...started, arrive };
}

const at = (startedMs: number, status = 200): Given => ({
  startedMs,
  status,
  refusal: status === 503 ? "held" : undefined,
});

async function lineOf(of: ReturnType<typeof arrived>, query = one): Promise<readonly string[]> {
  const view = await of.arrive();
  const [machine] = view.find(labelsFromQuery(query), 1);
  return bootsOf(machine?.requests ?? [], plainStage).map(({ line }) => line);
}

describe("the boot of a machine that asked two davits", () => {
  it("is in the order of its requests, although the follower's come late", async () => {
    const history = arrived(
      ["own", "ignition", at(2_000), one],
      ["own", "assets", { startedMs: 900, path: "/assets/initrd" }],
      ["pod", "boot.ipxe", at(0)],
      ["pod", "ipxe", at(100), one],
      ["pod", "assets", { startedMs: 500, path: "/assets/linux" }],
    );
    expect(await lineOf(history)).toEqual(["boot.ipxe -> ipxe -> assets/linux -> assets/initrd -> ignition"]);
  });

  it("shows who answered each request, of repeated refusals the last one", async () => {
    const { arrive } = arrived(
      ["own", "ipxe", at(0, 503), one],
      ["pod", "ipxe", at(1_000, 503), one],
      ["own", "ipxe", at(2_000), one],
    );
    const [machine] = (await arrive()).find(labelsFromQuery(one), 1);
    expect(machine?.requests.map(({ endpoint, times, via }) => [endpoint, times, via])).toEqual([
      ["ipxe", 2, "pod-1"],
      ["ipxe", 1, undefined],
    ]);
  });

  it.each([
    { name: "a late refusal joins the earlier ones", late: at(500, 503), line: "ignition 503 x3 -> cloud" },
    {
      name: "a late refusal before all others is the first one",
      late: at(-500, 503),
      line: "ignition 503 x3 -> cloud",
    },
    {
      name: "a late answer is between two refusals",
      late: at(500),
      line: "ignition 503 -> ignition -> ignition 503 -> cloud",
    },
    { name: "a late answer is before all refusals", late: at(-500), line: "ignition -> ignition 503 x2 -> cloud" },
    { name: "a late answer is after the refusals", late: at(1_500), line: "ignition 503 x2 -> ignition -> cloud" },
  ])("$name", async ({ late, line }) => {
    const requests = [
      ["own", "ignition", at(0, 503), one],
      ["own", "ignition", at(1_000, 503), one],
      ["own", "cloud", at(2_000), one],
      ["pod", "ignition", late, one],
    ] as const;
    expect(await lineOf(arrived(...requests))).toEqual([line]);
  });

  it("is the same whatever came late", async () => {
    const request = fc.record({
      from: fc.constantFrom("own" as const, "pod" as const),
      gapMs: fc.integer({ min: 1, max: 2_000 }),
      lateMs: fc.integer({ min: 0, max: 8_000 }),
      hasLabels: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 100 }), async (requests) => {
        let startedMs = 0;
        const all = requests.map(({ from, gapMs, lateMs, hasLabels }, number) => {
          startedMs += gapMs;
          const query = hasLabels ? one : undefined;
          const arrivesMs = startedMs + (from === "pod" ? lateMs : 0);
          return { arrivesMs, request: [from, `e${number}`, at(startedMs), query] as const };
        });
        const inOrder = await lineOf(arrived(...all.map((each) => each.request)));
        const byArrival = all.toSorted((before, after) => before.arrivesMs - after.arrivesMs);
        expect(await lineOf(arrived(...byArrival.map((each) => each.request)))).toEqual(inOrder);
      }),
    );
  });

  it("loses and invents no refusal, and ends as it ended", async () => {
    const request = fc.record({
      from: fc.constantFrom("own" as const, "pod" as const),
      gapMs: fc.integer({ min: 2, max: 2_000 }),
      lateMs: fc.integer({ min: 0, max: 8_000 }),
      status: fc.constantFrom(200, 503, 404),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 60 }), async (requests) => {
        let startedMs = 0;
        const all = requests.map(({ from, gapMs, lateMs, status }) => {
          startedMs += gapMs;
          const arrivesMs = startedMs + (from === "pod" ? lateMs : 0);
          return { arrivesMs, status, request: [from, "ignition", at(startedMs, status), one] as const };
        });
        const byArrival = all.toSorted((before, after) => before.arrivesMs - after.arrivesMs);
        const { arrive } = arrived(...byArrival.map((each) => each.request));
        const [machine] = (await arrive()).find(labelsFromQuery(one), 1);
        const found = machine?.requests ?? [];
        for (const status of [200, 503, 404]) {
          const count = found.filter((each) => each.status === status).reduce((sum, { times }) => sum + times, 0);
          expect(count).toBe(all.filter((each) => each.status === status).length);
        }
        expect(found.at(-1)?.status).toBe(all.at(-1)?.status);
        const starts = found.map(({ startedAtMs }) => startedAtMs);
        expect(starts).toEqual(starts.toSorted((before, after) => before - after));
      }),
    );
  });

  it("has its newest requests, if there are more than are kept", async () => {
    const { history, record } = startHistory({ maxRequests: 4 });
    for (const startedMs of [10, 20, 40, 50]) record(seen(`e${startedMs}`, { startedMs }), one);
    await history.current();
    for (const startedMs of [5, 30, 15, 45]) history.add(handed(`e${startedMs}`, { startedMs }, one));
    const [machine] = (await history.current()).find(labelsFromQuery(one), 1);
    expect(machine?.requests.map(({ endpoint }) => endpoint)).toEqual(["e30", "e40", "e45", "e50"]);
  });
});

describe("late requests", () => {
  it("change neither the address nor the labels that a machine has now", async () => {
    const { history, record } = startHistory();
    record(seen("ipxe", { startedMs: 5_000, address: "10.0.0.9" }), `${one}&hostname=new`);
    await history.current();
    for (const startedMs of [0, 1_000]) {
      history.add(handed("ipxe", { startedMs, address: "10.0.0.8" }, `${one}&hostname=old`));
    }
    const [machine] = [...(await history.current()).recordedMachines()];
    expect(machine).toMatchObject({
      address: "10.0.0.9",
      labels: new Map([
        ["mac", "52:54:00:00:00:01"],
        ["hostname", "new"],
      ]),
    });
    expect((await history.current()).find(labelsFromQuery("hostname=old"), 1)).toHaveLength(1);
  });

  it("of another machine at the address make the files of both nobody's", async () => {
    const history = arrived(
      ["own", "ipxe", at(1_000), one],
      ["own", "assets", at(1_100)],
      ["pod", "ipxe", at(0), other],
    );
    expect(await lineOf(history)).toEqual(["ipxe"]);
  });

  it("of the machine itself name the files before them", async () => {
    const history = arrived(
      ["own", "assets", { startedMs: 50_000, path: "/assets/linux" }],
      ["own", "ignition", at(700_000), one],
      ["pod", "ipxe", at(100_000), one],
    );
    expect(await lineOf(history)).toEqual(["assets/linux -> ipxe -> ignition"]);
  });

  it("are no machine's at an address that had too many machines then", async () => {
    const { history, record } = startHistory();
    const query = (machine: number) => `mac=52-54-00-00-00-${machine}`;
    for (let machine = 10; machine < 18; machine++) record(seen("ipxe", { startedMs: 700_000 }), query(machine));
    await history.current();
    history.add(handed("ipxe", { startedMs: 50_000 }, query(18)));
    // If the others were forgotten, the file would be this machine's.
    record(seen("ipxe", { startedMs: 1_255_000 }), query(19));
    record(seen("assets", { startedMs: 1_260_000 }));
    const [machine] = (await history.current()).find(labelsFromQuery(query(19)), 1);
    expect(machine?.requests.map(({ endpoint }) => endpoint)).toEqual(["ipxe"]);
  });

  it.each([
    { name: "do not make a machine wait that was answered since", newest: 200, late: 503, waiting: 0 },
    { name: "end a wait that was interrupted", newest: 503, late: 200, waiting: 0 },
    { name: "leave a machine waiting that got only refusals", newest: 503, late: 503, waiting: 1 },
  ])("$name", async ({ newest, late, waiting }) => {
    const { history, record, clock, metrics } = startHistory();
    const minuteMs = 60_000;
    const minutes = Array.from({ length: 41 }, (_, minute) => minute);
    if (newest === 503) for (const minute of minutes) record(seen("ignition", at(minute * minuteMs, 503)), one);
    record(seen("ignition", at(41 * minuteMs, newest)), one);
    await history.current();
    const lateMinutes = newest === 503 ? [40.5] : minutes;
    for (const minute of lateMinutes) history.add(handed("ignition", at(minute * minuteMs, late), one));
    await clock.advance(41 * minuteMs);
    await history.measure();
    expect(await metrics.text()).toContain(`davit_boot_stuck_machines{state="waiting"} ${waiting}\n`);
  });
});

describe("the memory", () => {
  it("has room for the names of many followers", async () => {
    const { history } = startHistory();
    for (let number = 0; number < 40_000; number++) {
      const machine = (number >> 6).toString(16).padStart(4, "0");
      const query = `mac=52-54-00-00-${machine.slice(0, 2)}-${machine.slice(2)}`;
      history.add(handed(`e${number & 63}`, { startedMs: number }, query, `pod-${number}`));
    }
    const view = await history.current();
    const via = view.recent(1_000).flatMap(({ requests }) => requests.map((request) => request.via));
    expect([via.length, new Set(via).size]).toEqual([40_000, 40_000]);
    expect(via).not.toContain(undefined);
    expect(history.sizeBytes).toBeLessThan(32 * 1024 * 1024);
  });

  it("stays within its bytes, whoever answered and whatever came late", async () => {
    const request = fc.record({
      query: fc.option(
        fc.integer({ min: 10, max: 50 }).map((machine) => `mac=52-54-00-00-00-${machine}`),
        { nil: undefined },
      ),
      address: fc.integer({ min: 0, max: 20 }).map((host) => `10.0.0.${host}`),
      status: fc.constantFrom(200, 404, 503),
      startedMs: fc.integer({ min: 0, max: 1_000 }),
      pod: fc.option(fc.integer({ min: 0, max: 30 }), { nil: undefined }),
    });
    const [maxBytes, maxWaitingBytes] = [8 * 1024, 2_048];
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 300 }), async (requests) => {
        const limits = { maxBytes, maxRequests: 5, maxMachines: 16, maxWaiting: 4, maxWaitingBytes };
        const { history, record } = startHistory(limits);
        for (const { query, pod, ...from } of requests) {
          if (pod === undefined) record(seen("ipxe", from), query);
          else history.add(handed("ipxe", from, query, `pod-${pod}`));
          await history.current();
          expect(history.sizeBytes).toBeLessThan(maxBytes + maxWaitingBytes + 2_500);
        }
        for (const { requests: kept } of (await history.current()).recent(100)) expect(kept.length).toBeGreaterThan(0);
      }),
    );
  });
});
