import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type AssetServer, startAssets } from "./asset-server.ts";
import { ask, statusOf } from "./wire.ts";

let root: string;
let server: AssetServer;
const fetched: string[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "davit-fetched-"));
  await writeFile(join(root, "kernel"), "kernel");
  await writeFile(join(root, "large"), Buffer.alloc(64 * 1024 * 1024));
  fetched.length = 0;
  server = await startAssets(root, { fetched: (address, path) => fetched.push(`${address} ${path}`) });
});
afterEach(async () => {
  await server.stop();
  await rm(root, { recursive: true });
});

it("is reported for a whole file, once it is sent", async () => {
  expect((await ask(server.port, "/assets/large")).body).toHaveLength(64 * 1024 * 1024);
  expect(statusOf(await ask(server.port, "/assets/kernel", { headers: ["Range: bytes=0-5"] }))).toBe(206);
  await expect.poll(() => fetched).toEqual(["127.0.0.1 /assets/large", "127.0.0.1 /assets/kernel"]);
});

it("is not reported for HEAD, a part, an unchanged file, a missing one, or a download that was cut", async () => {
  await ask(server.port, "/assets/kernel", { method: "HEAD" });
  await ask(server.port, "/assets/kernel", { headers: ["Range: bytes=1-5"] });
  await ask(server.port, "/assets/kernel", { headers: ["If-None-Match: *"] });
  await ask(server.port, "/assets/nothing");
  const socket = connect(server.port, "127.0.0.1");
  socket.write("GET /assets/large HTTP/1.1\r\nHost: davit\r\n\r\n");
  await new Promise((resolve) => socket.once("data", resolve));
  socket.destroy();
  await expect.poll(() => server.metric("davit_boot_asset_streams")).toBe(0);
  await setTimeout(50);
  expect(fetched).toEqual([]);
});
