import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { MachineReport, ReportOutcome } from "../../src/model/permits/permit-desk.ts";
import { type AssetServer, startAssets } from "./asset-server.ts";
import { ask, statusOf } from "./wire.ts";

let root: string;
let server: AssetServer;
const reports: string[] = [];
const desk = {
  async report(token: string, { state }: MachineReport, address: string | undefined): Promise<ReportOutcome> {
    reports.push([token, state, address].join(" "));
    return "taken";
  },
};

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "davit-fetched-"));
  await writeFile(join(root, "kernel"), "kernel");
  await writeFile(join(root, "kernel.sig"), "signature");
  await writeFile(join(root, "large"), Buffer.alloc(64 * 1024 * 1024));
  reports.length = 0;
  server = await startAssets(root, { desk });
});
afterEach(async () => {
  await server.stop();
  await rm(root, { recursive: true });
});

it("reports the beginning of the claim in its URL, once the whole file is sent", async () => {
  expect((await ask(server.port, "/assets/large?claim=a")).body).toHaveLength(64 * 1024 * 1024);
  const whole = await ask(server.port, "/assets/kernel?x=1&claim=b", { headers: ["Range: bytes=0-5"] });
  expect(statusOf(whole)).toBe(206);
  await expect.poll(() => reports).toEqual(["a installing 127.0.0.1", "b installing 127.0.0.1"]);
});

it("reports nothing without a claim, for HEAD, a part, an unchanged file, a missing one, or a cut download", async () => {
  await ask(server.port, "/assets/kernel");
  await ask(server.port, "/assets/kernel?claim=");
  await ask(server.port, "/assets/kernel?claim=a", { method: "HEAD" });
  await ask(server.port, "/assets/kernel?claim=a", { headers: ["Range: bytes=1-5"] });
  await ask(server.port, "/assets/kernel?claim=a", { headers: ["If-None-Match: *"] });
  await ask(server.port, "/assets/nothing?claim=a");
  const socket = connect(server.port, "127.0.0.1");
  socket.write("GET /assets/large?claim=a HTTP/1.1\r\nHost: davit\r\n\r\n");
  await new Promise((resolve) => socket.once("data", resolve));
  socket.destroy();
  await expect.poll(() => server.metric("davit_boot_asset_streams")).toBe(0);
  await setTimeout(50);
  expect(reports).toEqual([]);
});

it("sends the signature to a GRUB that puts `.sig` behind the claim, and reports nothing", async () => {
  expect((await ask(server.port, "/assets/kernel?claim=a-_1.sig")).body.toString()).toBe("signature");
  expect((await ask(server.port, "/assets/kernel?name=x.sig")).body.toString()).toBe("kernel");
  await setTimeout(50);
  expect(reports).toEqual([]);
});
