import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Firmware, type Loader, quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { bootSector, diskGreeting } from "./bootable-disk.ts";
import { diskResults, expectDiskBoot } from "./disk-boot.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { linesWith } from "./guest-checks.ts";
import { guestInitrd } from "./guest-initrd.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";
import { recordOutcome, situations } from "./outcome-table.ts";

const manifests = join(import.meta.dirname, "guests/local-boot");
const isLeftOut = missing("all-firmware") || missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static");
const uefiIsMissing = isLeftOut || missing("ovmf", "mtools", "grub", "grub-uefi");
const grubIsMissing = isLeftOut || missing("grub", "grub-bios");

/** What an installed machine sends beside its uuid and MAC, by the way in which it is to boot from its disk. */
const ways = [
  { way: "exit", labels: "&os=installed", status: 200, situation: situations.exit },
  { way: "sanboot", labels: "&os=installed&local=sanboot", status: 200, situation: situations.sanboot },
  { way: "notFound", labels: "&os=installed&local=notFound", status: 404, situation: situations.notFound },
] as const;

describe.skipIf(isLeftOut)("an installed machine boots from its disk", () => {
  let server: LinedServer;

  beforeAll(async () => {
    server = await startLinedServer(["--manifests", manifests]);
    const folder = join(server.assets, "guests");
    mkdirSync(folder);
    writeFileSync(join(folder, "install.gz"), guestInitrd({ name: "install" }));
    writeFileSync(join(folder, "disk.img"), bootSector());
    return () => server.stop();
  }, startLimitMs);

  beforeEach(() => server.line.expect());

  it.each(ways)(
    "after iPXE has installed it, by $way",
    async ({ labels, status, situation }) => {
      const disk = join(server.makeDirectory(), "disk.img");
      writeFileSync(disk, Buffer.alloc(1 << 20));
      const machine = { ...quickstartMachine, firmware: "bios", disk } as const;

      const first = await server.boot({ ...machine, loader: server.loader });
      expect(linesWith(first.screen, "INSTALLED")).toEqual(["INSTALLED /assets/guests/disk.img"]);
      server.line.expect();
      const { screen, seconds } = await server.boot({ ...machine, loader: ipxe(labels) });
      expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
      expect(server.line.asked).toEqual([{ target: `/ipxe?${own("-")}${labels}`, status }]);
      recordOutcome(situation, "biosIpxe", { result: diskResults.disk, seconds });
    },
    2 * bootTestLimitMs,
  );

  it.each(ways)("by UEFI and iPXE, by $way", { skip: uefiIsMissing, timeout: bootTestLimitMs }, async (way) => {
    const { labels, status, situation } = way;
    await expectDiskBoot(server, { situation, kind: "uefiIpxe", loader: ipxe(labels), result: "disk" });
    // When iPXE has left, the firmware tries the same URL by itself.
    expect(server.line.asked[0]).toEqual({ target: `/ipxe?${own("-")}${labels}`, status });
  });

  it.each(ways)("by BIOS and GRUB, by $way", { skip: grubIsMissing, timeout: bootTestLimitMs }, async (way) => {
    const { labels, status, situation } = way;
    await expectDiskBoot(server, { situation, kind: "biosGrub", loader: grub("bios", labels), result: "disk" });
    expect(server.line.asked).toEqual([{ target: `/grub?${own(":")}${labels}`, status }]);
  });

  it.each(ways)("or not, by UEFI and GRUB, by $way", { skip: uefiIsMissing, timeout: bootTestLimitMs }, async (way) => {
    const { labels, status, situation } = way;
    const result = way.way === "sanboot" ? "disk" : "setup";
    await expectDiskBoot(server, { situation, kind: "uefiGrub", loader: grub("uefi", labels), result });
    expect(server.line.asked).toEqual([{ target: `/grub?${own(":")}${labels}`, status }]);
  });

  /** DHCP names another URL to a machine that is installed; iPXE fills in the rest. */
  function ipxe(labels: string): Loader {
    const query = `uuid=\${uuid}&mac=\${mac:hexhyp}${labels}`;
    return { kind: "ipxe", url: `http://${server.authoritySeenByMachine}/ipxe?${query}` };
  }

  function grub(firmware: Firmware, labels: string): Loader {
    return makeGrubLoader(server.makeDirectory(), firmware, server.authoritySeenByMachine, labels);
  }
});

/** The labels by which the machine says who it is. */
function own(macSeparator: string): string {
  const { uuid, mac } = quickstartMachine;
  return `uuid=${uuid}&mac=${mac.replaceAll(":", macSeparator)}`;
}
