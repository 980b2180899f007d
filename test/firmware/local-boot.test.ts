import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { bootSector, diskGreeting, makeUefiDisk } from "./bootable-disk.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { linesWith } from "./guest-checks.ts";
import { guestInitrd } from "./guest-initrd.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { type Firmware, type Loader, quickstartMachine } from "./machine.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const manifests = join(import.meta.dirname, "guests/local-boot");
const isLeftOut = missing("all-firmware", "qemu", "ipxe-rom", "cloud-kernel", "busybox-static");
const uefiIsMissing = missing("ovmf", "mtools", "grub", "grub-uefi");

/** What an installed machine sends beside its uuid and MAC, by the way in which it is to boot from its disk. */
const installed = {
  exit: "&os=installed",
  sanboot: "&os=installed&local=sanboot",
  notFound: "&os=installed&local=notFound",
} as const;
type Way = keyof typeof installed;

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

  it.each<Way>(["exit", "sanboot", "notFound"])(
    "after iPXE has installed it, by %s",
    async (way) => {
      const disk = join(server.makeDirectory(), "disk.img");
      writeFileSync(disk, Buffer.alloc(1 << 20));
      const machine = { ...quickstartMachine, firmware: "bios", disk } as const;

      const first = await server.boot({ ...machine, loader: server.loader });
      expect(linesWith(first, "INSTALLED")).toEqual(["INSTALLED /assets/guests/disk.img"]);
      const second = await server.boot({ ...machine, loader: ipxe(way) });
      expect(linesWith(second, diskGreeting)).toEqual([diskGreeting]);
    },
    2 * bootTestLimitMs,
  );

  it.each<Way>(["exit", "sanboot", "notFound"])(
    "by UEFI and iPXE, by %s",
    { skip: uefiIsMissing, timeout: bootTestLimitMs },
    async (way) => {
      const disk = makeUefiDisk(server.makeDirectory());
      const screen = await server.boot({ ...quickstartMachine, firmware: "uefi", disk, loader: ipxe(way) });
      expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
    },
  );

  it.each<Way>(["exit", "sanboot", "notFound"])(
    "by BIOS and GRUB, by %s",
    { skip: missing("grub", "grub-bios"), timeout: bootTestLimitMs },
    async (way) => {
      const disk = join(server.makeDirectory(), "disk.img");
      writeFileSync(disk, Buffer.concat([bootSector(), Buffer.alloc(1 << 20)]));
      const screen = await server.boot({ ...quickstartMachine, firmware: "bios", disk, loader: grub("bios", way) });
      expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
    },
  );

  it("by UEFI and GRUB, by sanboot", { skip: uefiIsMissing, timeout: bootTestLimitMs }, async () => {
    const disk = makeUefiDisk(server.makeDirectory());
    const screen = await server.boot({ ...quickstartMachine, firmware: "uefi", disk, loader: grub("uefi", "sanboot") });
    expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
  });

  /** DHCP names another URL to a machine that is installed; iPXE fills in the rest. */
  function ipxe(way: Way): Loader {
    const query = `uuid=\${uuid}&mac=\${mac:hexhyp}${installed[way]}`;
    return { kind: "ipxe", url: `http://${server.authoritySeenByMachine}/ipxe?${query}` };
  }

  function grub(firmware: Firmware, way: Way): Loader {
    return makeGrubLoader(server.makeDirectory(), firmware, server.authoritySeenByMachine, installed[way]);
  }
});
