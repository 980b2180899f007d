/** UEFI machines that boot over IPv6 only, with the dnsmasq of docs/reference/firmware.md. */

import { beforeAll, describe, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { expectBoot } from "./checked-boot.ts";
import { boots } from "./firmware-table.ts";
import { copyIpxe } from "./ipxe-files.ts";
import { type LanServer, startLanServer } from "./lan-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const isMissing =
  missing("all-firmware") ||
  missing("qemu", "ipxe", "ovmf", "cloud-kernel", "busybox-static", "network-namespace", "dnsmasq");

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
    () => expectBoot(network.server, boots.uefiIpxeTftp6, { kind: "lan", lan: network.lan, by: "pxe" }),
    bootTestLimitMs,
  );

  it(
    "a UEFI machine boots by HTTP Boot",
    () => expectBoot(network.server, boots.uefiIpxeHttp6, { kind: "lan", lan: network.lan, by: "http" }),
    bootTestLimitMs,
  );
});
