/** UEFI HTTP Boot over HTTPS: OVMF with the authority of davit's own certificate, and with another one. */

import { X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { makeAuthority } from "../helpers/certificates.ts";
import { missing } from "../helpers/requirements.ts";
import { expectBoot } from "./checked-boot.ts";
import { boots } from "./firmware-table.ts";
import { copyIpxe } from "./ipxe-files.ts";
import { type LanServer, startLanServer } from "./lan-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";
import type { Controls } from "./power-on.ts";

const isMissing =
  missing("qemu", "ipxe", "ovmf", "cloud-kernel", "busybox-static", "openssl") ||
  missing("network-namespace", "dnsmasq");
const address = "192.168.1.10:8443";

describe.skipIf(isMissing)("UEFI HTTP Boot by HTTPS", () => {
  let network: LanServer;

  beforeAll(async () => {
    network = await startLanServer("DHCP server", {
      architecture: "amd64",
      args: ["--boot-tls-address", address, "--boot-tls-own-certificate"],
      placed: (config) => config.replace("http://192.168.1.10:8080/assets/", `https://${address}/assets/`),
    });
    copyIpxe(network.server.assets, "ipxe.efi");
    return () => network.stop();
  }, startLimitMs);

  /** Writes the signature list that OVMF reads: of type EFI_CERT_X509_GUID, UEFI 2.10, 32.4.1. */
  function signatureList(pem: string): string {
    const type = Buffer.from("a159c0a5e494a74a87b5ab155c2bf072", "hex");
    const { raw } = new X509Certificate(pem);
    const owner = Buffer.alloc(16);
    const sizes = Buffer.alloc(12);
    sizes.writeUInt32LE(28 + owner.length + raw.length, 0);
    sizes.writeUInt32LE(owner.length + raw.length, 8);
    const file = join(network.server.makeDirectory(), "authorities.esl");
    writeFileSync(file, Buffer.concat([type, sizes, owner, raw]));
    return file;
  }

  const loader = () => ({ kind: "lan", lan: network.lan, by: "http" }) as const;

  it(
    "starts what davit serves, if the firmware trusts davit's authority",
    async () => {
      const own = readFileSync(join(network.server.dataDir, "boot-certificate/ca.pem"), "utf8");
      await expectBoot(network.server, boots.uefiIpxeHttps, loader(), { tlsAuthorities: signatureList(own) });
    },
    bootTestLimitMs,
  );

  it.skipIf(missing("all-firmware"))(
    "starts nothing, if it trusts another one",
    async () => {
      const stranger = makeAuthority(network.server.makeDirectory());
      const machine = { ...quickstartMachine, firmware: "uefi", tlsAuthorities: signatureList(stranger.cert) } as const;
      const failure = "Error: Unexpected network error.";
      const onlooker = { waitsFor: failure, does: (by: Controls) => by.cutPower() };
      const { screen } = await network.server.boot({ ...machine, loader: loader() }, onlooker);
      expect(screen).toContain(`URI: https://${address}/assets/ipxe.efi`);
      expect(screen).toContain("Error: Could not retrieve NBP file size from HTTP server.");
    },
    bootTestLimitMs,
  );
});
