/** What machines asked a follower is in the writer's history, in the order in which they asked, whoever answered. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { historyPath } from "../../src/model/history-batch.ts";
import {
  type DavitBootProcess,
  type DavitProcess,
  localAuthorization,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";

const limitMs = 120_000;
const soon = { timeout: 30_000, interval: 100 };
const mac = "52:54:00:00:00:01";

const objects = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec:
  boot: {kernel: /assets/linux}
  ignition: {inline: '{"ignition":{"version":"3.4.0"}}'}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec: {profileRef: {name: web}, selector: {matchLabels: {mac: "${mac}"}}}
`;

let folder: string;
let writer: DavitProcess;
let follower: DavitBootProcess;
const running: DavitBootProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-history-"));
  await mkdir(join(folder, "manifests"));
  await writeFile(join(folder, "manifests", "objects.yaml"), objects);
  writer = await startWriter();
  follower = await startDavitBoot(storeOf(writer));
  running.push(follower);
}, limitMs);
afterEach(async () => {
  await Promise.all(running.splice(0).map((davit) => davit.stop("SIGKILL")));
  await rm(folder, { recursive: true });
});

async function startWriter(): Promise<DavitProcess> {
  const davit = await startDavit({ manifests: join(folder, "manifests"), dataDir: join(folder, "data") });
  running.push(davit);
  return davit;
}

async function ask({ bootUrl }: DavitBootProcess, path: string): Promise<number> {
  const answer = await fetch(`${bootUrl}${path}`);
  await answer.arrayBuffer();
  return answer.status;
}

interface HistoryAnswer {
  readonly machines: readonly {
    readonly labels: Readonly<Record<string, string>>;
    readonly boots: readonly {
      readonly line: string;
      readonly requests: readonly { readonly endpoint: string; readonly via?: string }[];
    }[];
  }[];
}

async function bootsAt({ opsUrl }: DavitBootProcess) {
  const answer = await fetch(`${opsUrl}/history?mac=${mac}`, { headers: { accept: "application/json" } });
  if (!answer.ok) return [];
  const { machines } = (await answer.json()) as HistoryAnswer;
  return machines.flatMap(({ boots }) => boots);
}

const textAt = async ({ opsUrl }: DavitBootProcess) => await (await fetch(`${opsUrl}/history?mac=${mac}`)).text();

it("a boot whose script came from the follower and whose config came from the writer", {
  timeout: limitMs,
}, async () => {
  const statuses = [
    await ask(follower, "/boot.ipxe"),
    await ask(follower, `/ipxe?mac=${mac}`),
    await ask(writer, `/ignition?mac=${mac}`),
  ];
  expect(statuses).toEqual([200, 200, 200]);
  // The writer knows its own request first.
  expect((await bootsAt(writer)).at(-1)?.requests.map(({ endpoint }) => endpoint)).toContain("ignition");
  await expect
    .poll(async () => (await bootsAt(writer)).map(({ line }) => line), soon)
    .toEqual(["boot.ipxe -> ipxe -> ignition"]);
  const [boot] = await bootsAt(writer);
  expect(boot?.requests.map(({ via }) => via)).toEqual([hostname(), hostname(), undefined]);
  expect((await textAt(writer)).match(/^.* (?:boot\.ipxe|ipxe|ignition) .*ms.*$/gm)).toEqual([
    expect.stringMatching(new RegExp(` boot\\.ipxe .* by address {2}via ${hostname()}$`)),
    expect.stringMatching(new RegExp(` ipxe .* via ${hostname()}$`)),
    expect.not.stringContaining("via"),
  ]);
  // A follower shows its own only.
  expect((await bootsAt(follower)).map(({ line }) => line)).toEqual(["boot.ipxe -> ipxe"]);
  expect(await textAt(follower)).not.toContain("via");

  await writer.stop();
  const next = await startWriter();
  const [restored] = await bootsAt(next);
  expect(restored?.requests.map(({ endpoint, via }) => [endpoint, via])).toEqual([
    ["boot.ipxe", hostname()],
    ["ipxe", hostname()],
    ["ignition", undefined],
  ]);
});

it("a follower that stops hands on what it answered last", { timeout: limitMs }, async () => {
  expect(await ask(follower, `/ipxe?mac=${mac}`)).toBe(200);
  expect(await follower.stop()).toBe(0);
  expect((await bootsAt(writer)).map(({ line }) => line)).toEqual(["ipxe"]);
});

it("needs a follower's credentials, and shows hostile text as text", { timeout: limitMs }, async () => {
  const request = [1, "10.0.0.7", "ipxe", null, 0, 200, null, null, 1, 1, { mac, hostname: "\u001b[2J\u202e<img>" }];
  const bad = request.with(2, "ipxe\u001b[2J");
  const requests = [request, bad];
  const body = JSON.stringify({
    via: "pod-1",
    run: "0123456789abcdef",
    first: 0,
    dropped: 3,
    agoMs: [10, 10],
    requests,
  });
  const post = async (headers: Record<string, string>, text = body) => {
    return await fetch(`${writer.storeUrl}${historyPath}`, { method: "POST", headers, body: text });
  };
  const local = await localAuthorization(writer.dataDir);
  expect((await post({})).status).toBe(401);
  expect((await post(local, "{}")).status).toBe(400);
  expect((await post(local, `${body.slice(0, -1)},"more":"${"m".repeat(256 * 1024)}"}`)).status).toBe(400);
  expect(await bootsAt(writer)).toEqual([]);
  const taken = await post(local);
  expect([taken.status, await taken.json()]).toEqual([200, { taken: 2 }]);
  expect(await (await post(local)).json()).toEqual({ taken: 2 });
  expect((await bootsAt(writer)).map(({ line }) => line)).toEqual(["ipxe"]);
  const text = await textAt(writer);
  expect(text).toContain("via pod-1");
  expect(text).toMatch(/^3 requests that followers answered could not be handed on: not shown\n\n/);
  expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
});
