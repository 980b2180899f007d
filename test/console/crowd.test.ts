/**
 * The console beside 10,000 machines: what it costs davit, how much a browser loads, and that every browser ends with
 * the truth. `DAVIT_TEST_MACHINES` is another number.
 */

import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DavitProcess } from "../../tools/davit-process.ts";
import { openChromium } from "../../tools/generate/browser.ts";
import { InstallWorld, queryOf } from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";
import { newPerson } from "./people.ts";

const fleet = Number(process.env.DAVIT_TEST_MACHINES ?? 10_000);
/** Connections at a time. */
const lanes = 32;
/** What a browser may load, uncompressed. */
const maxPageBytes = 60_000;
const maxScriptBytes = 10_000;
/** Machines that ask again and again, while browsers look. */
const busy = 50;
const updatesPerSecond = 100;
const updateRounds = 80;

describe.skipIf(missing("chromium"))(`the console of ${fleet} machines`, { timeout: 180_000 }, () => {
  let world: InstallWorld;
  let davit: DavitProcess;
  let browser: Browser;

  beforeAll(async () => {
    world = await InstallWorld.make();
    [davit, browser] = await Promise.all([world.serve(), openChromium()]);
    let next = 0;
    const lane = async () => {
      while (next < fleet) await ask(next++, `node${next}`);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await world?.stop();
  });

  async function ask(number: number, hostname: string): Promise<void> {
    const answer = await fetch(`${davit.bootUrl}/ipxe?${queryOf(number)}&hostname=${hostname}`);
    await answer.text();
  }

  /** The time that davit's process has computed, in milliseconds. */
  async function cpuMs(): Promise<number> {
    const stat = await readFile(`/proc/${davit.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // In ticks of 10 ms: user and system time (proc(5)).
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  async function heapMiB(): Promise<number> {
    const metrics = await (await fetch(`${davit.opsUrl}/metrics`)).text();
    return Number(/^nodejs_heap_size_used_bytes (\S+)$/m.exec(metrics)?.[1]) / 2 ** 20;
  }

  async function costOf(work: () => Promise<unknown>): Promise<number> {
    const beforeMs = await cpuMs();
    await work();
    return (await cpuMs()) - beforeMs;
  }

  it("shows and filters them, at this cost", async () => {
    const heapBefore = await heapMiB();
    const idleMs = await costOf(() => setTimeout(2_000));
    const { page } = await newPerson(browser);
    const paintMs = await costOf(() => page.goto(`${davit.opsUrl}/console/`));
    expect(await page.locator("#found").textContent()).toBe(`${fleet} machines`);
    expect(await page.locator("tbody tr").count()).toBe(100);
    await page.getByLabel("Text").fill("node77");
    const filterMs = await costOf(async () => {
      await page.getByRole("button", { name: "Filter" }).click();
      await page.getByText(`of ${fleet} machines`).waitFor();
    });
    const found = Array.from({ length: fleet }, (_, at) => `node${at + 1}`).filter((name) => name.includes("node77"));
    expect(await page.locator("#found").textContent()).toBe(`${found.length} of ${fleet} machines`);
    const grownMiB = (await heapMiB()) - heapBefore;
    const figures = { idleMsIn2s: idleMs, paintMs, filterMs, targetMs: 300, heapGrownMiB: Math.round(grownMiB) };
    process.stdout.write(`\nthe console of ${fleet} machines, CPU of davit: ${JSON.stringify(figures)}\n`);
    await page.context().close();
  });

  it("makes a browser load little", async () => {
    const { page } = await newPerson(browser);
    const sizes = new Map<string, number>();
    page.on("response", async (response) => {
      const { pathname } = new URL(response.url());
      // A live page's events never end.
      if (response.headers()["content-type"] !== "text/event-stream") {
        sizes.set(pathname, (await response.body()).length);
      }
    });
    await page.goto(`${davit.opsUrl}/console/`);
    await expect
      .poll(() => [...sizes.keys()].toSorted())
      .toEqual(["/console/", "/console/console.css", "/console/console.js"]);
    const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    process.stdout.write(`\nbytes of a page of 100 machines: ${JSON.stringify(Object.fromEntries(sizes))}\n`);
    expect(all).toBeLessThanOrEqual(maxPageBytes);
    expect(sizes.get("/console/console.js")).toBeLessThanOrEqual(maxScriptBytes);
    await page.context().close();
  });

  it(`shows the truth in two browsers and after reloads, beside ${updatesPerSecond} updates a second`, async () => {
    const [one, two] = await Promise.all([newPerson(browser), newPerson(browser)]);
    const people = [one, two];
    await Promise.all(people.map(({ page }) => page.goto(`${davit.opsUrl}/console/`)));
    const heapBefore = await heapMiB();
    let isOver = false;
    const reloading = (async () => {
      while (!isOver) {
        await setTimeout(700);
        await two.page.reload();
      }
    })();
    for (let round = 0; round < updateRounds; round += 1) {
      const numbers = Array.from({ length: updatesPerSecond / 10 }, (_, at) => (round * 10 + at) % busy);
      await Promise.all([setTimeout(100), ...numbers.map((number) => ask(number, `round${round}-${number}`))]);
    }
    isOver = true;
    await reloading;
    for (let number = 0; number < busy; number += 1) await ask(number, `final-${number}`);
    const wanted = Array.from({ length: busy }, (_, number) => `final-${number}`).toSorted();
    for (const { page } of people) {
      await expect.poll(async () => (await finals(page)).toSorted(), { timeout: 60_000 }).toEqual(wanted);
    }
    process.stdout.write(`\nheap grown by the updates: ${Math.round((await heapMiB()) - heapBefore)} MiB\n`);
    expect(people.flatMap(({ troubles }) => troubles)).toEqual([]);
  });

  /** The host names of the machines that have sent their last request. */
  async function finals(page: Page): Promise<string[]> {
    const names = await page.locator("tbody td:nth-of-type(1)").allTextContents();
    return names.filter((name) => name.startsWith("final-"));
  }
});
