import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Loader, quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { diskGreeting, makeBiosDisk, makeInstalledUefiDisk } from "./bootable-disk.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { linesWith } from "./guest-checks.ts";
import { type BootServer, bootTestLimitMs, startBootServer, startLimitMs } from "./machine-boot.ts";
import { type Kind, kinds } from "./outcome-table.ts";

const manifests = join(import.meta.dirname, "guests/found-disk");
const isLeftOut =
  missing("all-firmware") || missing("qemu", "ipxe-rom", "ovmf", "mtools", "grub", "grub-uefi", "grub-bios");
const { mac, uuid } = quickstartMachine;

describe.skipIf(isLeftOut)("a machine whose first disk is empty, and whose firmware finds no other one", () => {
  let server: BootServer;

  beforeAll(async () => {
    server = await startBootServer(["--manifests", manifests]);
    return () => server.stop();
  }, startLimitMs);

  it.each<{ kind: Kind; labels: string }>([
    { kind: "biosIpxe", labels: "" },
    { kind: "biosGrub", labels: "" },
    { kind: "uefiGrub", labels: "" },
    { kind: "uefiGrub", labels: "&disk=usual" },
  ])("boots its second disk: $kind $labels", { timeout: bootTestLimitMs }, async ({ kind, labels }) => {
    const { firmware } = kinds[kind];
    const directory = server.makeDirectory();
    const disk = join(directory, "empty.img");
    writeFileSync(disk, Buffer.alloc(1 << 20));
    const secondDisk = firmware === "bios" ? makeBiosDisk(directory) : makeInstalledUefiDisk(directory);
    const loader = kind === "biosIpxe" ? ipxe(labels) : grub(firmware, labels);
    const { screen } = await server.boot({ ...quickstartMachine, firmware, disk, secondDisk, loader });
    expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
  });

  function ipxe(labels: string): Loader {
    const query = `uuid=${uuid}&mac=${mac.replaceAll(":", "-")}${labels}`;
    return { kind: "ipxe", url: `http://${server.authoritySeenByMachine}/ipxe?${query}` };
  }

  function grub(firmware: "bios" | "uefi", labels: string): Loader {
    return makeGrubLoader(server.makeDirectory(), firmware, server.authoritySeenByMachine, labels);
  }
});
