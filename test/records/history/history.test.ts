import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { labelsFromQuery } from "../../../src/model/labels/labels.ts";
import { bootGapMs } from "../../../src/records/history/boot-rule.ts";
import type { MachineHistory } from "../../../src/records/history/history-view.ts";
import { beganAtMs, seen, startHistory } from "./seen-requests.ts";

const one = "mac=52-54-00-00-00-01";
const other = "mac=52-54-00-00-00-02";

/** What a machine asked for, in short; `~` before what is its by its address. */
function story({ requests }: Pick<MachineHistory, "requests">): string {
  return requests
    .map(({ endpoint, isByAddress, times }) => `${isByAddress ? "~" : ""}${endpoint}${times > 1 ? times : ""}`)
    .join(" ");
}

async function storyOf({ history }: ReturnType<typeof startHistory>, query: string): Promise<string | undefined> {
  const view = await history.current();
  return view.find(labelsFromQuery(query), 10).map(story)[0];
}

describe("a request", () => {
  it("is kept with its time by the wall clock, its reserved labels and nothing else of the query", async () => {
    const { history, record } = startHistory();
    const request = seen("ipxe", { startedMs: 1_500, group: "lab/web", status: 200, durationMs: 2, boot: 7 });
    record(request, `${one}&hostname=node1&token=secret&serial=`);
    const [machine] = (await history.current()).find(labelsFromQuery(one), 10);
    expect(machine?.requests).toEqual([
      {
        endpoint: "ipxe",
        path: undefined,
        group: "lab/web",
        address: "10.0.0.7",
        labels: new Map([
          ["mac", "52:54:00:00:00:01"],
          ["hostname", "node1"],
        ]),
        status: 200,
        isHead: false,
        isCut: false,
        refusal: undefined,
        times: 1,
        durationMs: 2,
        sentBytes: 100,
        ofBytes: 100,
        startedAtMs: beganAtMs + 1_500,
        lastStartedAtMs: beganAtMs + 1_500,
        isByAddress: false,
        boot: 7,
        via: undefined,
      },
    ]);
  });

  it.each<[name: string, query: string]>([
    ["the MAC in another form", "mac=5254.0000.0001"],
    ["the UUID in upper case", "UUID=A1B2C3D4-0000-4000-8000-000000000001"],
    ["the host name", "hostname=node1"],
    ["the serial", "serial=s+1"],
    ["several of them", "serial=s%201&hostname=node1"],
  ])("is found by %s", async (_name, query) => {
    const { history, record } = startHistory();
    record(seen("ipxe"), `${one}&uuid=a1b2c3d4-0000-4000-8000-000000000001&hostname=node1&serial=s+1`);
    record(seen("ipxe"), `${other}&hostname=node2`);
    expect((await history.current()).find(labelsFromQuery(query), 10).map(story)).toEqual(["ipxe"]);
  });

  it("is not found by its MAC beside what another machine said, nor by a MAC that nobody sent", async () => {
    const { history, record } = startHistory();
    record(seen("ipxe"), `${one}&hostname=node1`);
    record(seen("ipxe"), `${other}&hostname=node2`);
    record(seen("ipxe"), "hostname=52:54:00:00:00:03");
    const view = await history.current();
    const found = (query: string) => view.find(labelsFromQuery(query), 10).length;
    expect([`${one}&hostname=node1`, `${one}&hostname=node2`, "mac=525400000003"].map(found)).toEqual([1, 0, 0]);
  });

  it("is found by what only an earlier request of the machine said", async () => {
    const server = startHistory();
    server.record(seen("ipxe"), `${one}&hostname=node1`);
    server.record(seen("ignition", { startedMs: 10 }), one);
    server.record(seen("ignition", { startedMs: 20 }), one);
    expect(await storyOf(server, "hostname=node1")).toBe("ipxe ignition ignition");
  });

  it("that is refused again and again is one, with when it was first and last", async () => {
    const server = startHistory();
    const refused = { status: 503, group: "lab/held" };
    for (const startedMs of [0, 5_000, 10_000]) server.record(seen("ipxe", { ...refused, startedMs }), one);
    server.record(seen("ipxe", { startedMs: 15_000 }), one);
    server.record(seen("ipxe", { startedMs: 15_010 }), one);
    expect(await storyOf(server, one)).toBe("ipxe3 ipxe ipxe");
    const [first] = (await server.history.current()).find(labelsFromQuery(one), 1)[0]?.requests ?? [];
    expect([first?.startedAtMs, first?.lastStartedAtMs]).toEqual([beganAtMs, beganAtMs + 10_000]);
  });

  it("of a machine without a MAC is kept by its UUID, unless every board has that", async () => {
    const { history, record } = startHistory();
    record(seen("ipxe", { address: "10.0.0.1" }), "uuid=a1b2c3d4-0000-4000-8000-000000000001");
    record(seen("ipxe", { address: "10.0.0.2" }), "uuid=00000000-0000-0000-0000-000000000000&serial=7");
    record(seen("ipxe", { address: "10.0.0.3" }), "uuid=00000000-0000-0000-0000-000000000000");
    expect((await history.current()).recent(10).map(({ labels }) => [...labels.keys()])).toEqual(
      expect.arrayContaining([["uuid"], ["uuid", "serial"], []]),
    );
  });

  it("has no label whose value is longer than any selector's", async () => {
    const { history, record } = startHistory();
    record(seen("ipxe"), `${one}&hostname=${"n".repeat(254)}`);
    expect([...((await history.current()).recent(1)[0]?.labels.keys() ?? [])]).toEqual(["mac"]);
  });
});

describe("a request without labels", () => {
  it("is the machine's that named itself at its address", async () => {
    const server = startHistory();
    server.record(seen("boot.ipxe", { startedMs: 0 }));
    server.record(seen("ipxe", { startedMs: 10 }), one);
    server.record(seen("assets", { startedMs: 20, path: "/assets/linux" }));
    expect(await storyOf(server, one)).toBe("~boot.ipxe ipxe ~assets");
  });

  it("is nobody's while two machines name themselves at its address, and said to be", async () => {
    const server = startHistory();
    server.record(seen("ipxe", { startedMs: 10 }), one);
    server.record(seen("ipxe", { startedMs: 11 }), other);
    server.record(seen("assets", { startedMs: 20 }));
    expect(await storyOf(server, one)).toBe("ipxe");
    expect((await server.history.current()).find(labelsFromQuery(one), 1)[0]?.unclaimed).toEqual([
      { address: "10.0.0.7", count: 1 },
    ]);
    expect((await server.history.current()).at("10.0.0.7").map(story)).toEqual(["ipxe", "ipxe", "~assets"]);
  });

  it("is nobody's at an address of more machines than are counted", async () => {
    const server = startHistory();
    for (let machine = 10; machine < 40; machine++) server.record(seen("ipxe"), `mac=52-54-00-00-00-${machine}`);
    server.record(seen("assets", { startedMs: 1 }));
    expect(await storyOf(server, "mac=52-54-00-00-00-39")).toBe("ipxe");
  });

  it("is the machine's that had the address then, not one's that has it later", async () => {
    const server = startHistory();
    const later = bootGapMs * 3;
    server.record(seen("ipxe", { startedMs: 0 }), one);
    server.record(seen("assets", { startedMs: 10 }));
    server.record(seen("ipxe", { startedMs: later }), other);
    server.record(seen("assets", { startedMs: later + 10 }));
    expect([await storyOf(server, one), await storyOf(server, other)]).toEqual(["ipxe ~assets", "ipxe ~assets"]);
  });

  it("is listed by its address where no machine named itself", async () => {
    const { history, record } = startHistory();
    record(seen("boot.ipxe", { address: "::ffff:10.0.0.9" }));
    const [machine] = (await history.current()).recent(10);
    expect([machine?.addresses, machine?.labels.size, story(machine ?? { requests: [] })]).toEqual([
      ["10.0.0.9"],
      0,
      "~boot.ipxe",
    ]);
    expect((await history.current()).at("10.0.0.9").map(story)).toEqual(["~boot.ipxe"]);
  });
});

describe("what is kept", () => {
  it("is the last requests of each machine", async () => {
    const server = startHistory({ maxRequests: 3 });
    for (let at = 0; at < 8; at++) server.record(seen(`e${at}`, { startedMs: at }), one);
    server.record(seen("ipxe"), other);
    expect(await storyOf(server, one)).toBe("e5 e6 e7");
  });

  it("is of the machines seen last", async () => {
    const { history, record } = startHistory({ maxMachines: 2 });
    const query = (machine: number) => `mac=52-54-00-00-00-0${machine}`;
    for (const [at, machine] of [1, 2, 1, 3].entries()) {
      record(seen("ipxe", { address: `10.0.0.${machine}`, startedMs: at * 60_000 }), query(machine));
    }
    const view = await history.current();
    expect([1, 2, 3].map((machine) => view.find(labelsFromQuery(query(machine)), 1).length)).toEqual([1, 0, 1]);
  });

  it("stays within its bytes, and is what was asked for last", async () => {
    const request = fc.record({
      machine: fc.integer({ min: 10, max: 50 }),
      address: fc.integer({ min: 0, max: 20 }),
      endpoint: fc.constantFrom("ipxe", "grub", "ignition"),
      status: fc.constantFrom(200, 404, 503),
      group: fc.constantFrom(undefined, "lab/a", "lab/b"),
      hasLabels: fc.boolean(),
      serial: fc.integer({ min: 0, max: 3 }),
    });
    const maxBytes = 8 * 1024;
    // One machine more than fits: its tracks, a row, its texts and labels.
    const maxWaitingBytes = 2_048;
    const mostBytes = maxBytes + maxWaitingBytes + 2_500;
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 300 }), async (requests) => {
        const waiting = { maxWaiting: 4, maxWaitingBytes };
        const { history, record } = startHistory({ maxBytes, maxRequests: 5, maxMachines: 16, ...waiting });
        const last = new Map<string, string>();
        for (const [at, { machine, address, hasLabels, serial, ...given }] of requests.entries()) {
          const one = seen(given.endpoint, { ...given, startedMs: at, address: `10.0.0.${address}` });
          record(one, hasLabels ? `mac=52-54-00-00-00-${machine}&serial=${serial}` : undefined);
          if (hasLabels)
            last.set(`52:54:00:00:00:${machine}`, `${given.endpoint} ${given.status} ${given.group} ${serial}`);
          await history.current();
          expect(history.sizeBytes).toBeLessThan(mostBytes);
        }
        const kept = (await history.current()).recent(100).filter(({ labels }) => labels.size > 0);
        expect(kept.map(lastNamed)).toEqual(kept.map(({ labels }) => last.get(labels.get("mac") ?? "")));
      }),
    );
  });
});

function lastNamed({ requests }: MachineHistory): string {
  const named = requests.findLast(({ isByAddress }) => !isByAddress);
  return `${named?.endpoint} ${named?.status} ${named?.group} ${named?.labels.get("serial")}`;
}
