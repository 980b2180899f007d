/** Whether davit would send the files that a script names: by the rules by which it sends them. */

import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AssetsOptions, assetRoute } from "../../src/http/assets/assets.ts";
import { AssetDigests } from "../../src/http/assets/digests.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { silentLog } from "../helpers/test-store.ts";
import { laterClock } from "./asset-server.ts";

const root = mkdtempSync(join(tmpdir(), "davit-missing-assets-"));
const sha256 = createHash("sha256").update("a kernel").digest("hex");
const other = "0".repeat(64);

beforeAll(() => {
  mkdirSync(join(root, "dir"));
  writeFileSync(join(root, "linux"), "a kernel");
  writeFileSync(join(root, "dir", ".hidden"), "");
  symlinkSync("/etc/passwd", join(root, "outside"));
  utimesSync(join(root, "linux"), 1, 1);
});
afterAll(() => rmSync(root, { recursive: true }));

async function missingOf(locations: readonly string[], options: Partial<AssetsOptions> = {}, mayBeDirectory = false) {
  const metrics = createMetrics("test");
  const digests = new AssetDigests({ clock: { ...systemClock, ...laterClock }, log: silentLog, metrics });
  const shared = { root, cacheBytes: 0, digests, clock: laterClock, log: silentLog, metrics };
  const route = assetRoute({ ...shared, ...options });
  const path = await route.firstMissing(locations.map((location) => ({ location, mayBeDirectory })));
  await digests.stop();
  return path;
}

describe("a file of a script", () => {
  it.each([
    "/assets/linux",
    "/assets//linux",
    "/assets/%6cinux",
    "/assets/linux?mac=1",
    `/assets/linux?sha256=${sha256}`,
  ])("%s is there", async (location) => {
    expect(await missingOf([location])).toBeUndefined();
  });

  it.each([
    ["/assets/initrd"],
    ["/assets/dir"],
    ["/assets/"],
    ["/assets/outside"],
    ["/assets/dir/.hidden"],
    ["/assets/linux/x"],
    [`/assets/linux?sha256=${other}`, "/assets/linux"],
    ["/assets/linux?sha256=x", "/assets/linux"],
    ["/assets/%zz"],
    ['/assets/a"$(reboot);`', "/assets/a%22%24%28reboot%29%3b%60"],
  ])("%s is missing", async (location, shown = location) => {
    expect(await missingOf(["/assets/linux", location])).toBe(shown);
  });

  it("is missing without an assets directory, and if the directory is gone", async () => {
    expect(await missingOf(["/assets/linux"], { root: undefined })).toBe("/assets/linux");
    expect(await missingOf(["/assets/linux"], { root: join(root, "gone") })).toBe("/assets/linux");
    expect(await missingOf([], { root: undefined })).toBeUndefined();
  });

  it("under a name that Profiles list is the listed one, or missing", async () => {
    const lists = () => true;
    expect(
      await missingOf(["/assets/linux"], { wanted: { lists, accepts: (_name, of) => of === sha256 } }),
    ).toBeUndefined();
    expect(await missingOf(["/assets/linux"], { wanted: { lists, accepts: () => false } })).toBe("/assets/linux");
    expect(await missingOf(["/assets/none"], { wanted: { lists, accepts: () => true } })).toBe("/assets/none");
  });

  it.each(["/assets/dir", "/assets/dir/", "/assets/", "/assets/linux"])(
    "%s in an argument is there: a file or a directory",
    async (location) => {
      expect(await missingOf([location], {}, true)).toBeUndefined();
    },
  );

  it.each(["/assets/none/", "/assets/../dir", "/assets/.git/", "/assets/outside/"])(
    "%s in an argument is missing",
    async (location) => {
      expect(await missingOf([location], {}, true)).toBe(location);
    },
  );
});
