/** Requests that the history has no room for, of a real listener, as a scrape counts them. */

import { Agent, get } from "node:http";
import { afterEach, expect, it } from "vitest";
import { BootService } from "../../src/app/boot/boot-service.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { type Address, authority } from "../../src/lib/text/address.ts";
import { readServeConfig } from "../../src/options/serve.ts";
import { silentLog } from "../helpers/test-store.ts";

// The texts of some 600 such requests fill what there is for those that wait.
const requests = 2_000;
const longQuery = `mac=52-54-00-00-00-01&note=${"n".repeat(7_900)}`;

let service: BootService | undefined;
const agent = new Agent({ keepAlive: true, maxSockets: 8 });

afterEach(async () => {
  agent.destroy();
  await service?.stop();
});

function statusOf(address: Address, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(`http://${authority(address)}${path}`, { agent }, (answer) => {
      answer.resume().once("end", () => resolve(answer.statusCode));
    }).once("error", reject);
  });
}

async function textOf(address: Address, path: string): Promise<string> {
  const answer = await fetch(`http://${authority(address)}${path}`);
  return await answer.text();
}

it("a flood is answered, and what the history lost of it is counted as it is told there", async () => {
  const addresses = [
    "--boot-address",
    "127.0.0.1:0",
    "--ops-address",
    "127.0.0.1:0",
    "--advertise-address",
    "davit:80",
  ];
  const paths = { isDirectory: () => true, isFile: () => true };
  const config = readServeConfig(["--manifests", "m", ...addresses], {}, paths);
  const metrics = createMetrics("1");
  service = new BootService({ config, log: silentLog, clock: systemClock, metrics, version: "1" });
  const ops = await service.listenForOperators({
    waitingFor: "",
    attention: () => [],
    measure: () => undefined,
    provenAtMs: () => undefined,
  });
  const { bootAddress } = await service.listenForMachines();
  const lost = async () => Number(/^davit_boot_history_lost_total (\d+)$/m.exec(await textOf(ops, "/metrics"))?.[1]);
  expect(await lost()).toBe(0);
  let counted = 0;
  // On a busy computer the requests come so slowly that the history has room for all of them: then again.
  for (let flood = 0; flood < 10 && counted === 0; flood++) {
    const statuses = await Promise.all(
      Array.from({ length: requests }, () => statusOf(bootAddress, `/ipxe?${longQuery}`)),
    );
    // Nothing is synced here, so each answer asks for a retry.
    expect(new Set(statuses)).toEqual(new Set([503]));
    counted = await lost();
  }
  expect(counted).toBeGreaterThan(0);
  expect(await textOf(ops, "/history")).toMatch(new RegExp(`^${counted} requests from `));
}, 60_000);
