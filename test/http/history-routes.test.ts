/** `/history`, and what the boot listener's requests leave there. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BootConfigs } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { assetRoute } from "../../src/http/assets/assets.ts";
import { AssetDigests } from "../../src/http/assets/digests.ts";
import { bootHandler } from "../../src/http/boot/routes.ts";
import { answerError } from "../../src/http/errors.ts";
import { historyRoutes } from "../../src/http/ops/history-routes.ts";
import { createOpsServer, type OpsServer } from "../../src/http/ops/server.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { bootRefusals } from "../../src/model/refusals.ts";
import { sightingForms } from "../../src/model/sighting.ts";
import { History } from "../../src/records/history/history.ts";
import { groupDocument, profileDocument, syncedDocument } from "../boot/feed-documents.ts";
import { accessLog } from "../helpers/access-log.ts";
import { silentLog } from "../helpers/test-store.ts";
import { seen } from "../records/history/seen-requests.ts";
import { ask } from "./wire.ts";

const initrdBytes = 24 * 1024 * 1024;
const machine = "mac=52-54-00-00-00-01";

let folder: string;
let boot: HttpServer;
let ops: OpsServer;
let port: number;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-history-"));
  await writeFile(join(folder, "linux"), "kernel");
  await writeFile(join(folder, "initrd.img"), Buffer.alloc(initrdBytes));
  const metrics = createMetrics("1");
  const history = new History({ clock: systemClock, metrics });
  const index = new BootIndex({ log: silentLog });
  const davit = { args: [], efiInitrd: false, kind: "kernel" } as const;
  const ignition = { kind: "text", text: `{"ignition":{"version":"3.4.0"}}`, raw: true } as const;
  index.replaced([
    profileDocument("lab/linux", {
      boot: { ...davit, kernel: "{{davit.url}}/assets/linux", initrd: ["--name main /assets/initrd.img"] },
      templates: { ignition },
    }),
    groupDocument("lab/held", { profile: "linux", selector: { mac: "52:54:00:00:00:03" }, hold: true }),
    groupDocument("lab/node", { profile: "linux", selector: { mac: "52:54:00:00:00:01" } }),
    syncedDocument(),
  ]);
  index.open();
  const configs = new BootConfigs({
    index,
    authority: "192.0.2.1:8080",
    grub: { separator: "auto", commands: "auto" },
  });
  const shared = { log: silentLog, clock: systemClock, answerError };
  const access = accessLog({ ...shared, metrics, history });
  const digests = new AssetDigests({ ...shared, metrics });
  const routes = [assetRoute({ root: folder, cacheBytes: 0, digests, clock: systemClock, log: silentLog, metrics })];
  boot = createServer({ ...shared, handler: bootHandler({ configs, accessLog: access, routes }) });
  ({ port } = await boot.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" }));
  ops = createOpsServer(shared);
  const bootFilesOf = (group: string) => {
    const machine = index.machineOf(group);
    return machine && configs.bootFilesOf(machine);
  };
  await ops.app.register(historyRoutes, { history, bootFilesOf });
});

afterEach(async () => {
  await boot.close();
  await ops.close();
  await rm(folder, { recursive: true });
});

async function shown(query = "", accept = "*/*") {
  const { statusCode, body, headers } = await ops.app.inject({
    url: `/history${query}`,
    headers: { host: "davit", accept },
  });
  return { status: statusCode, body, headers };
}

/** Downloads and goes away in the middle. */
async function fetchInPart(target: string): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.write(`GET ${target} HTTP/1.1\r\nHost: davit\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.destroy();
}

describe("a boot is shown as one line", () => {
  it("from boot.ipxe to Ignition, with kernel and initrd as the Profile names them", async () => {
    await ask(port, "/boot.ipxe");
    await ask(port, `/ipxe?${machine}&hostname=node1&token=secret`);
    for (const target of ["/assets/linux", "/assets/initrd.img", `/ignition?${machine}`]) await ask(port, target);
    const line = "boot.ipxe -> ipxe -> kernel -> initrd -> ignition";
    await expect.poll(async () => (await shown(`?${machine}`)).body).toContain(`\n  ${line}\n  last: ignition`);
    const { body } = await shown(`?${machine}`);
    expect(body).toMatch(/^mac=52:54:00:00:00:01 hostname=node1 at 127\.0\.0\.1\n/);
    expect(body).toMatch(new RegExp(`initrd +200 +${initrdBytes} bytes +[\\d.]+ ms +by address\n`));
    expect(body).not.toContain("secret");
    expect((await shown()).body).toContain(`, group lab/node  ${line}  (last: ignition, answered in full)\n`);
  });

  it("that ends in the transfer that the machine did not wait for", async () => {
    await ask(port, `/ipxe?${machine}`);
    await fetchInPart("/assets/initrd.img");
    await expect.poll(async () => (await shown(`?${machine}`)).body).toContain("  ipxe -> initrd cut\n");
    const { body } = await shown(`?${machine}`);
    const [, sent] = /stopped in initrd: (\d+) of 25165824 bytes sent, then the client was gone/.exec(body) ?? [];
    expect(Number(sent)).toBeLessThan(initrdBytes);
  });

  it("that ends where the machine was refused", async () => {
    await ask(port, "/ipxe?mac=52-54-00-00-00-02");
    await ask(port, "/assets/absent");
    await expect
      .poll(async () => (await shown("?mac=52:54:00:00:00:02")).body)
      .toMatch(/ipxe 404 -> assets\/absent 404\n +stopped at assets\/absent: 404\n/);
  });
});

it("a refusal has its reason, as a preview names it", async () => {
  const held = "mac=52-54-00-00-00-03";
  await ask(port, `/ignition?mac=52-54-00-00-00-04`);
  for (const target of ["/ipxe", "/ipxe", "/ipxe"]) await ask(port, `${target}?${held}`);
  await expect.poll(async () => (await shown(`?${held}`)).body).toContain("ipxe 503 x3\n  stopped at ipxe: 503 held\n");
  const { body } = await shown(`?${held}`);
  expect(body).toMatch(/\+0\.000 s {2}ipxe +503 held {2}\d+ bytes .* 3 times within /);
  expect((await shown()).body).toContain("(stopped at ipxe: 503 held)\n");
  expect((await shown("?mac=52-54-00-00-00-04")).body).toContain("stopped at ignition: 404 noMatch\n");
  const ofHeld = JSON.parse((await shown(`?${held}`, "application/json")).body);
  expect(ofHeld.machines[0].boots[0]).toMatchObject({
    end: { kind: "refused", stage: "ipxe", status: 503, reason: "held" },
    requests: [{ status: 503, reason: "held", times: 3 }],
  });
  expect(ofHeld.machines[0].boots[0].end).not.toHaveProperty("refusal");
});

it("a machine that is refused for another reason has another line", async () => {
  const history = new History({ clock: systemClock, metrics: createMetrics("1") });
  for (const refusal of ["held", "held", "late", undefined])
    history.record(seen("ipxe", { query: machine, status: 503, refusal }));
  const [past] = (await history.current()).recent(1);
  await history.stop();
  expect(past?.requests.map(({ refusal, times }) => [refusal, times])).toEqual([
    ["held", 2],
    ["late", 1],
    [undefined, 1],
  ]);
});

it("every reason has a form that davit takes from a follower", () => {
  for (const reason of Object.keys(bootRefusals)) expect(reason).toMatch(sightingForms.result);
});

it("JSON is for who accepts it", async () => {
  await ask(port, `/ipxe?${machine}`);
  await expect.poll(async () => (await shown(`?${machine}`)).status).toBe(200);
  const { body, headers } = await shown(`?${machine}`, "application/json");
  expect(headers).toMatchObject({ "content-type": "application/json", "cache-control": "no-store" });
  const boot = {
    group: "lab/node",
    line: "ipxe",
    end: { kind: "answered", stage: "ipxe" },
    requests: [
      {
        method: "GET",
        endpoint: "ipxe",
        stage: "ipxe",
        status: 200,
        group: "lab/node",
        labels: { mac: "52:54:00:00:00:01" },
        bytes: expect.any(Number),
        milliseconds: expect.any(Number),
        times: 1,
        isCut: false,
        address: "127.0.0.1",
        isByAddress: false,
      },
    ],
  };
  const labels = { mac: "52:54:00:00:00:01" };
  expect(JSON.parse(body)).toMatchObject({ machines: [{ labels, addresses: ["127.0.0.1"], boots: [boot] }] });
  const list = JSON.parse((await shown("", "application/json")).body);
  expect(list).toMatchObject({ machines: [{ labels, lastBoot: { line: "ipxe", group: "lab/node" } }] });
});

it.each<[accept: string, expected: RegExp]>([
  ["*/*", /^3 requests from 20\S+Z to 20\S+Z came faster than they could be recorded: not shown\n\n20\S+Z {2}mac=/],
  ["application/json", /^\{"unrecorded":\{"requests":3,"firstAt":"20[^"]+Z","lastAt":"20[^"]+Z"\},"machines":\[\{/],
])("who accepts %s reads how many requests were lost", async (accept, expected) => {
  const limits = { maxWaiting: 2, maxWaitingBytes: 1_024 };
  const history = new History({ clock: systemClock, metrics: createMetrics("1"), limits });
  for (let at = 0; at < 5; at++) history.record(seen("ipxe", { query: machine }));
  const server = createOpsServer({ log: silentLog, clock: systemClock, answerError });
  await server.app.register(historyRoutes, { history, bootFilesOf: () => undefined });
  const { body } = await server.app.inject({ url: "/history", headers: { host: "davit", accept } });
  await history.stop();
  await server.close();
  expect(body).toMatch(expected);
});

it("control characters that a machine sends are shown by their code", async () => {
  await ask(port, `/ipxe?${machine}&serial=%1b%5b2J%c2%9b%e2%80%ae`);
  await expect
    .poll(async () => (await shown(`?${machine}`)).body)
    .toContain(String.raw`serial="\u001b[2J\u{9b}\u{202e}"`);
});

it("a refused question names the form that davit reads, or where the machines are", async () => {
  expect((await shown("?mac=zz")).body).toBe(
    "400 give a valid mac, uuid, hostname, serial or address, such as ?mac=52-54-00-a1-9c-ae\n",
  );
  expect((await shown("?mac=52:54:00:00:00:99")).body).toBe(
    "404 the history has no request of this machine or address: /history lists the machines seen last\n",
  );
});

it.each<[name: string, query: string, status: number]>([
  ["a machine that never asked", "?mac=52:54:00:00:00:99", 404],
  ["an address that never asked", "?address=192.0.2.9", 404],
  ["what is no MAC address", "?mac=zz", 400],
  ["what is no MAC address beside a name", "?mac=zz&hostname=node1", 400],
  ["a label that names no machine", "?zone=a", 400],
  ["the machines seen last", "", 200],
])("asked for %s", async (_name, query, status) => {
  expect((await shown(query)).status).toBe(status);
});
