/** A Group that is held while its machine asks by GRUB: the machine waits, and boots once it is released. */

import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { expectOwnConfigs } from "./guest-checks.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

describe.skipIf(missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static", "grub"))("a held machine", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-held-"));
  const directory = join(folder, "manifests");
  let server: LinedServer;

  beforeAll(async () => {
    mkdirSync(directory);
    hold(true);
    server = await startLinedServer(["--manifests", directory]);
    return async () => {
      await server.stop();
      rmSync(folder, { recursive: true });
    };
  }, startLimitMs);

  function hold(isHeld: boolean): void {
    const text = readFileSync(join(import.meta.dirname, "manifests/check.yaml"), "utf8");
    const held = text.replace("spec:\n  profileRef:", `spec:\n  hold: ${isHeld}\n  profileRef:`);
    writeFileSync(join(folder, "check.yaml"), held);
    renameSync(join(folder, "check.yaml"), join(directory, "check.yaml"));
  }

  async function expectPatience(firmware: "bios" | "uefi"): Promise<void> {
    hold(true);
    await expect.poll(async () => (await fetch(`http://${server.authority}/ipxe?${query}`)).status).toBe(503);
    const delivered = { path: "/grub", status: 503, when: "delivered" } as const;
    server.line.expect({ ...delivered, does: async () => {} }, { ...delivered, does: async () => hold(false) });
    const loader = makeGrubLoader(server.makeDirectory(), firmware, server.authoritySeenByMachine);
    const { screen } = await server.boot({ ...quickstartMachine, firmware, loader });
    const statuses = server.line.asked.filter(({ target }) => target.startsWith("/grub?")).map(({ status }) => status);
    expect(statuses.slice(0, 2)).toEqual([503, 503]);
    expect(new Set(statuses.slice(2, -1))).not.toContain(200);
    expect(statuses.at(-1)).toBe(200);
    expect(screen.replaceAll(/\s+/g, " ")).toContain("davit: 503 held. Asking again in 5 seconds");
    expectOwnConfigs(screen);
  }

  const query = `mac=${quickstartMachine.mac}`;

  it.skipIf(missing("grub-bios"))(
    "waits in GRUB by BIOS, and boots once it is released",
    {
      timeout: bootTestLimitMs,
    },
    () => expectPatience("bios"),
  );

  it.skipIf(missing("grub-uefi", "ovmf"))(
    "waits in GRUB by UEFI, and boots once it is released",
    {
      timeout: bootTestLimitMs,
    },
    () => expectPatience("uefi"),
  );
});
