/** Machines that boot over IPv6 only, with the dnsmasq of docs/reference/firmware.md. */

import { beforeAll, describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { expectBoot } from "./checked-boot.ts";
import { boots } from "./firmware-table.ts";
import { fillGrubDirectory, grubConfig } from "./grub-netboot.ts";
import { copyIpxe } from "./ipxe-files.ts";
import { type LanServer, startLanServer } from "./lan-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const isMissing =
  missing("all-firmware") ||
  missing("qemu", "ipxe", "ovmf", "cloud-kernel", "busybox-static", "network-namespace", "dnsmasq");

/** As iPXE names what it loads. */
const script = "http://[fd00::10]:8080/boot.ipxe";

describe.skipIf(isMissing)("over IPv6 alone", () => {
  let network: LanServer;

  beforeAll(async () => {
    network = await startLanServer("DHCPv6 server", { architecture: "amd64" });
    copyIpxe(network.server.assets, "ipxe.efi");
    copyIpxe(network.tftp, "snponly.efi");
    return () => network.stop();
  }, startLimitMs);

  it(
    "a UEFI machine boots by PXE",
    async () => {
      const { server, lan } = network;
      expect(await expectBoot(server, boots.uefiIpxeTftp6, { kind: "lan", lan, by: "pxe" })).toContain(script);
    },
    bootTestLimitMs,
  );

  it(
    "a UEFI machine boots by HTTP Boot",
    async () => {
      const { server, lan } = network;
      expect(await expectBoot(server, boots.uefiIpxeHttp6, { kind: "lan", lan, by: "http" })).toContain(script);
    },
    bootTestLimitMs,
  );
});

describe.skipIf(isMissing || missing("ipxe-rom"))("over IPv6 alone, without TFTP,", () => {
  it(
    "a BIOS machine with iPXE on its card boots",
    async () => {
      const { server, lan, stop } = await startLanServer("DHCPv6 server", { architecture: "amd64" });
      const boot = expectBoot(server, boots.biosIpxeRom6, { kind: "lan", lan, by: "pxe" });
      expect(await boot.finally(stop)).toContain(script);
    },
    startLimitMs + bootTestLimitMs,
  );
});

describe.skipIf(isMissing || missing("grub", "grub-uefi"))("over IPv6 alone, with GRUB as the loader,", () => {
  it(
    "a UEFI machine boots by PXE",
    async () => {
      const placed = (config: string) => config.replace("/snponly.efi", "/grub/x86_64-efi/core.efi");
      const { server, lan, tftp, stop } = await startLanServer("DHCPv6 server", { architecture: "amd64", placed });
      fillGrubDirectory(tftp, "uefi", grubConfig(lan.authority));
      await expectBoot(server, boots.uefiGrubTftp6, { kind: "lan", lan, by: "pxe" }).finally(stop);
    },
    startLimitMs + bootTestLimitMs,
  );
});
