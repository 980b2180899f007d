/** The DHCP configs of docs/operate/dhcp.md: the servers themselves are asked, for every firmware that the page names. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { missing } from "../helpers/requirements.ts";
import type { BootOffer, Firmware } from "./dhcp-message.ts";
import { type DhcpServer, dhcpd, dnsmasq, kea, offersOf } from "./dhcp-servers.ts";

const page = readPage("operate/dhcp.md");
const script = "http://192.168.1.20:8080/chain.ipxe";
const tftpServer = "192.168.1.10";

type Wanted = Partial<BootOffer>;

const machines: readonly (readonly [Firmware, Wanted])[] = [
  [{ architecture: 0 }, { file: "undionly.kpxe", nextServer: tftpServer, vendorClass: "" }],
  [{ architecture: 7 }, { file: "snponly.efi", nextServer: tftpServer, vendorClass: "" }],
  [{ architecture: 9 }, { file: "snponly.efi", nextServer: tftpServer, vendorClass: "" }],
  [{ architecture: 11 }, { file: "grub/arm64-efi/core.efi", nextServer: tftpServer, vendorClass: "" }],
  [
    { architecture: 16, vendorClass: "HTTPClient" },
    { file: "http://192.168.1.20:8080/assets/ipxe.efi", vendorClass: "HTTPClient" },
  ],
  // iPXE gets the script whatever it runs on, and is no HTTP Boot.
  ...[0, 7, 9, 11, 16].map(
    (architecture) =>
      [
        { architecture, userClass: "iPXE" },
        { file: script, vendorClass: "" },
      ] as const,
  ),
  // Nothing for what is not known, rather than a loader for another processor.
  [{ architecture: 6 }, { file: "", vendorClass: "" }],
];

const opnsenseBase = `port=0
interface=eth0
bind-interfaces
dhcp-range=192.168.1.100,192.168.1.199
`;

const networkIsMissing = missing("network-namespace");

interface Config {
  readonly name: string;
  readonly server: DhcpServer;
  readonly kind: string;
  /** What comes before the page's config. */
  readonly base?: string;
  readonly isMissing: boolean;
}

const configs: readonly Config[] = [
  { name: "dnsmasq", server: dnsmasq, kind: "dnsmasq server", isMissing: missing("dnsmasq") },
  {
    name: "the dnsmasq of OPNsense",
    server: dnsmasq,
    kind: "dnsmasq opnsense",
    base: opnsenseBase,
    isMissing: missing("dnsmasq"),
  },
  { name: "Kea", server: kea, kind: "jsonc kea", isMissing: missing("kea-dhcp4") },
  { name: "ISC dhcpd", server: dhcpd, kind: "conf dhcpd", isMissing: missing("isc-dhcpd") },
];

describe.each(configs)("the config of $name in docs/operate/dhcp.md", ({ server, kind, base = "", isMissing }) => {
  const [config, ...others] = blocksOf(page, kind);

  it("is there once", () => {
    expect(config).toBeDefined();
    expect(others).toEqual([]);
  });

  it.skipIf(networkIsMissing || isMissing)("tells every firmware what to boot", async () => {
    const offers = await offersOf(
      server,
      base + config,
      machines.map(([firmware]) => firmware),
    );
    expect(offers).toMatchObject(machines.map(([, wanted]) => wanted));
  });
});

describe.skipIf(missing("dnsmasq"))("dnsmasq", () => {
  it("takes the config of docs/operate/dhcp.md for TFTP alone", () => {
    const [config = ""] = blocksOf(page, "dnsmasq tftp");
    const directory = mkdtempSync(join(tmpdir(), "davit-tftp-"));
    const file = join(directory, "dnsmasq.conf");
    writeFileSync(file, `${config.replace("/srv/tftp", directory)}\n`);
    const { stderr } = spawnSync("dnsmasq", ["--test", `--conf-file=${file}`], { encoding: "utf8" });
    rmSync(directory, { recursive: true });
    expect(config).toContain("enable-tftp");
    expect(stderr).toContain("syntax check OK");
  });
});

it("docs/operate/dhcp.md and docs/reference/firmware.md name the same loaders for the same firmware", () => {
  const loaders = (text: string | undefined) =>
    [...(text ?? "").matchAll(/^dhcp-boot=.*tag:(bios|uefi|arm64),(.*)$/gm)].map(([, kind, file]) => `${kind} ${file}`);
  const [here] = blocksOf(page, "dnsmasq server");
  const [there] = blocksOf(readPage("reference/firmware.md"), "dnsmasq");
  expect(loaders(here)).toHaveLength(3);
  expect(loaders(here).toSorted()).toEqual(loaders(there).toSorted());
});
