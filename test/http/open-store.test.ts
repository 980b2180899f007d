import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { request as requestPlain } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { openStore } from "../helpers/test-store.ts";
import { listenForKeys } from "./listen-for-keys.ts";

const token = "some-other-token-0123";

let folder: string;
let store: Store;
let running: Awaited<ReturnType<typeof listenForKeys>> | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-open-"));
  store = await openStore();
});

afterEach(async () => {
  await running?.service.stop();
  running = undefined;
  await store.stop();
  await rm(folder, { recursive: true });
});

async function start(...options: readonly string[]): Promise<number> {
  running = await listenForKeys(store, ["--data-dir", folder, ...options]);
  return running.port;
}

describe("a store that asks for no credentials", () => {
  const guarded = ["/davit/v1/follow", "/davit/v1/backup"];

  /** The status of a request, whatever its headers say. */
  async function statusOf(port: number, path: string, headers: Readonly<Record<string, string>>): Promise<number> {
    const sent = requestPlain({ host: "127.0.0.1", port, path, headers }).end();
    const [response] = await once(sent, "response");
    response.destroy();
    return response.statusCode;
  }

  const local = async () => (await readFile(join(folder, "local-token"), "utf8")).trim();

  it.each(guarded)("gives %s to who shows the local token, which only its own user can read", async (path) => {
    const port = await start();
    expect((await stat(join(folder, "local-token"))).mode & 0o777).toBe(0o600);
    expect(await statusOf(port, path, {})).toBe(401);
    expect(await statusOf(port, path, { authorization: `Bearer ${token}` })).toBe(401);
    expect(await statusOf(port, path, { authorization: `Bearer ${await local()}` })).toBe(200);
  });

  it("keeps its local token over a restart, and refuses to start where it is spoilt", async () => {
    await start();
    const first = await local();
    await running?.service.stop();
    await start();
    expect(await local()).toBe(first);
    await running?.service.stop();
    await writeFile(join(folder, "local-token"), "\n");
    await expect(start()).rejects.toThrow(/^Cannot use ".*local-token": it has no token: remove it/);
  });

  it.each(["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:1", "a b"])(
    "refuses a request that names %s, by either way to a key",
    async (host) => {
      const port = await start();
      await store.submit({ kind: "set", path: storePath("/a"), value: "x" });
      for (const path of ["/v2/keys/a", "/v2/keys/?recursive=true", "/v2/stats/self"]) {
        expect(await statusOf(port, path, { host })).toBe(403);
      }
      const authorization = `Bearer ${await local()}`;
      for (const path of guarded) expect(await statusOf(port, path, { host, authorization })).toBe(403);
      expect(store.indexes.storeIndex).toBe(1);
    },
  );

  it.each(["127.0.0.1", "[::1]:2379", "192.0.2.7:80", "localhost:2379", "LOCALHOST", "store.lab", "keys.lab:1"])(
    "answers a request that names %s",
    async (host) => {
      const port = await start("--store-advertise-url", "http://keys.lab:2379", "--store-allowed-host", "store.lab");
      for (const path of ["/v2/keys/", "/version"]) expect(await statusOf(port, path, { host })).toBe(200);
    },
  );
});
