/**
 * Many machines at once: each installs once, no answer takes long, and machines without a permit cost the ledger
 * nothing. `DAVIT_TEST_MACHINES=10000` and `DAVIT_TEST_STRANGERS=65536` are the numbers of `make test-machines`.
 */

import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { bootOf, configOf, InstallWorld, ledgerId } from "../helpers/install-world.ts";

const fleet = Number(process.env.DAVIT_TEST_MACHINES ?? 200);
const strangers = Number(process.env.DAVIT_TEST_STRANGERS ?? 2_000);
/** Connections at a time. */
const lanes = 64;
const limitMs = 120_000 + fleet * 100 + strangers * 20;
const late = "503 permit not logged yet";
const soon = { timeout: 60_000, interval: 50 };

let world: InstallWorld;
beforeEach(async () => {
  world = await InstallWorld.make();
});
afterEach(() => world.stop());

/** Does the work for each number, some at a time. */
async function forEach(count: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function metric(opsUrl: string, name: string): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

const percentile = (times: readonly number[], part: number) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * part)] ?? 0;

it(`of ${fleet} machines at once, each installs once`, { timeout: limitMs }, async () => {
  const davit = await world.serve();
  await world.write({ grant: { generation: 1, ledger: await ledgerId(davit) } });
  await expect.poll(() => bootOf(davit, 1_000_000), soon).toBe("install");
  const times: number[] = [];
  let waits = 0;
  await forEach(fleet, async (number) => {
    for (;;) {
      const beganMs = performance.now();
      const boot = await bootOf(davit, number);
      times.push(performance.now() - beganMs);
      if (boot === "install") break;
      expect(boot).toBe(late);
      waits += 1;
      // As iPXE does by `Retry-After: 1`.
      await setTimeout(1_000);
    }
    // An installer asks again for a config, too.
    await expect.poll(() => configOf(davit, number), soon).toMatch(/^\/report\//);
    expect(await bootOf(davit, number)).toBe("disk");
  });
  const memory = await metric(davit.opsUrl, "process_resident_memory_bytes");
  const figures = { p50: percentile(times, 0.5), p99: percentile(times, 0.99), waits, memoryMiB: memory / 2 ** 20 };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
  expect(await metric(davit.opsUrl, 'davit_ledger_machines\\{state="installing"\\}')).toBe(fleet);
  expect(await metric(davit.opsUrl, 'davit_installs_total\\{result="claimed"\\}')).toBe(fleet + 1);
});

it(`${strangers} machines without a permit write nothing`, { timeout: limitMs }, async () => {
  const davit = await world.serve();
  await expect.poll(() => bootOf(davit, 0), soon).toBe("503 no permit to install");
  const beforeBytes = await metric(davit.opsUrl, "process_resident_memory_bytes");
  await forEach(strangers, async (number) => {
    expect(await bootOf(davit, number)).toBe("503 no permit to install");
  });
  const ledger: unknown = await (await fetch(`${davit.opsUrl}/ledger`)).json();
  expect(ledger).toMatchObject({ entries: 0 });
  const grownMiB = ((await metric(davit.opsUrl, "process_resident_memory_bytes")) - beforeBytes) / 2 ** 20;
  process.stdout.write(`${JSON.stringify({ grownMiB })}\n`);
  expect(grownMiB).toBeLessThan(256);
});
