/** Which requests are of one boot: by their labels, by their address, and by neither in doubt. */

import { describe, expect, it } from "vitest";
import { labelsFromQuery } from "../../../src/model/labels/labels.ts";
import { type BeginningRequest, BootIds, type BootIdsOptions } from "../../../src/records/history/boot-ids.ts";

const minuteMs = 60_000;
const one = "mac=52-54-00-00-00-01";
const other = "mac=52-54-00-00-00-02";

/** A request, and how it is answered. */
interface Step extends Partial<BeginningRequest> {
  readonly status?: number;
  readonly durationMs?: number;
}

/** Ids of boots, written as `a`, `b` and so on, in the order in which they begin; `-` for none. */
function start(more: Partial<BootIdsOptions> = {}) {
  const boots = new BootIds({ random: () => 0.5, ...more });
  const names = new Map<string, string>();
  let nowMs = 0;
  const ask = (endpoint: string, query = "", { status = 200, durationMs = 1, ...more }: Step = {}): string => {
    const request = { address: "10.0.0.7", endpoint, isHead: false, startedMs: nowMs, ...more };
    const labels = labelsFromQuery(query);
    const boot =
      endpoint === "report"
        ? boots.reported(request, labels)
        : query === ""
          ? boots.unnamed(request)
          : boots.named(request, labels);
    nowMs += durationMs;
    if (boot === undefined) return "-";
    boots.ended(boot, request, { status, endMs: nowMs });
    const name = names.get(boot.id) ?? String.fromCharCode(97 + names.size);
    names.set(boot.id, name);
    return name;
  };
  const wait = (ms: number) => {
    nowMs += ms;
  };
  /** Asks for all of a boot, as iPXE and an installer do. */
  const wholeBoot = (query: string, more: Step = {}) =>
    [
      ask("boot.ipxe", "", more),
      ask("ipxe", query, more),
      ask("assets", "", more),
      ask("assets", "", more),
      ask("ignition", query, more),
    ].join("");
  return { ask, wait, wholeBoot, names };
}

describe("one boot has one id", () => {
  it("from its first script to its last config, and the next boot another one", () => {
    const { wholeBoot, names } = start();
    expect([wholeBoot(one), wholeBoot(one)]).toEqual(["aaaaa", "bbbbb"]);
    expect([...names.keys()]).toEqual(["80000001", "80000002"]);
  });

  it("also of several machines at several addresses, one after the other's request", () => {
    const { ask } = start();
    const at = (address: string) => ({ address });
    expect([ask("boot.ipxe", "", at("10.0.0.1")), ask("boot.ipxe", "", at("10.0.0.2"))]).toEqual(["a", "b"]);
    expect([ask("ipxe", other, at("10.0.0.2")), ask("ipxe", one, at("10.0.0.1"))]).toEqual(["b", "a"]);
    expect([ask("assets", "", at("10.0.0.1")), ask("assets", "", at("10.0.0.2"))]).toEqual(["a", "b"]);
  });

  it("while a machine is refused, or its firmware asks by HEAD first", () => {
    const { ask } = start();
    expect([ask("boot.ipxe", "", { isHead: true }), ask("boot.ipxe")]).toEqual(["a", "a"]);
    expect(ask("ipxe", one, { status: 503 })).toBe("a");
    expect([ask("ipxe", one, { isHead: true }), ask("ipxe", one), ask("ipxe", one)]).toEqual(["a", "a", "b"]);
  });

  it("until ten minutes without a request have passed, however long a download takes", () => {
    const { ask, wait } = start();
    ask("ipxe", one);
    expect(ask("assets", "", { durationMs: 30 * minuteMs })).toBe("a");
    wait(9 * minuteMs);
    expect([ask("assets"), ask("ignition", one)]).toEqual(["a", "a"]);
    wait(11 * minuteMs);
    expect([ask("assets"), ask("ignition", one)]).toEqual(["-", "b"]);
  });

  it("with the report of an install that takes an hour", () => {
    const { ask, wait } = start();
    ask("ipxe", `${one}&uuid=a1b2c3d4-0000-4000-8000-000000000001`);
    wait(60 * minuteMs);
    expect(ask("report", "uuid=a1b2c3d4-0000-4000-8000-000000000001")).toBe("a");
  });

  it("with a config that an operating system asks for by the uuid alone", () => {
    const { ask } = start();
    const uuid = "uuid=a1b2c3d4-0000-4000-8000-000000000001";
    expect([ask("ipxe", `${one}&${uuid}`), ask("metadata", uuid)]).toEqual(["a", "a"]);
  });
});

describe("behind one address", () => {
  it("the boots of two machines never mix: what may be of either has no id", () => {
    const { ask } = start();
    // Each has a script of its own to begin with, so neither is known to be the other's.
    expect([ask("boot.ipxe"), ask("boot.ipxe")]).toEqual(["a", "b"]);
    expect([ask("ipxe", one), ask("ipxe", other)]).toEqual(["c", "d"]);
    expect([ask("assets"), ask("assets")]).toEqual(["-", "-"]);
    expect([ask("ignition", other), ask("ignition", one)]).toEqual(["d", "c"]);
    expect([ask("report", one), ask("report", other)]).toEqual(["c", "d"]);
  });

  it("a machine that begins to boot gets nothing of the one that was there before", () => {
    const { ask, wholeBoot } = start();
    expect(wholeBoot(one)).toBe("aaaaa");
    expect(ask("boot.ipxe")).toBe("b");
    // The kernel may be of either, and the config is of the first.
    expect([ask("assets"), ask("ignition", one)]).toEqual(["-", "a"]);
    expect([ask("ipxe", other), ask("assets"), ask("ignition", one)]).toEqual(["c", "-", "a"]);
  });

  it("a machine is alone again ten minutes after the other one", () => {
    const { ask, wait, wholeBoot } = start();
    wholeBoot(one);
    wait(11 * minuteMs);
    expect(wholeBoot(other)).toBe("bbbbb");
    wait(11 * minuteMs);
    expect(ask("ipxe", one)).toBe("c");
  });

  it("a cut download is of the boot in which it began", () => {
    const boots = new BootIds({ random: () => 0.5 });
    const request = { address: "10.0.0.7", isHead: false, startedMs: 0 };
    const script = () => {
      const asked = { ...request, endpoint: "ipxe" };
      const boot = boots.named(asked, labelsFromQuery(one));
      if (boot !== undefined) boots.ended(boot, asked, { status: 200, endMs: 1 });
      return boot?.id;
    };
    const first = script();
    const download = boots.unnamed({ ...request, endpoint: "assets" });
    expect(script()).not.toBe(first);
    expect(download?.id).toBe(first);
  });
});

it("nothing has an id that names no machine, and begins no boot", () => {
  const { ask } = start();
  expect([ask("assets"), ask("ipxe", "role=web"), ask("other")]).toEqual(["-", "-", "-"]);
});

it("forgets the machines and addresses that it saw longest ago", () => {
  const { ask } = start({ maxMachines: 2 });
  const macs = [1, 2, 3].map((number) => `mac=52-54-00-00-00-0${number}`);
  const at = (number: number) => ({ address: `10.0.0.${number}` });
  expect(macs.map((mac, index) => ask("ipxe", mac, at(index)))).toEqual(["a", "b", "c"]);
  expect([ask("assets", "", at(0)), ask("assets", "", at(2))]).toEqual(["-", "c"]);
  expect(macs.toReversed().map((mac) => ask("ignition", mac))).toEqual(["c", "b", "d"]);
});

it("numbers on from the highest number to 1: 0 is none", () => {
  const { ask, names } = start({ random: () => 1 - 2 ** -32 });
  expect([ask("boot.ipxe"), ask("ipxe", one)]).toEqual(["a", "a"]);
  expect([...names.keys()]).toEqual(["00000001"]);
});
