/** Assets that are asked for by their digest: a machine gets the bytes that the digest names, or none of others. */

import { createHash } from "node:crypto";
import { closeSync, mkdtempSync, openSync, renameSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { wantedDigest } from "../../src/http/assets/digests.ts";
import { type AssetServer, startAssets } from "./asset-server.ts";
import { ask, headerOf, sendRaw, statusOf } from "./wire.ts";

const mebibyte = 1024 * 1024;
const root = mkdtempSync(join(tmpdir(), "davit-asset-digests-"));
const kernel = Buffer.alloc(3 * mebibyte + 11, "kernel");
const other = Buffer.alloc(kernel.length, "mutant");
const digestOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const ofKernel = `sha256=${digestOf(kernel)}`;
/** How long davit takes a file for one that may still be written. */
const settledMs = 2_100;

let server: AssetServer;
beforeAll(async () => {
  writeFileSync(join(root, "vmlinuz"), kernel);
  await setTimeout(settledMs);
});
afterEach(() => server.stop());
afterAll(() => rmSync(root, { recursive: true }));

async function get(target: string, options?: Parameters<typeof ask>[2]) {
  const answer = await ask(server.port, target, options);
  return { status: statusOf(answer), text: answer.body.toString(), answer };
}

describe("an asset with a digest", () => {
  it("is sent if it has this digest, whole, in parts, as a head, or not at all if the client has it", async () => {
    server = await startAssets(root);
    const { status, answer } = await get(`/assets/vmlinuz?${ofKernel}`);
    expect(status).toBe(200);
    expect(answer.body.equals(kernel)).toBe(true);
    expect(await get(`/assets/vmlinuz?mac=52-54-00-a1-9c-ae&${ofKernel.toUpperCase()}`)).toMatchObject({ status: 400 });
    expect((await get(`/assets/vmlinuz?sha256=${digestOf(kernel).toUpperCase()}`)).status).toBe(200);
    const part = await get(`/assets/vmlinuz?${ofKernel}`, { headers: ["Range: bytes=1-6"] });
    expect(part).toMatchObject({ status: 206, text: "ernelk" });
    expect((await get(`/assets/vmlinuz?${ofKernel}`, { method: "HEAD" })).status).toBe(200);
    const headers = [`If-None-Match: ${headerOf(answer, "Etag")}`];
    expect((await get(`/assets/vmlinuz?${ofKernel}`, { headers })).status).toBe(304);
  });

  it("cuts the connection of GRUB, which would take the text of an error for the file", async () => {
    server = await startAssets(root);
    const headers = ["User-Agent: GRUB 2.06-13+deb12u1"];
    const escaped = ["/%61ssets/vmlinuz", "/%61ssets/%zz"];
    const others = [`/assets/vmlinuz?sha256=${digestOf(other)}`, "/assets/none", "/assets/vmlinuz?sha256=x"];
    for (const target of [...others, ...escaped]) {
      const request = [`GET ${target} HTTP/1.1`, "Host: davit", ...headers, "", ""].join("\r\n");
      expect((await sendRaw(server.port, request)).toString()).toBe("");
    }
    expect((await get(`/assets/vmlinuz?${ofKernel}`, { headers })).status).toBe(200);
    // Its config is a script, and so is what it gets in place of it.
    expect((await get("/none", { headers })).status).toBe(404);
  });

  it("is refused if it is another file, in every way to ask", async () => {
    server = await startAssets(root);
    const target = `/assets/vmlinuz?sha256=${digestOf(other)}`;
    const plain = await get("/assets/vmlinuz");
    const etag = headerOf(plain.answer, "Etag");
    const ways = [{}, { method: "HEAD" }, { headers: ["Range: bytes=0-1"] }, { headers: [`If-None-Match: ${etag}`] }];
    for (const way of ways) {
      const { status, text } = await get(target, way);
      expect(status).toBe(503);
      if (way.method === undefined) expect(text).toContain("not the file that sha256 names");
    }
    expect(await server.metric("davit_boot_asset_mismatches_total")).toBe(ways.length);
    expect((await get("/assets/none?sha256=".concat(digestOf(other)))).status).toBe(404);
  });

  it.each([
    "sha256=",
    "sha256=abc",
    `sha256=${digestOf(kernel)}0`,
    `sha256=${digestOf(kernel).replace(/./, "g")}`,
    `sha256=${digestOf(kernel)}&sha256=${digestOf(other)}`,
    `sha256=\${digest}`,
    `SHA256=${digestOf(kernel)}`,
    "sha256sum=0",
  ])("is refused for %s, which is no digest", async (query) => {
    server = await startAssets(root);
    const { status, text } = await get(`/assets/vmlinuz?${query}`);
    expect(status).toBe(400);
    expect(text).toContain("64 hexadecimal digits");
  });

  it("is hashed beside other downloads, which do not wait", async () => {
    server = await startAssets(root);
    const large = join(root, "large");
    closeSync(openSync(large, "w"));
    truncateSync(large, 512 * mebibyte);
    await setTimeout(settledMs);
    let isHashed = false;
    const asked = Array.from({ length: 20 }, () => get("/assets/large?sha256=".concat("0".repeat(64))));
    void asked[0]?.then(() => {
      isHashed = true;
    });
    let beside = 0;
    for (let at = 0; at < 20; at += 1) {
      expect((await get("/assets/vmlinuz")).status).toBe(200);
      if (!isHashed) beside += 1;
    }
    expect(beside).toBeGreaterThan(0);
    for (const { status } of await Promise.all(asked)) expect(status).toBe(503);
    rmSync(large);
  });
});

describe("a kernel that somebody mutates", () => {
  const path = join(root, "mutated");
  const times = [new Date(2026, 0, 1), new Date(2026, 0, 1)] as const;
  const write = (bytes: Buffer) => {
    writeFileSync(path, bytes);
    utimesSync(path, ...times);
  };
  const replace = (bytes: Buffer) => {
    writeFileSync(`${path}.new`, bytes);
    utimesSync(`${path}.new`, ...times);
    renameSync(`${path}.new`, path);
  };
  const half = Buffer.concat([kernel.subarray(0, mebibyte), other.subarray(mebibyte)]);

  it.each([0, 64 * mebibyte])(
    "never reaches a machine whose Profile names a digest (cache %i)",
    async (cacheBytes) => {
      server = await startAssets(root, { cacheBytes });
      write(kernel);
      const target = `/assets/mutated?${ofKernel}`;
      const statuses = new Map<number, number>();
      let isOver = false;
      const poll = async () => {
        while (!isOver) {
          const { answer, status } = await get(target);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          if (status === 200) {
            // A cut answer is shorter than its length, and a client does not take it for a file.
            expect(kernel.subarray(0, answer.body.length).equals(answer.body)).toBe(true);
          } else {
            expect(status).toBe(503);
          }
        }
      };
      const polling = [poll(), poll(), poll()];
      await setTimeout(settledMs);
      for (const change of [write, replace]) {
        for (const bytes of [other, half, kernel.subarray(0, mebibyte), kernel]) {
          change(bytes);
          await setTimeout(bytes === kernel ? settledMs + 300 : 400);
        }
      }
      write(other);
      await setTimeout(settledMs + 300);
      isOver = true;
      await Promise.all(polling);
      expect((await get(target)).status).toBe(503);
      expect(statuses.get(200)).toBeGreaterThan(0);
      expect(statuses.get(503)).toBeGreaterThan(0);
    },
    60_000,
  );
});

it("reads a digest from a query", () => {
  expect(wantedDigest("")).toBeUndefined();
  expect(wantedDigest("mac=52-54-00-a1-9c-ae")).toBeUndefined();
  expect(wantedDigest(`a=b&${ofKernel}&${ofKernel}`)).toBe(digestOf(kernel));
});
