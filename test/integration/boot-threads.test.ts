/** davit with several boot threads, as a process. Each request has a connection of its own: the kernel chooses its thread. */

import { writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { settleMs } from "../../src/http/assets/file.ts";
import { type DavitProcess, threadsOf } from "../../tools/davit-process.ts";
import { InstallWorld, ledgerId, queryOf } from "../helpers/install-world.ts";

const soon = { timeout: 60_000, interval: 50 };
const limitMs = 180_000;
const threads = 3;
/** With this many connections, a thread gets none only once in 10^14 runs. */
const many = 80;

let world: InstallWorld;
let davit: DavitProcess;

interface Reply {
  readonly status: number;
  readonly body: string;
}

async function ask(path: string, { url = davit.bootUrl, form }: { url?: string; form?: string } = {}): Promise<Reply> {
  const method = form === undefined ? "GET" : "POST";
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(new URL(path, url), { method, agent: false }, resolve).on("error", reject).end(form);
  });
  return { status: response.statusCode ?? 0, body: await text(response) };
}

/** Returns the different answers that this many connections get. */
async function answers(path: string, count = many): Promise<readonly string[]> {
  const all = await Promise.all(Array.from({ length: count }, () => ask(path)));
  return [...new Set(all.map(({ status, body }) => `${status} ${body.trim()}`))];
}

const metrics = async () => (await ask("/metrics", { url: davit.opsUrl })).body;
const counted = async (series: string) => Number(new RegExp(`^${series} (\\S+)$`, "m").exec(await metrics())?.[1] ?? 0);

const profile = (name: string, effect: string) => `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: ${name}}
spec:
  effect: ${effect}
  boot: {kernel: "/assets/${name}"}
  generic: {inline: "${name} {{mac}}"}
---
`;
const group = (of: string, more = "") => `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: node}
spec:
  profileRef: {name: ${of}}
  selector: {matchLabels: {mac: "52:54:00:00:00:01"}}
${more}
---
`;
const other = `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: rest}
spec: {profileRef: {name: wipe}, matchAll: true}
`;
const query = "mac=52-54-00-00-00-01";

async function write(text: string): Promise<void> {
  await world.writeText(profile("web", "Boot") + profile("wipe", "Install") + other + text);
}

beforeAll(async () => {
  world = await InstallWorld.make();
  await writeFile(world.at("assets", "web"), "w".repeat(3_000_000));
  await write(`---\n${group("web")}`);
  davit = await world.serve(["--boot-threads", String(threads), "--assets-dir", world.at("assets")]);
  await threadsOf(davit, threads);
  // davit caches no file that may still be written.
  await setTimeout(settleMs);
}, limitMs);
afterAll(() => world.stop());

describe("boot threads", { timeout: limitMs }, () => {
  it("give one answer, and count and log each request once", async () => {
    const before = davit.log.filter(({ msg }) => msg === "request").length;
    const ofMetadata = await counted('davit_boot_requests_total\\{endpoint="metadata",code="200"\\}');
    expect(await answers(`/metadata?${query}`)).toEqual([expect.stringMatching(/^200 MAC=52:54:00:00:00:01\n/)]);
    expect(await answers("/assets/web")).toEqual([`200 ${"w".repeat(3_000_000)}`]);
    const lines = () => davit.log.filter(({ msg }) => msg === "request").slice(before);
    await expect.poll(() => lines().length, soon).toBe(2 * many);
    expect(new Set(lines().map(({ boot }) => boot)).size).toBe(1);
    expect(await counted('davit_boot_requests_total\\{endpoint="metadata",code="200"\\}')).toBe(ofMetadata + many);
    await expect.poll(() => counted("davit_boot_asset_streams"), soon).toBe(0);
    // Each thread has read the file once.
    await expect.poll(() => counted("davit_boot_asset_cache_misses_total"), soon).toBe(3 * threads);
    expect(await answers(`/cloud?${query}`)).toEqual(["404 404 no such config"]);
    await expect.poll(() => counted('davit_boot_refusals_total\\{reason="noPart"\\}'), soon).toBe(many);
  });

  it("never give what no recent state of the objects gives, while these change", async () => {
    const held = group("web", "  hold: true");
    const states = [group("wipe"), group("web"), held, ""];
    const wrong: string[] = [];
    let recent: readonly string[] = ["web"];
    let isOver = false;
    const kindOf = ({ status, body }: Reply) => (status === 200 ? /\/assets\/(\w+)/.exec(body)?.[1] : String(status));
    const poll = async () => {
      while (!isOver) {
        const asked = recent;
        const kind = kindOf(await ask(`/ipxe?${query}`)) ?? "";
        if (![...asked, ...recent, "503"].includes(kind)) wrong.push(`${kind} instead of ${recent.join(" or ")}`);
      }
    };
    const pollers = Array.from({ length: 6 }, poll);
    const expected = ["wipe", "web", "503", "503"];
    try {
      for (let turn = 0; turn < 2 * states.length - 2; turn++) {
        const at = turn % states.length;
        const now = expected[at] ?? "";
        recent = [...recent.slice(-1), now];
        await write(`---\n${states[at] ?? ""}`);
        await expect.poll(async () => kindOf(await ask(`/ipxe?${query}`)), soon).toBe(now);
        // A thread has a change within milliseconds, unless the machine is busy with other suites.
        await setTimeout(1_500);
        recent = [now];
        expect(await answers(`/ipxe?${query}`, 30)).toHaveLength(1);
      }
    } finally {
      isOver = true;
      await Promise.all(pollers);
    }
    expect(wrong).toEqual([]);
  });

  it("refuse a second davit on their port", async () => {
    const port = new URL(davit.bootUrl).port;
    for (const count of ["1", "2"]) {
      const args = ["--boot-address", `127.0.0.1:${port}`, "--boot-threads", count];
      await expect(world.serve(args, { dataDir: world.at(`second-${count}`) })).rejects.toThrow("the port is in use");
    }
  });
});

describe("one install", { timeout: limitMs }, () => {
  it("is claimed once by many threads, and every thread knows when it is over", async () => {
    const own = await InstallWorld.make();
    const one = await own.serve(["--boot-threads", String(threads)]);
    try {
      await own.write({ grant: { generation: 1, ledger: await ledgerId(one) } });
      await threadsOf(one, threads);
      const script = async () => (await ask(`/ipxe?${queryOf(1)}`, { url: one.bootUrl })).body;
      // Each thread has its own proof of the objects, some a moment later than others.
      const claims = async () => await Promise.all(Array.from({ length: many }, script));
      const others = async () => (await claims()).filter((body) => !body.includes("/assets/wipe"));
      await expect.poll(others, soon).toEqual([]);
      const { body } = await ask(`/generic?${queryOf(1)}`, { url: one.bootUrl });
      const path = /(\/report\/\S+)/.exec(body)?.[1] ?? "";
      expect((await ask(path, { url: one.bootUrl, form: "state=installed" })).status).toBe(200);
      // The ledger has logged the report. From now on no thread installs.
      const later = await Promise.all(Array.from({ length: many }, script));
      expect(later.filter((text) => text.includes("/assets/wipe"))).toEqual([]);
    } finally {
      await own.stop();
    }
  });
});
