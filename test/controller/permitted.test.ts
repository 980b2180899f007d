import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { SourceObject } from "../../src/model/objects/source.ts";
import type { InstallGrant } from "../../src/model/permits/permit.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { FakeLedger } from "./fake-ledger.ts";
import { groupObject, profileObject } from "./objects.ts";

const hourMs = 3_600_000;
const beganMs = new FakeClock().nowMs();
const grant = { generation: 4, ledger: "9f3c0a52", untilMs: beganMs + hourMs, scope: "NeverInstalled" } as const;
const node1 = { kind: "Group", namespace: "default", name: "node1" } as const;
const plan = { then: "sanboot", timeoutSeconds: 7_200 } as const;

describe("a Group's condition Permitted", () => {
  let under: ControllerUnderTest;
  let ledger: FakeLedger;

  beforeEach(async () => {
    ledger = new FakeLedger(() => under.clock.nowMs());
    under = await ControllerUnderTest.start({ ledger });
  });

  afterEach(() => under.stop());

  async function listed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellListed();
    await under.synced;
    await under.settled();
  }

  const withGrant = (install: InstallGrant, spec: Partial<GroupSpec> = {}) => groupObject({ ...spec, install });
  const permitted = () => under.statuses.conditions("Group/node1").Permitted;
  const message = () => under.statuses.message("Group/node1", "Permitted");
  const patchOf = (generation: number) =>
    `kubectl patch groups.davit.dev node1 -n default --type=merge -p '{"spec":{"install":{"generation":${generation},` +
    `"ledger":"9f3c0a52","until":"'"$(date -u -d '+1 day' +%FT%TZ)"'"}}}'`;

  it.each<{ what: string; install: InstallGrant; is: string; text: string }>([
    { what: "an open grant", install: grant, is: "True Open", text: "Each machine of the Group may install once" },
    {
      what: "a grant of another ledger",
      install: { ...grant, ledger: "00000000" },
      is: "False Asleep",
      text: `spec.install.ledger names another ledger: the grant is asleep. To permit it: ${patchOf(4)}`,
    },
    {
      what: "a grant without a ledger",
      install: { generation: 4, scope: "All" },
      is: "False Asleep",
      text: `spec.install.ledger is missing: the grant is asleep. To permit it: ${patchOf(4)}`,
    },
    {
      what: "a grant whose time is over",
      install: { ...grant, untilMs: beganMs },
      is: "False Ended",
      text: `spec.install.until is over: raise the generation and set a later until. To permit it: ${patchOf(5)}`,
    },
    {
      what: "a grant for more than a week",
      install: { ...grant, untilMs: beganMs + 8 * 24 * hourMs },
      is: "False TooFarAhead",
      text: `spec.install.until is more than seven days ahead, so the grant is asleep: set an earlier until. To permit it: ${patchOf(4)}`,
    },
  ])("shows $what, which does not make it unready", async ({ install, is, text }) => {
    await listed(profileObject(), withGrant(install));
    expect(permitted()).toBe(is);
    expect(message()).toContain(text);
    expect(under.statuses.ready("Group/node1")).toBe("Ready");
  });

  it("says that each MAC address of a list counts", async () => {
    const values = ["52:54:00:00:02:0a", "52:54:00:00:02:0b"];
    const expressions = [{ key: "mac", operator: "In", values }] as const;
    await listed(profileObject(), withGrant(grant, { selector: {}, expressions }));
    expect(permitted()).toBe("True Open");
    expect(message()).toContain("Each MAC address of the list counts as a machine, unless one Machine lists several");
  });

  it("names a command that a shell takes, with a time that is a day ahead", async () => {
    await listed(profileObject({ effect: "Install", install: plan }), groupObject());
    const [, command = ""] = /To permit it: (.*)$/.exec(message() ?? "") ?? [];
    const words = command.replace("kubectl patch", "printf '%s\\n'");
    const patch = execFileSync("bash", ["-c", words], { encoding: "utf8" }).trimEnd().split("\n").at(-1) ?? "";
    const { install } = JSON.parse(patch).spec;
    expect(install).toMatchObject({ generation: 1, ledger: "9f3c0a52" });
    expect(Date.parse(install.until) - Date.now()).toBeGreaterThan(23 * hourMs);
  });

  it("is absent where neither the Group grants nor the Profile installs", async () => {
    await listed(profileObject(), groupObject());
    expect(permitted()).toBeUndefined();
  });

  it("comes and goes with the Profile's install", async () => {
    await listed(profileObject({ effect: "Install", install: plan }), groupObject());
    expect(permitted()).toBe("False NoGrant");
    under.source.put(profileObject());
    under.source.tellChanged(profileObject());
    await under.settled();
    expect(permitted()).toBeUndefined();
  });

  it("ends when the time is over, and when the ledger has ended the generation", async () => {
    await listed(profileObject(), withGrant(grant));
    expect(permitted()).toBe("True Open");
    await under.clock.advance(hourMs + 3_000);
    expect(permitted()).toBe("False Ended");
    ledger.ended.set("group/default/node1", 7);
    await under.clock.advance(3_000);
    expect(message()).toContain(patchOf(8));
  });

  it("falls asleep when the ledger is a new one", async () => {
    await listed(profileObject(), withGrant(grant));
    ledger.id = "deadbeef";
    await under.clock.advance(3_000);
    expect(permitted()).toBe("False Asleep");
    expect(message()).toContain('"ledger":"deadbeef"');
    ledger.id = undefined;
    await under.clock.advance(3_000);
    expect(message()).toBe("davit knows no ledger yet");
  });

  it("is false while the ledger has no room for another machine", async () => {
    await listed(profileObject(), withGrant(grant));
    ledger.isFull = true;
    await under.clock.advance(3_000);
    expect(permitted()).toBe("False LedgerFull");
    expect(message()).toContain("the ledger has no room for another machine");
    ledger.isFull = false;
    await under.clock.advance(3_000);
    expect(permitted()).toBe("True Open");
  });

  it("is false while the newest version is refused", async () => {
    await listed(profileObject(), withGrant(grant));
    under.source.refuse(node1, "spec.priority: must be a number", { standIns: [withGrant(grant).spec] });
    under.source.tellChanged(node1);
    await under.settled();
    expect(permitted()).toBe("False NotAccepted");
  });

  it("writes no status while nothing changes", async () => {
    await listed(profileObject(), withGrant(grant));
    await under.clock.advance(2_000);
    const { writes } = under.statuses;
    await under.clock.advance(60_000);
    expect(under.statuses.writes).toBe(writes);
  });
});
