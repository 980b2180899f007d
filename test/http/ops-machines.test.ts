/** The routes that show machines and the ledger. */

import { describe, expect, it } from "vitest";
import { entry, hourMs, ledgerId, machine, nowMs, openGrant } from "./fake-machines.ts";
import { mac, machinesListener, uuid, webBoot } from "./machines-listener.ts";

const listener = machinesListener();

describe("`GET /machines`", () => {
  it("lists objects with their entries, machines of the ledger alone, and those that wait for an object", async () => {
    listener.fake.machines.push(machine("racks/node7", { identities: [`mac/${mac}`], approved: true }));
    listener.fake.entries.push(
      entry("1", { identities: [`mac/${mac}`], grant: { key: "group/racks/web", generation: 4 } }),
      entry("2", { identities: [`uuid/${uuid}`], state: "Failed", changedAtMs: nowMs - 2 * hourMs }),
    );
    listener.fake.boots.set(`mac/${mac}`, webBoot);
    const waiting = { identities: ["mac/52:54:00:00:00:01"], group: "racks/new", firstSeenAtMs: nowMs };
    listener.fake.pending.push(waiting, { ...waiting, identities: [`mac/${mac}`] });
    const { json } = await listener.start();
    expect(await json("/machines")).toEqual({
      ledger: ledgerId,
      machines: [
        {
          name: "racks/node7",
          identities: [`mac/${mac}`],
          group: "racks/web",
          profile: "racks/flatcar",
          phase: "Installed",
          approved: true,
          hold: false,
          install: {
            state: "Installed",
            grant: "group/racks/web",
            generation: 4,
            claimedAt: "2026-11-25T11:00:00.000Z",
            changedAt: "2026-11-25T11:00:00.000Z",
          },
          lastChange: "2026-11-25T11:00:00.000Z",
        },
        {
          identities: [`uuid/${uuid}`],
          group: "racks/web",
          profile: "racks/flatcar",
          phase: "Failed",
          install: { state: "Failed", changedAt: "2026-11-25T10:00:00.000Z" },
          lastChange: "2026-11-25T10:00:00.000Z",
        },
        {
          identities: ["mac/52:54:00:00:00:01"],
          group: "racks/new",
          phase: "Waiting",
          lastChange: "2026-11-25T12:00:00.000Z",
        },
      ],
    });
  });

  it("is whole with 20,000 machines, and lets other work in between", async () => {
    for (let at = 0; at < 20_000; at++) listener.fake.entries.push(entry(String(at), { identities: [`mac/${at}`] }));
    const { json } = await listener.start();
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const { machines } = await json("/machines");
    isOver = true;
    expect(machines).toHaveLength(20_000);
    expect(turns).toBeGreaterThan(50);
  });

  it("is an empty list without machines, and HEAD has no body", async () => {
    listener.fake.id = undefined;
    const { json, ask } = await listener.start();
    expect(await json("/machines")).toEqual({ ledger: null, machines: [] });
    expect(await ask("HEAD", "/machines")).toMatchObject({ status: 200, body: "" });
  });

  it.each([
    { phase: "Waiting", given: {} },
    { phase: "Held", given: { object: { hold: true } } },
    { phase: "Held", given: { boot: { isHeld: true } } },
    { phase: "Permitted", given: { boot: { grants: [{ key: "group/racks/web", grant: openGrant() }] } } },
    {
      phase: "Waiting",
      given: {
        boot: { needsApproval: true, grants: [{ key: "group/racks/web", grant: openGrant() }] },
      },
    },
    { phase: "Installing", given: { known: { state: "Claimed" as const } } },
    { phase: "Unconfirmed", given: { known: { state: "Installing" as const, timeoutSeconds: 60 } } },
    { phase: "Booted", given: { known: { reported: { state: "booted" as const, atMs: nowMs } } } },
  ])("shows $phase for $given", async ({ phase, given: { object = {}, boot = {}, known } }) => {
    const identities = [`mac/${mac}`];
    listener.fake.machines.push(machine("racks/node7", { identities, ...object }));
    listener.fake.boots.set(`mac/${mac}`, { ...webBoot, ...boot });
    if (known !== undefined) listener.fake.entries.push(entry("1", { identities, ...known }));
    const { json } = await listener.start();
    expect((await json("/machines")).machines[0].phase).toBe(phase);
  });
});

describe("`GET /machines/<machine>`", () => {
  it.each(["racks/node7", mac, mac.toUpperCase(), "525400a19cae", uuid, uuid.toUpperCase()])(
    "finds it by %s",
    async (name) => {
      listener.fake.machines.push(machine("racks/node7", { identities: [`uuid/${uuid}`, `mac/${mac}`] }));
      const { json } = await listener.start();
      expect((await json(`/machines/${name}`)).name).toBe("racks/node7");
    },
  );

  it("finds one that only the ledger knows, by any of its identities", async () => {
    const identities = [`uuid/${uuid}`, `mac/${mac}`];
    const grant = { key: "group/racks/web", generation: 4 };
    listener.fake.entries.push(
      entry("1", { identities, grant, spent: { "group/racks/web": 4 }, addresses: ["10.0.0.7"] }),
    );
    const { json } = await listener.start();
    expect(await json(`/machines/${mac}`)).toEqual(await json(`/machines/${uuid}`));
    expect((await json(`/machines/${mac}`)).entries[0]).toMatchObject({
      id: "1",
      identities,
      spent: { "group/racks/web": 4 },
      addresses: ["10.0.0.7"],
    });
  });

  it("says what its next boot is, and what each grant lacks", async () => {
    listener.fake.machines.push(machine("racks/node7", { identities: [`mac/${mac}`] }));
    const grants = [
      { key: "machine/racks/node7", grant: openGrant({ ledger: "00000000" }) },
      { key: "group/racks/web", grant: { generation: 3, ledger: ledgerId, scope: "All" as const } },
    ];
    listener.fake.boots.set(`mac/${mac}`, { ...webBoot, grants });
    const { json } = await listener.start();
    const { permit, grants: shown } = await json("/machines/racks/node7");
    expect(permit).toEqual({ next: "refused", why: "spec.install.until is missing: the grant is asleep" });
    expect(shown).toEqual([
      {
        key: "machine/racks/node7",
        generation: 1,
        ledger: "00000000",
        until: "2026-11-25T13:00:00.000Z",
        scope: "NeverInstalled",
        isOpen: false,
        why: "spec.install.ledger names another ledger: the grant is asleep",
      },
      {
        key: "group/racks/web",
        generation: 3,
        ledger: ledgerId,
        scope: "All",
        isOpen: false,
        why: "spec.install.until is missing: the grant is asleep",
      },
    ]);
  });

  it.each(["racks/none", "52:54:00:00:00:99", "00000000-0000-0000-0000-000000000000", "%00", "..%2f", "a/b/c"])(
    "does not find %s",
    async (name) => {
      listener.fake.machines.push(machine("racks/node7", { identities: [`mac/${mac}`] }));
      const { get } = await listener.start();
      expect(await get(`/machines/${name}`)).toMatchObject({
        status: 404,
        body: "404 no Machine, no entry of the ledger and no seen machine has this name: davit machine list shows all\n",
      });
    },
  );
});

describe("`GET /ledger`", () => {
  it("shows the id, the totals, ended grants and adopted Groups", async () => {
    listener.fake.entries.push(entry("1", {}), entry("2", {}));
    listener.fake.ended.set("group/racks/web", 3);
    listener.fake.adopted.set("racks/old", nowMs + hourMs).set("racks/older", nowMs - hourMs);
    const { json } = await listener.start();
    expect(await json("/ledger")).toEqual({
      id: ledgerId,
      now: "2026-11-25T12:00:00.000Z",
      health: "ok",
      entries: 2,
      ended: [{ grant: "group/racks/web", generation: 3 }],
      adopted: [{ group: "racks/old", until: "2026-11-25T13:00:00.000Z" }],
    });
  });

  it("shows the highest generation of such a grant that any machine has spent, or that has ended", async () => {
    const key = "group/racks/web";
    listener.fake.entries.push(
      entry("1", { spent: { [key]: 6, "group/racks/other": 9 } }),
      entry("2", { spent: { [key]: 2 } }),
    );
    listener.fake.ended.set(key, 5);
    listener.fake.grants.set(key, openGrant({ generation: 4 })).set("group/racks/bare", undefined);
    const { json } = await listener.start();
    expect((await json(`/ledger?grant=${key}`)).grant).toMatchObject({
      key,
      isKnown: true,
      spentGeneration: 9,
      object: { generation: 4, isOpen: false },
    });
    const bare = { key: "group/racks/bare", isKnown: true, spentGeneration: 9 };
    expect((await json("/ledger?grant=group/racks/bare")).grant).toEqual(bare);
    const none = { key: "__proto__", isKnown: false, spentGeneration: 0 };
    expect((await json("/ledger?grant=__proto__")).grant).toEqual(none);
  });

  it("says what is wrong", async () => {
    listener.fake.id = undefined;
    const { json } = await listener.start();
    expect(await json("/ledger")).toMatchObject({ id: null, health: "davit knows no ledger yet" });
    listener.fake.id = ledgerId;
    listener.fake.problems.push("the disk is full");
    expect(await json("/ledger")).toMatchObject({ health: "the disk is full" });
  });
});
