/** The states of machines, and the rows of the fleet. */

import { describe, expect, it } from "vitest";
import { Fleet, type StateFacts, stateOf } from "../../../src/http/console/state/fleet.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import type { HistoryView } from "../../../src/records/history/history-view.ts";
import { seen } from "../../records/history/seen-requests.ts";
import { entry, machine, nowMs } from "../fake-machines.ts";
import { consoleListener } from "./console-listener.ts";

const listener = consoleListener();
const answered = { status: 200, isCut: false, refusal: undefined, stage: "ipxe" };
const refused = (refusal: string, status = 503) => ({ ...answered, status, refusal });
const facts: StateFacts = {
  phase: undefined,
  last: answered,
  ageMs: 1_000,
  problem: undefined,
  reported: undefined,
  isUnapproved: false,
  isPending: false,
};

describe("the state of a machine", () => {
  it.each<{ name: string; given: Partial<StateFacts>; state: string; why?: string }>([
    { name: "was answered just now", given: {}, state: "booting" },
    { name: "was answered long ago", given: { ageMs: 3_600_000 }, state: "quiet" },
    { name: "never asked", given: { last: undefined, ageMs: 0 }, state: "quiet" },
    { name: "has booted", given: { phase: "Booted" }, state: "quiet" },
    { name: "is held", given: { phase: "Held" }, state: "held", why: "held by its Machine or its Group" },
    { name: "was refused as held", given: { last: refused("held") }, state: "held" },
    { name: "installs", given: { phase: "Installing" }, state: "installing" },
    { name: "has failed to install", given: { phase: "Failed", reported: "no disk" }, state: "failed", why: "no disk" },
    { name: "did not confirm", given: { phase: "Unconfirmed" }, state: "failed", why: "not confirmed" },
    { name: "no Group selects", given: { last: refused("noMatch", 404) }, state: "unknown" },
    { name: "waits for approval", given: { last: refused("unapproved") }, state: "waiting", why: "not approved" },
    { name: "waits for a permit", given: { last: refused("noPermit") }, state: "waiting", why: "no permit" },
    { name: "has a broken config", given: { last: refused("broken", 500) }, state: "failed", why: "ipxe: 500" },
    { name: "has tied Groups", given: { last: refused("tied") }, state: "failed", why: "groups tie" },
    { name: "a later davit refused", given: { last: refused("constructor") }, state: "failed", why: "503 constructor" },
    { name: "asked for an optional config", given: { last: refused("noPart", 404) }, state: "booting" },
    { name: "lacks an asset", given: { last: { ...answered, status: 404, stage: "kernel" } }, state: "failed" },
    { name: "broke off", given: { last: { ...answered, isCut: true, stage: "initrd" } }, state: "failed" },
    { name: "has a flawed Profile", given: { problem: "Profile a/b: spec.boot" }, state: "failed", why: "spec.boot" },
    { name: "is unapproved and silent", given: { last: undefined, isUnapproved: true }, state: "waiting" },
    { name: "waits for an object", given: { isPending: true }, state: "waiting", why: "Machine object" },
  ])("that $name is $state", ({ given, state, why }) => {
    const shown = stateOf({ ...facts, ...given });
    expect(shown.state).toBe(state);
    if (why !== undefined) expect(shown.why).toContain(why);
  });
});

describe("the fleet", () => {
  it("has one row for a machine that its object, the ledger and the history know", async () => {
    listener.fake.machines.push(machine("racks/node7", { identities: ["mac/52:54:00:00:00:01"] }));
    listener.fake.entries.push(
      entry("1", { identities: ["mac/52:54:00:00:00:01"] }),
      entry("2", { identities: ["mac/52:54:00:00:00:02"] }),
    );
    listener.fake.pending.push({ identities: ["mac/52:54:00:00:00:03"], group: "racks/new", firstSeenAtMs: nowMs });
    const { ask, record } = await listener.start();
    record("mac=52:54:00:00:00:01&hostname=web1", { group: "racks/web" });
    record("mac=52:54:00:00:00:04&uuid=4c4c4544-0035-4d10-8051-b9c04f4e3232");
    record("hostname=nameless");
    const { body } = await ask("/console/");
    expect(body).toContain("5 machines");
    const rows = [...body.matchAll(/<tr id="m-([^"]+)">/g)].map(([, name]) => name);
    expect(rows).toHaveLength(5);
    expect(new Set(rows)).toEqual(
      new Set(["racks/node7", "52:54:00:00:00:02", "52:54:00:00:00:03", "52:54:00:00:00:04", "hostname=nameless"]),
    );
  });

  it("keeps a host name that only the firmware sent", async () => {
    const { ask, record } = await listener.start();
    record("mac=52:54:00:00:00:01&hostname=web1");
    record("mac=52:54:00:00:00:01");
    expect((await ask("/console/")).body).toContain("<td>web1<");
  });

  it("keeps the Group of a machine that loads a file, which has none", async () => {
    const { ask, history, record } = await listener.start();
    record("mac=52:54:00:00:00:01", { group: "racks/web" });
    const startedMs = systemClock.monotonicMs() + 1;
    history.record({ ...seen("assets", { path: "/assets/vmlinuz" }), startedMs });
    const { body } = await ask("/console/");
    expect(body).toContain("<td>assets");
    expect(body).toContain("<td>racks/web<");
  });

  it("is behind while it returns rows from before the last change", async () => {
    let [ms, revision] = [1_000, 0];
    // Reading the history takes 10 ms.
    const recordedMachines = () => {
      ms += 10;
      return [].values();
    };
    const slow: unknown = { recordedMachines };
    const fleet = new Fleet({
      history: { current: () => Promise.resolve(slow as HistoryView), revision: 0 },
      book: undefined,
      profileOf: () => undefined,
      problemOf: () => undefined,
      stages: () => () => "ipxe",
      revision: () => String(revision),
      clock: { nowMs: () => ms, monotonicMs: () => ms },
    });
    await fleet.now();
    expect(fleet.isBehind).toBe(false);
    revision = 1;
    expect(fleet.isBehind).toBe(true);
    await fleet.now();
    expect(fleet.isBehind).toBe(true);
    ms += 1_000;
    expect(fleet.isBehind).toBe(false);
    await fleet.now();
    expect(fleet.isBehind).toBe(false);
  });

  it("is filtered by state, Group and text, and every filter is a link", async () => {
    const { ask, record } = await listener.start();
    record("mac=52:54:00:00:00:01&hostname=web1", { group: "racks/web" });
    record("mac=52:54:00:00:00:02&hostname=db1", { status: 404, refusal: "noMatch" });
    record("mac=52:54:00:00:00:03", { group: "racks/web2" });
    const found = async (query: string) => {
      const { body } = await ask(`/console/?${query}`);
      return [...body.matchAll(/<tr id="m-([^"]+)">/g)].map(([, name]) => name?.slice(-1)).join("");
    };
    expect(await found("state=unknown")).toBe("2");
    expect(await found("group=web")).toBe("1");
    expect(await found("group=racks%2Fweb")).toBe("1");
    expect(await found("group=eb")).toBe("");
    expect(await found("text=DB1")).toBe("2");
    expect(await found("text=52-54-00-00-00-01")).toBe("1");
    expect(await found("text=10.0.0.7")).toHaveLength(3);
    expect(await found("state=unknown&group=web")).toBe("");
    expect(await found("state=nonsense&page=99&page=-1")).toHaveLength(3);
  });

  it("shortens long reasons, so that a page of failed machines is small; the machine's page has the whole", async () => {
    // The longest message of a report.
    const message = `no disk: ${"looked at /dev/sda & /dev/sdb; ".repeat(8)}`.slice(0, 249).concat("the end");
    const macs = Array.from({ length: 100 }, (_, at) => `52:54:00:00:01:${at.toString(16).padStart(2, "0")}`);
    for (const mac of macs) {
      const reported = { state: "failed", atMs: nowMs, message } as const;
      listener.fake.entries.push(entry(mac, { identities: [`mac/${mac}`], state: "Failed", reported }));
    }
    const { ask, record } = await listener.start();
    for (const [at, mac] of macs.entries()) record(`mac=${mac}&hostname=node${at}`, { group: "racks/web" });
    const { body } = await ask("/console/");
    expect(body.match(/<tr id="m-/g)).toHaveLength(100);
    expect(body).toContain("the install failed");
    expect(body).not.toContain("the end");
    // 60 kB is what a browser may load; console.css and console.js are less than 9 kB.
    expect(Buffer.byteLength(body)).toBeLessThan(51_000);
    expect((await ask(`/console/machines/${macs[0]}`)).body).toContain("the end");
  });

  it("shows 100 of 10,000 machines at once, in slices", async () => {
    const { ask, record } = await listener.start();
    for (let at = 0; at < 10_000; at++) record(`mac=52:54:00:00:${hex(at >> 8)}:${hex(at & 255)}`);
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const { body } = await ask("/console/?page=7");
    isOver = true;
    expect(body).toContain("10000 machines");
    expect(body).toContain("page 7 of 100");
    expect(body.match(/<tr id="m-/g)).toHaveLength(100);
    expect(turns).toBeGreaterThan(50);
  });
});

function hex(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}
