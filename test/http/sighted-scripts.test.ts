/** The digest that a machine's status shows is that of the script which it got. */

import { createHash } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sightingOf } from "../../src/app/core/sight.ts";
import { BootConfigs } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { bootHandler } from "../../src/http/boot/routes.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import type { MachineSighting } from "../../src/model/sighting.ts";
import type { AnsweredRequest } from "../../src/records/history/request.ts";
import { groupDocument, profileDocument, syncedDocument } from "../boot/feed-documents.ts";
import { accessLog } from "../helpers/access-log.ts";
import { silentLog } from "../helpers/test-store.ts";

const query = "mac=52:54:00:00:00:01";
const atMs = 7_000;
let server: HttpServer;
let url: string;
let sighted: MachineSighting[];

/** As the history does. */
function record({ query = "", ...request }: AnsweredRequest): void {
  const now = { nowMs: () => atMs - request.startedMs - request.durationMs, monotonicMs: () => 0 };
  const sighting = sightingOf({ ...request, via: undefined, labels: labelsFromQuery(query) }, now);
  if (sighting !== undefined) sighted.push(sighting);
}

beforeEach(async () => {
  sighted = [];
  const index = new BootIndex({ log: silentLog });
  const boot = { kernel: "/assets/linux", initrd: [], args: [], efiInitrd: false, kind: "kernel" } as const;
  const ignition = { kind: "text", text: `{"ignition":{"version":"3.4.0"}}`, raw: true } as const;
  index.replaced([
    profileDocument("lab/linux", { boot, templates: { ignition } }),
    groupDocument("lab/node", { profile: "linux", selector: { mac: "52:54:00:00:00:01" } }),
    groupDocument("lab/held", { profile: "linux", selector: { mac: "52:54:00:00:00:02" }, hold: true }),
    syncedDocument(),
  ]);
  index.open();
  const grub = { separator: "auto", commands: "auto" } as const;
  const configs = new BootConfigs({ index, authority: "192.0.2.1:8080", grub });
  const shared = { log: silentLog, clock: systemClock, answerError };
  const access = accessLog({
    ...shared,
    metrics: createMetrics("1"),
    history: { record },
  });
  const render: BootConfigs["answer"] = (name, asked) => configs.answer(name, asked);
  server = createServer({ ...shared, handler: bootHandler({ configs: { render }, accessLog: access }) });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  url = `http://127.0.0.1:${port}`;
});
afterEach(() => server.close());

async function ask(path: string, init: RequestInit = {}): Promise<string> {
  const count = sighted.length;
  const body = await (await fetch(`${url}${path}`, init)).text();
  await expect.poll(() => sighted.length).toBe(count + 1);
  return body;
}

it.each([
  { path: `/ipxe?${query}`, agent: "iPXE/1.21.1" },
  { path: `/grub?${query}`, agent: "GRUB 2.06" },
])("$path: of the body, also when it is kept", async ({ path, agent }) => {
  for (let time = 0; time < 2; time++) {
    const body = await ask(path, { headers: { "user-agent": agent } });
    expect(sighted.at(-1)?.script).toEqual({ sha256: createHash("sha256").update(body).digest("hex"), atMs });
  }
});

it.each([
  { name: "HEAD", path: `/ipxe?${query}`, method: "HEAD" },
  { name: "a config", path: `/ignition?${query}`, method: "GET" },
  { name: "a script for GRUB that waits", path: "/grub?mac=52:54:00:00:00:02", method: "GET" },
  { name: "a refusal", path: "/ipxe?mac=52:54:00:00:00:03", method: "GET" },
])("$name has none", async ({ path, method }) => {
  await ask(path, { method });
  expect(sighted.at(-1)).toMatchObject({ identities: [expect.any(String)] });
  expect(sighted.at(-1)?.script).toBeUndefined();
});
