/**
 * iPXE over HTTPS, from its first script to the initrd. It is built for this, from the source that IPXE_SOURCE names:
 * Debian's iPXE has no HTTPS, and an iPXE knows the authorities that it trusts from its build.
 */

import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { makeAuthority } from "../helpers/certificates.ts";
import { missing } from "../helpers/requirements.ts";
import { linesWith } from "./guest-checks.ts";
import { buildIpxe } from "./ipxe-files.ts";
import { type LanServer, startLanServer } from "./lan-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";
import type { Controls } from "./power-on.ts";

const isMissing =
  missing("ipxe-source", "qemu", "ovmf", "cloud-kernel", "busybox-static", "openssl") ||
  missing("network-namespace", "dnsmasq");
const url = "https://192.168.1.10:8443";
/** The first build compiles all of iPXE. */
const buildLimitMs = 1_200_000;

describe.skipIf(isMissing)("iPXE by HTTPS", () => {
  let network: LanServer;

  beforeAll(async () => {
    network = await startLanServer("DHCP server", {
      architecture: "amd64",
      manifests: join(import.meta.dirname, "guests/https"),
      args: ["--boot-tls-address", new URL(url).host, "--boot-tls-own-certificate"],
      placed: (config) => config.replace("http://192.168.1.10:8080/boot.ipxe", `${url}/boot.ipxe`),
    });
    return () => network.stop();
  }, startLimitMs);

  async function boot(authority: string, waitsFor: string): Promise<string> {
    buildIpxe({ target: "snponly.efi", authority, directory: network.tftp });
    const loader = { kind: "lan", lan: network.lan, by: "pxe" } as const;
    const onlooker = { waitsFor, does: (by: Controls) => by.cutPower() };
    return (await network.server.boot({ ...quickstartMachine, firmware: "uefi", loader }, onlooker)).screen;
  }

  it(
    "boots Linux from davit, if it was built with davit's authority",
    async () => {
      const screen = await boot(join(network.server.dataDir, "boot-certificate/ca.pem"), "davit:/# ");
      // DHCP has only the first URL. iPXE shows the others as davit's scripts have them: relative.
      expect(screen).toContain(`Filename: ${url}/boot.ipxe\n`);
      for (const name of ["vmlinuz", "initrd.gz"])
        expect(screen).toMatch(new RegExp(`^/assets/quickstart/${name}\\.\\.\\. .*ok$`, "m"));
      expect(linesWith(screen, "Kernel command line")).toEqual([expect.stringContaining(`davit.secured=${url}`)]);
    },
    buildLimitMs,
  );

  it(
    "loads nothing, if it was built with another authority",
    async () => {
      const { certFile } = makeAuthority(network.server.makeDirectory());
      const screen = await boot(certFile, "Permission denied");
      expect(screen).toContain(`${url}/boot.ipxe... Permission denied`);
      expect(screen).not.toContain("vmlinuz");
    },
    bootTestLimitMs,
  );
});
