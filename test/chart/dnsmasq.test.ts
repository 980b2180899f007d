/** dnsmasq and GRUB themselves take what the chart renders for them, and Containerfile.dnsmasq has the files it names. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { type DhcpRole, dnsmasqConfig } from "../../src/dhcp/config.ts";
import { dnsmasq, offersOf } from "../docs/dhcp-servers.ts";
import { readPage } from "../helpers/page-examples.ts";
import { missing } from "../helpers/requirements.ts";
import { dnsmasqFile, dnsmasqPod, makePodGrubs, ranges } from "./dnsmasq-pod.ts";

const proxy = ["--set", "dnsmasq.download=null"];
const containerfile = join(import.meta.dirname, "../../Containerfile.dnsmasq");

describe.skipIf(missing("helm", "dnsmasq"))("dnsmasq", () => {
  it.each([
    ["takes its configuration as a proxy-DHCP", "dnsmasq", [], 0],
    ["takes its configuration with ranges", ranges, [], 0],
    ["refuses a word of a user's that it does not know", "dnsmasq", ["--set", "dnsmasq.extraConfig=no-such-word"], 1],
  ])("%s", async (_fact, way, args, code) => {
    const config = await dnsmasqFile("dnsmasq.conf", { way, args });
    const directory = mkdtempSync(join(tmpdir(), "davit-dnsmasq-"));
    const file = join(directory, "dnsmasq.conf");
    // The directory of its files is the container's.
    writeFileSync(file, config.replace(/^tftp-root=.*$/m, `tftp-root=${directory}`));
    const { status, stderr } = spawnSync("dnsmasq", ["--test", `--conf-file=${file}`], { encoding: "utf8" });
    rmSync(directory, { recursive: true });
    expect(stderr).toContain(code === 0 ? "syntax check OK" : "bad option");
    expect(status).toBe(code);
  });
});

describe.skipIf(missing("helm", "dnsmasq", "network-namespace"))("dnsmasq with ranges", () => {
  it("names a loader to each firmware, and davit to iPXE", async () => {
    // The network of that server.
    const args = ["--set", "advertiseAddress=192.168.1.20:8080,dnsmasq.interface=eth0,dnsmasq.router=192.168.1.1"];
    const range = ["--set", "dnsmasq.ranges[0]=192.168.1.100\\,192.168.1.199"];
    const config = await dnsmasqFile("dnsmasq.conf", { way: ranges, args: [...args, ...range] });
    const cards = [0, 7, 9, 11, 6].map((architecture) => ({ architecture }));
    const offers = await offersOf(dnsmasq, config, [
      ...cards,
      ...cards.map((card) => ({ ...card, userClass: "iPXE" })),
    ]);
    const script = "http://192.168.1.20:8080/chain.ipxe";
    expect(offers.map(({ file }) => file)).toEqual([
      ...["undionly.kpxe", "snponly.efi", "snponly.efi", "grub-arm64.efi", ""],
      ...cards.map(() => script),
    ]);
  });
});

describe.skipIf(missing("helm"))("the configuration of the chart's dnsmasq", () => {
  const address = "advertiseAddress=192.0.2.10:8080,dnsmasq.interface=eth1";
  const noInterface = "advertiseAddress=[2001:db8::10]:8080";
  const range = "192.0.2.100,192.0.2.199";
  const loaders = {
    x86PC: "undionly.kpxe",
    BC_EFI: "snponly.efi",
    "x86-64_EFI": "snponly.efi",
    ARM64_EFI: "grub-arm64.efi",
  };

  it.each<[fact: string, way: string, sets: readonly string[], options: Partial<Parameters<typeof dnsmasqConfig>[0]>]>([
    [
      "as a proxy-DHCP",
      "dnsmasq",
      [address, "dnsmasq.download=null", "dnsmasq.subnet=192.0.2.0", "dnsmasq.extraConfig="],
      {},
    ],
    [
      "with a range and a router",
      ranges,
      [address, `dnsmasq.ranges={${range.replace(",", "\\,")}}`, "dnsmasq.router=192.0.2.1"],
      { role: { ranges: [range], router: "192.0.2.1" } },
    ],
    [
      "on all interfaces, without a router, and with other loaders",
      ranges,
      [
        noInterface,
        "dnsmasq.interface=",
        "dnsmasq.router=",
        `dnsmasq.ranges={${range.replace(",", "\\,")},192.0.2.20\\,192.0.2.30\\,12h}`,
        "dnsmasq.loaders.IA32_EFI=ipxe.efi",
        "dnsmasq.loaders.x86PC=grub-i386.0",
      ],
      {
        role: { ranges: [range, "192.0.2.20,192.0.2.30,12h"], router: undefined },
        advertised: "[2001:db8::10]:8080",
        interface: undefined,
        loaders: { ...loaders, IA32_EFI: "ipxe.efi", x86PC: "grub-i386.0" },
      },
    ],
  ])("is that of davit serve --dhcp, byte for byte, %s", async (_fact, way, sets, options) => {
    const args = sets.flatMap((set) => ["--set", set]);
    const proxyRole: DhcpRole = { subnet: "192.0.2.0" };
    const own = dnsmasqConfig({
      role: proxyRole,
      advertised: "192.0.2.10:8080",
      user: "root",
      interface: "eth1",
      leaseFile: "/run/dnsmasq.leases",
      tftpRoot: "/var/lib/tftpboot",
      loaders,
      ...options,
    });
    expect((await dnsmasqFile("dnsmasq.conf", { way, args })).trimEnd()).toBe(own);
  });
});

describe.skipIf(missing("helm"))("the image of dnsmasq", () => {
  it.each([
    ["as a proxy-DHCP", { way: "dnsmasq", args: proxy }],
    ["with ranges", { way: ranges }],
  ])("has every file that the chart names %s", async (_way, options) => {
    const config = await dnsmasqFile("dnsmasq.conf", options);
    const offered = [...config.matchAll(/^(?:pxe-service|dhcp-boot)=tag:!ipxe,.*,([^,\n]+)$/gm)].map(
      ([, file]) => file,
    );
    expect(new Set(offered)).toEqual(new Set(["undionly.kpxe", "snponly.efi", "grub-arm64.efi"]));
    expect(tftpFiles()).toEqual(expect.arrayContaining(offered));
    expect(config).toContain("\ntftp-root=/var/lib/tftpboot\n");
  });

  it("has every loader that docs/operate/dhcp.md lists", () => {
    const rows = [...readPage("operate/dhcp.md").matchAll(/^\| `([^`/]+\.(?:kpxe|efi|0))` \|/gm)];
    const listed = rows.map(([, file]) => file);
    expect(listed).toContain("ipxe-arm64.efi");
    expect(tftpFiles()).toEqual(expect.arrayContaining(listed));
  });

  it("has the programs that the pod runs", async () => {
    const pod = await dnsmasqPod(["--set", "dnsmasq.loaders.x86PC=grub-i386.0"]);
    const programs = [...pod.initContainers, ...pod.containers].map(({ command: [program = ""] }) => basename(program));
    expect(programs).toEqual(["grub-mkimage", "grub-mkimage", "dnsmasq"]);
    for (const name of programs) expect(readFileSync(containerfile, "utf8")).toContain(` ! -name ${name} `);
  });
});

describe.skipIf(missing("helm", "grub", "grub-bios", "grub-uefi"))("grub-mkimage", () => {
  it("makes the GRUBs that a pod makes, with davit's address in them", async () => {
    const loaders = ["x86PC=grub-i386.0", "x86-64_EFI=grub-x86_64.efi", "ARM64_EFI=null"];
    const values = loaders.map((loader) => `dnsmasq.loaders.${loader}`).join(",");
    const directory = mkdtempSync(join(tmpdir(), "davit-grub-"));
    const made = await makePodGrubs(directory, ["--set", values]);
    const sizes = made.map((file) => statSync(file).size);
    const uefi = readFileSync(join(directory, "grub-x86_64.efi"), "latin1");
    rmSync(directory, { recursive: true });
    expect(sizes).toHaveLength(2);
    for (const size of sizes) expect(size).toBeGreaterThan(100_000);
    // That of a BIOS is compressed.
    expect(uefi).toContain('configfile "(http,192.0.2.10:8080)/grub?uuid=$uuid&mac=$net_default_mac&arch=$grub_cpu"');
  });
});

/** The links that the Containerfile puts into the TFTP directory. */
function tftpFiles(): readonly string[] {
  const text = readFileSync(containerfile, "utf8");
  const links = [...text.matchAll(/ln -s (.*) "\$tftp\/(.*)";/g)];
  return links.flatMap(([, targets = "", name = ""]) =>
    name === "" ? targets.split(" ").map((target) => basename(target)) : [name],
  );
}
