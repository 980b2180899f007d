import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makePodGrubs } from "../chart/dnsmasq-pod.ts";
import { readPage } from "../helpers/page-examples.ts";
import { armIpxe, missing } from "../helpers/requirements.ts";
import { expectBoot } from "./checked-boot.ts";
import { boots } from "./firmware-table.ts";
import { archQuery, armModules, fillGrubDirectory, grubConfig, makeProxyGrub, proxyGrubWords } from "./grub-netboot.ts";
import { type LanServer, startLanServer } from "./lan-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const isMissing =
  missing("all-firmware") ||
  missing("qemu-arm64", "uefi-arm64", "packages-arm64", "busybox-static", "grub", "network-namespace", "dnsmasq");
const dnsmasqHost = "192.168.1.10";

describe.skipIf(isMissing)("an arm64 machine boots the Profile of all others", () => {
  it(
    "with dnsmasq as DHCP server, and a GRUB that tells its processor",
    async () => {
      const network = await startArmServer("DHCP server", archQuery);
      const { lan } = network;
      await expectBoot(network.server, boots.arm64Grub, { kind: "lan", lan, by: "pxe" }).finally(network.stop);
    },
    startLimitMs + bootTestLimitMs,
  );

  it(
    "with dnsmasq beside a DHCP server, and a GRUB that was told where its files are",
    async () => {
      const network = await startArmServer("proxy-DHCP", "");
      makeProxyGrub(dnsmasqHost, network.tftp);
      const { lan } = network;
      await expectBoot(network.server, boots.arm64GrubProxy, { kind: "lan", lan, by: "pxe" }).finally(network.stop);
    },
    startLimitMs + bootTestLimitMs,
  );

  it.skipIf(missing("helm"))(
    "with the GRUB that the pod of the chart's dnsmasq makes, beside a DHCP server",
    async () => {
      const network = await startLanServer("proxy-DHCP", { architecture: "arm64" });
      const { lan } = network;
      await makePodGrubs(network.tftp, ["--set", `advertiseAddress=${lan.authority}`], armModules);
      await expectBoot(network.server, boots.arm64GrubPod, { kind: "lan", lan, by: "pxe" }).finally(network.stop);
    },
    startLimitMs + bootTestLimitMs,
  );
});

describe.skipIf(isMissing || missing("ipxe-arm64"))("an arm64 machine boots by the iPXE of Debian 13", () => {
  it.each([
    ["DHCP server", boots.arm64IpxeTftp],
    ["proxy-DHCP", boots.arm64IpxeProxy],
  ] as const)(
    "with dnsmasq as %s",
    async (role, boot) => {
      const placed = (config: string) => config.replace(/grub\S+(core|arm64)\.efi$/m, "ipxe-arm64.efi");
      const { server, lan, tftp, stop } = await startLanServer(role, { architecture: "arm64", placed });
      copyFileSync(armIpxe, join(tftp, "ipxe-arm64.efi"));
      await expectBoot(server, boot, { kind: "lan", lan, by: "pxe" }).finally(stop);
    },
    startLimitMs + bootTestLimitMs,
  );
});

it("docs/reference/firmware.md shows how that GRUB is made, and its config", () => {
  const page = readPage("reference/firmware.md").replaceAll(/\s*\\\n\s*/g, " ");
  const quoted = proxyGrubWords(dnsmasqHost, "/srv/tftp").map((word) => (word.includes("(") ? `'${word}'` : word));
  expect(page).toContain(["grub-mkimage --directory=/usr/lib/grub/arm64-efi", ...quoted].join(" "));
  expect(page).toContain(archQuery);
});

async function startArmServer(role: Parameters<typeof startLanServer>[0], labels: string): Promise<LanServer> {
  const network = await startLanServer(role, { architecture: "arm64" });
  fillGrubDirectory(network.tftp, "uefi-arm64", grubConfig(network.lan.authority, labels));
  return network;
}
