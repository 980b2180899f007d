/** `davit serve --dhcp`: a bare network in which nothing but davit, or only a foreign DHCP server beside it, boots machines. */

import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { Architecture } from "../../tools/firmware/boot-assets.ts";
import { type Lan, startLan } from "../../tools/firmware/lan.ts";
import { armIpxe, missing } from "../helpers/requirements.ts";
import { expectBoot } from "./checked-boot.ts";
import { boots } from "./firmware-table.ts";
import { makePlainPxe } from "./ipxe-files.ts";
import { type BootServer, bootTestLimitMs, startBootServer, startLimitMs } from "./machine-boot.ts";

const networkIsMissing =
  missing("qemu", "ipxe-rom", "ipxe", "cloud-kernel", "busybox-static") || missing("network-namespace", "dnsmasq");
const uefiIsMissing = missing("ovmf");
const isNotAskedFor = missing("all-firmware");
const range = "192.168.1.100,192.168.1.199,192.168.1.1";

interface ServedLan {
  readonly lan: Lan;
  readonly server: BootServer;
  stop(): Promise<void>;
}

describe.skipIf(networkIsMissing)(
  "in a network without any other server, davit serve --dhcp with a range boots",
  () => {
    let network: ServedLan;

    beforeAll(async () => {
      network = await startServe(["--dhcp", range], "amd64");
      return () => network.stop();
    }, startLimitMs);

    it.skipIf(uefiIsMissing)(
      "a UEFI machine by HTTP Boot",
      () => expectBoot(network.server, boots.uefiServeHttp, { kind: "lan", lan: network.lan, by: "http" }),
      bootTestLimitMs,
    );

    it.skipIf(uefiIsMissing)(
      "a UEFI machine by PXE",
      () => expectBoot(network.server, boots.uefiServe, { kind: "lan", lan: network.lan, by: "pxe" }),
      bootTestLimitMs,
    );

    it(
      "a BIOS machine whose PXE is not iPXE",
      async () => {
        const script = makePlainPxe(network.server.makeDirectory());
        await expectBoot(network.server, boots.biosServe, { kind: "lan", lan: network.lan, by: { script } });
      },
      bootTestLimitMs,
    );
  },
);

describe.skipIf(networkIsMissing || missing("kea-dhcp4"))("beside Kea, davit serve --dhcp proxy boots", () => {
  let network: ServedLan;

  beforeAll(async () => {
    network = await startServe(["--dhcp", "proxy"], "amd64");
    return () => network.stop();
  }, startLimitMs);

  it(
    "a BIOS machine with iPXE on its card",
    () => expectBoot(network.server, boots.biosServeProxy, { kind: "lan", lan: network.lan, by: "pxe" }),
    bootTestLimitMs,
  );

  it.skipIf(uefiIsMissing)(
    "a UEFI machine by PXE",
    () => expectBoot(network.server, boots.uefiServeProxy, { kind: "lan", lan: network.lan, by: "pxe" }),
    bootTestLimitMs,
  );
});

describe.skipIf(
  isNotAskedFor || networkIsMissing || missing("qemu-arm64", "uefi-arm64", "packages-arm64", "ipxe-arm64"),
)("with the iPXE of Debian 13 in --loaders-dir", () => {
  it(
    "an arm64 machine boots",
    async () => {
      const loaders = mkdtempSync(join(tmpdir(), "davit-loaders-"));
      copyFileSync(armIpxe, join(loaders, "ipxe-arm64.efi"));
      const { lan, server, stop } = await startServe(["--dhcp", range, "--loaders-dir", loaders], "arm64");
      await expectBoot(server, boots.arm64Serve, { kind: "lan", lan, by: "pxe" }).finally(stop);
      rmSync(loaders, { recursive: true });
      expect(server.authority).toBe("192.168.1.10:8080");
    },
    startLimitMs + bootTestLimitMs,
  );
});

/** Makes the network and starts davit there. Beside a proxy-DHCP, Kea gives the addresses. */
async function startServe(options: readonly string[], architecture: Architecture): Promise<ServedLan> {
  const folder = mkdtempSync(join(tmpdir(), "davit-lan-"));
  const lan = await startLan(folder);
  const stop = async () => {
    await lan.stop();
    rmSync(folder, { recursive: true });
  };
  try {
    if (options.includes("proxy")) await lan.startRouter("Kea");
    const source = ["--manifests", join(import.meta.dirname, "manifests"), "--dhcp-interface", "eth0", ...options];
    const server = await startBootServer(source, { architecture, lan });
    return { lan, server, stop: () => server.stop().then(stop) };
  } catch (cause) {
    await stop();
    throw cause;
  }
}
