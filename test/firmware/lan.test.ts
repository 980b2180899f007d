import { beforeAll, describe, expect, it } from "vitest";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { missing } from "../helpers/requirements.ts";
import { expectBoot } from "./checked-boot.ts";
import { boots } from "./firmware-table.ts";
import { copyIpxe, makePlainPxe } from "./ipxe-files.ts";
import { dnsmasqRoles, type LanServer, startLanServer } from "./lan-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const networkIsMissing =
  missing("qemu", "ipxe-rom", "ipxe", "cloud-kernel", "busybox-static") || missing("network-namespace", "dnsmasq");
const uefiIsMissing = missing("ovmf");
const isNotAskedFor = missing("all-firmware");

it("docs/reference/firmware.md shows a config for each part that dnsmasq can play", () => {
  expect(blocksOf(readPage("reference/firmware.md"), "dnsmasq")).toHaveLength(dnsmasqRoles.length);
});

describe.skipIf(networkIsMissing)("with the dnsmasq of docs/reference/firmware.md as DHCP server", () => {
  let network: LanServer;

  beforeAll(async () => {
    network = await startLanServer("DHCP server", { architecture: "amd64" });
    copyIpxe(network.server.assets, "ipxe.efi");
    copyIpxe(network.tftp, "snponly.efi", "undionly.kpxe");
    return () => network.stop();
  }, startLimitMs);

  it.skipIf(uefiIsMissing)(
    "a UEFI machine boots by HTTP Boot",
    () => expectBoot(network.server, boots.uefiIpxeHttp, { kind: "lan", lan: network.lan, by: "http" }),
    bootTestLimitMs,
  );

  it.skipIf(isNotAskedFor || uefiIsMissing)(
    "a UEFI machine boots by PXE",
    () => expectBoot(network.server, boots.uefiIpxeTftp, { kind: "lan", lan: network.lan, by: "pxe" }),
    bootTestLimitMs,
  );

  it.skipIf(isNotAskedFor)(
    "a BIOS machine whose PXE is not iPXE boots by an iPXE that it gets by TFTP",
    async () => {
      const script = makePlainPxe(network.server.makeDirectory());
      await expectBoot(network.server, boots.biosIpxeTftp, { kind: "lan", lan: network.lan, by: { script } });
    },
    bootTestLimitMs,
  );
});

describe.skipIf(networkIsMissing)("with the dnsmasq of docs/reference/firmware.md beside a DHCP server", () => {
  let network: LanServer;

  beforeAll(async () => {
    network = await startLanServer("proxy-DHCP", { architecture: "amd64" });
    copyIpxe(network.tftp, "snponly.efi", "undionly.kpxe");
    return () => network.stop();
  }, startLimitMs);

  it.skipIf(uefiIsMissing)(
    "a UEFI machine boots by PXE",
    () => expectBoot(network.server, boots.uefiIpxeProxy, { kind: "lan", lan: network.lan, by: "pxe" }),
    bootTestLimitMs,
  );

  it.skipIf(isNotAskedFor)(
    "a BIOS machine with iPXE on its card boots",
    () => expectBoot(network.server, boots.biosIpxeProxy, { kind: "lan", lan: network.lan, by: "pxe" }),
    bootTestLimitMs,
  );
});
