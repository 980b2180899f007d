/**
 * A ledger with as many machines as it may have: 65,536 on a real disk. It claims for no other one, opens nothing, and
 * makes room only by entries whose grants are over.
 */

import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "vitest";
import { encodeEntry, entryPath, identityPath } from "../../src/installs/ledger/ledger-documents.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { diskFiles } from "../../src/lib/files/files.ts";
import type { LedgerEntry } from "../../src/model/permits/permit.ts";
import type { SingleCommand } from "../../src/store/command/command.ts";
import { openStore } from "../../src/store/open-store.ts";
import { lockDirectory } from "../../src/store/wal/lock.ts";
import type { DavitProcess } from "../../tools/davit-process.ts";
import { bootOf, InstallWorld, ledgerId, macOf, queryOf } from "../helpers/install-world.ts";
import { silentLog } from "../helpers/test-store.ts";

const most = 65_536;
/** The first machines failed: they have spent a grant that is open until its end. */
const failed = 200;
const strangers = [1, 2, 3].map((more) => most + more);
const waits = "503 no permit to install";
const soon = { timeout: 60_000, interval: 100 };

let world: InstallWorld;
beforeEach(async () => {
  world = await InstallWorld.make();
});
afterEach(() => world.stop());

function entryOf(number: number): LedgerEntry {
  const key = "group/default/all";
  return {
    id: number.toString(16).padStart(16, "0"),
    identities: [`mac/${macOf(number).replaceAll("-", ":")}`],
    state: number < failed ? "Failed" : "Installed",
    grant: { key, generation: 1 },
    spent: { [key]: 1 },
    claimedAtMs: Date.now() - 60_000,
    changedAtMs: Date.now(),
    timeoutSeconds: 3_600,
    group: "default/all",
    profile: "default/wipe",
    addresses: [],
  };
}

/** Fills the ledger of a davit that does not run. */
async function fill(directory: string): Promise<void> {
  const files = { directory, files: diskFiles, lock: lockDirectory, onDamage: "refuse" as const };
  const store = await openStore({ clock: systemClock, log: silentLog, random: randomBytes, ...files });
  const set = (path: ReturnType<typeof entryPath>, value: string): SingleCommand => ({ kind: "set", path, value });
  const batch = 1_024;
  for (let first = 0; first < most; first += batch) {
    const entries = Array.from({ length: batch }, (_, at) => entryOf(first + at));
    const commands = entries.flatMap((entry) => [
      set(entryPath(entry.id), encodeEntry(entry)),
      ...entry.identities.map((identity) => set(identityPath(identity), entry.id)),
    ]);
    await store.submit({ kind: "batch", commands });
  }
  await store.stop();
}

async function metric({ opsUrl }: DavitProcess, state: string): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(new RegExp(`^davit_ledger_machines\\{state="${state}"\\} (\\S+)$`, "m").exec(text)?.[1]);
}

it(`a ledger of ${most} machines claims for no other one until a grant is over`, { timeout: 600_000 }, async () => {
  const empty = await world.serve();
  const ledger = await ledgerId(empty);
  await empty.stop();
  await fill(world.at("data", "ledger"));
  const davit = await world.serve();
  expect(await ledgerId(davit)).toBe(ledger);
  const until = new Date(Date.now() + 40_000).toISOString();
  await world.write({ grant: { generation: 1, ledger, until } });
  const preview = async () => (await fetch(`${davit.opsUrl}/preview?${queryOf(most + 1)}`)).text();
  await expect.poll(preview, soon).toContain("closed: the ledger has no room for another machine");

  // Who is new waits, and davit shows the reason. Who is known gets what it got.
  for (const number of strangers) expect(await bootOf(davit, number)).toBe(waits);
  for (const number of [0, failed - 1]) expect(await bootOf(davit, number)).toBe(waits);
  for (const number of [failed, most - 1]) expect(await bootOf(davit, number)).toBe("disk");
  expect(await (await fetch(`${davit.opsUrl}/readyz?verbose`)).text()).toContain("Ledger: it is full");
  expect([await metric(davit, "failed"), await metric(davit, "installed")]).toEqual([failed, most - failed]);

  // From the end of the grant on, and not before, the machines that failed make room.
  await expect.poll(() => metric(davit, "failed"), soon).toBe(0);
  expect(Date.now()).toBeGreaterThan(Date.parse(until));
  expect(await metric(davit, "installed")).toBe(most - failed);
  for (const number of [0, ...strangers]) expect(await bootOf(davit, number)).toBe(waits);
  await world.write({ grant: { generation: 2, ledger } });
  for (const number of strangers) await expect.poll(() => bootOf(davit, number), soon).toBe("install");
  for (const number of [failed, most - 1]) expect(await bootOf(davit, number)).toBe("disk");
});
