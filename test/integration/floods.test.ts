/**
 * One client floods a davit that may open 1,024 files; what it is asked beside that by others, on the same machine but by
 * another address, is answered. Real processes, over loopback.
 */

import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { generateKey } from "openpgp";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";

const apiVersion = "davit.dev/v1alpha1";
const startLimitMs = 90_000;
const flooder = "127.0.0.66";

const folder = mkdtempSync(join(tmpdir(), "davit-floods-"));
const sockets: Socket[] = [];
let davit: DavitProcess;

beforeAll(async () => {
  const manifests = join(folder, "manifests");
  mkdirSync(manifests);
  const ignition = { inline: '{"ignition":{"version":"3.4.0"}}' };
  const spec = { boot: { kernel: "/assets/kernel" }, ignition };
  const objects = [
    { apiVersion, kind: "Profile", metadata: { name: "node" }, spec },
    {
      apiVersion,
      kind: "Group",
      metadata: { name: "node" },
      spec: { profileRef: { name: "node" }, selector: { matchLabels: { os: "x" } } },
    },
  ];
  for (const [at, object] of objects.entries()) writeFileSync(join(manifests, `${at}.json`), JSON.stringify(object));
  const keyFile = join(folder, "key");
  const { privateKey } = await generateKey({ type: "rsa", rsaBits: 3072, userIDs: { name: "k" }, format: "binary" });
  writeFileSync(keyFile, privateKey, { mode: 0o600 });
  const within = ["prlimit", "--nofile=1024:1024"];
  davit = await startDavit({ manifests, dataDir: join(folder, "data"), args: ["--signing-key", keyFile], within });
}, startLimitMs);

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

afterAll(async () => {
  await davit?.stop("SIGKILL");
  rmSync(folder, { recursive: true });
});

async function open(url: string, localAddress: string): Promise<Socket> {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", localAddress });
  sockets.push(socket.on("error", () => undefined));
  await once(socket, "connect");
  return socket;
}

const get = (target: string) => `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;

/** What a client of its own is answered first; empty when its connection is closed. */
async function ask(url: string, target: string, localAddress = "127.0.0.1"): Promise<string> {
  const socket = await open(url, localAddress);
  socket.write(get(target));
  const [answer = ""] = await Promise.race([once(socket, "data"), once(socket, "close").then(() => [])]);
  socket.destroy();
  return String(answer);
}

/** A value that is six times as long in an answer as in the store. */
const escaped = "%01".repeat(1024 * 1024);

async function put(key: string, form: string): Promise<void> {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const answer = await fetch(`${davit.storeUrl}/v2/keys/${key}`, { method: "PUT", headers, body: form });
  expect(answer.ok).toBe(true);
  await answer.body?.cancel();
}

/** Asks, and reads nothing. */
async function askOnly(url: string, target: string): Promise<void> {
  const socket = await open(url, flooder);
  socket.pause().write(get(target));
}

async function unsentBytes(listener: string): Promise<number> {
  const metrics = await (await fetch(`${davit.opsUrl}/metrics`)).text();
  return Number(new RegExp(`^davit_unsent_bytes{listener="${listener}"} (\\d+)$`, "m").exec(metrics)?.[1]);
}

function residentMebibytes(): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${davit.pid}/status`, "utf8")) ?? [];
  return Number(kibibytes) / 1024;
}

describe("what clients of the store do not read", () => {
  it("is bounded for values, and who does not read is refused in the form of the store", async () => {
    await put("large", `value=${escaped}`);
    const before = residentMebibytes();
    for (let at = 0; at < 100; at++) await askOnly(davit.storeUrl, "/v2/keys/large");
    const refused = await ask(davit.storeUrl, "/v2/keys/a", flooder);
    expect(refused).toMatch(/^HTTP\/1\.1 503 /);
    expect(refused).toContain('{"errorCode":300,"message":"Raft Internal Error","cause":"too many unread answers"');
    const unsent = await unsentBytes("store");
    expect(unsent).toBeGreaterThan(0);
    expect(unsent).toBeLessThanOrEqual(64 * 1024 * 1024 + 6 * 1024 * 1024);
    expect(residentMebibytes() - before).toBeLessThan(300);
    expect(await ask(davit.storeUrl, "/v2/keys/large")).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("is bounded for listings, and others get theirs", async () => {
    for (let at = 0; at < 6; at++) await put(`tree/${at}`, `value=${"x".repeat(1024 * 1024)}`);
    const before = residentMebibytes();
    for (let at = 0; at < 40; at++) await askOnly(davit.storeUrl, "/v2/keys/tree?recursive=true");
    expect(await ask(davit.storeUrl, "/v2/keys/tree?recursive=true")).toMatch(/^HTTP\/1\.1 200 /);
    expect(residentMebibytes() - before).toBeLessThan(400);
  });

  it("is bounded for events, and a watcher that reads gets each", async () => {
    await put("watched", "value=");
    const before = residentMebibytes();
    for (let at = 0; at < 100; at++) await askOnly(davit.storeUrl, "/v2/keys/watched?wait=true&stream=true");
    const reader = await fetch(`${davit.storeUrl}/v2/keys/watched?wait=true&stream=true`);
    await put("watched", `value=${escaped}`);
    await put("watched", "value=last");
    expect(await unsentBytes("store")).toBeLessThanOrEqual(128 * 1024 * 1024);
    expect(residentMebibytes() - before).toBeLessThan(400);
    let events = "";
    for await (const piece of reader.body ?? []) {
      events += Buffer.from(piece).toString("latin1");
      if (events.includes('"value":"last"')) break;
    }
    expect(events.split('"action":"set"')).toHaveLength(3);
  });
});

describe("one client", () => {
  it("that wants thousands of signatures has nobody else wait for them", async () => {
    let answered = 0;
    let asked = 0;
    for (let client = 0; client < 64; client++) {
      const socket = await open(davit.bootUrl, flooder);
      socket.on("data", (bytes) => {
        answered += bytes.toString("latin1").split("HTTP/1.1 200").length - 1;
      });
      const targets = Array.from({ length: 30 }, () => get(`/metadata.sig?os=x&unique=${asked++}`));
      socket.write(targets.join(""));
    }
    await expect.poll(() => answered, { timeout: 30_000 }).toBeGreaterThan(0);
    for (const target of ["/metadata.sig?os=x&mac=52-54-00-a1-9c-ae", "/ignition.sig?os=x", "/ipxe.sig?os=x"]) {
      const before = answered;
      expect(await ask(davit.bootUrl, target)).toMatch(/^HTTP\/1\.1 200 /);
      expect(answered - before).toBeLessThan(200);
    }
  });

  it.each([
    { listener: "boot", url: () => davit.bootUrl, target: "/ipxe?os=x", share: 214 },
    { listener: "store", url: () => davit.storeUrl, target: "/v2/keys/", share: 128 },
    { listener: "ops", url: () => davit.opsUrl, target: "/livez", share: 32 },
  ])("that takes the connections of the $listener listener leaves others theirs", async ({ url, target, share }) => {
    for (let at = 0; at < share + 1; at++) await open(url(), flooder);
    // Several sockets listen for machines, so davit may accept connections in another order.
    const refused = expect.poll(async () => {
      // Connections of earlier tests may end only now.
      await open(url(), flooder);
      return await ask(url(), target, flooder);
    });
    await refused.toMatch(/^HTTP\/1\.1 503 .*\r\nRetry-After: 5\r\n/is);
    expect(await ask(url(), target)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each([
    { how: "ask nothing", text: "" },
    { how: "end no request", text: "GET /livez HTTP/1.1\r\nHost: " },
    { how: "read no answer", text: get("/metrics").repeat(10) },
  ])(
    "cannot take the operations listener with ten addresses that $how: a probe is always answered",
    async ({ text }) => {
      const hold = async (localAddress: string): Promise<void> => {
        const socket = await open(davit.opsUrl, localAddress);
        socket.pause().write(text);
        // Closed for another, it comes back.
        socket.once("close", async () => {
          await setTimeout(50);
          if (sockets.includes(socket)) await hold(localAddress).catch(() => undefined);
        });
      };
      for (let address = 1; address <= 10; address++) {
        for (let at = 0; at < 64 / address + 4; at++) await hold(`127.0.1.${address}`);
      }
      const answers = new Set<string>();
      for (let at = 0; at < 20; at++) answers.add((await ask(davit.opsUrl, "/livez").catch(String)).slice(0, 12));
      expect([...answers]).toEqual(["HTTP/1.1 200"]);
    },
  );

  it("of the store that is refused is answered in the form of the store", async () => {
    for (let at = 0; at < 130; at++) await open(davit.storeUrl, flooder);
    expect(await ask(davit.storeUrl, "/v2/keys/a", flooder)).toContain(
      '{"errorCode":300,"message":"Raft Internal Error"',
    );
  });
});
