import { describe, expect, it } from "vitest";
import { dnsmasqConfig } from "../../src/dhcp/config.ts";
import { StartError } from "../../src/lib/start-error.ts";

const options: Parameters<typeof dnsmasqConfig>[0] = {
  role: { ranges: ["192.0.2.100,192.0.2.199"], router: "192.0.2.1" },
  advertised: "192.0.2.10:8080",
  interface: "eth1",
  leaseFile: "/tmp/davit-dhcp-x/state/leases",
  tftpRoot: "/tmp/davit-dhcp-x/tftp",
  loaders: { x86PC: "undionly.kpxe", "x86-64_EFI": "snponly.efi" },
  httpLoaders: { 16: "http://192.0.2.10:8080/loaders/ipxe.efi" },
};

describe("the configuration of dnsmasq", () => {
  it.each([
    ["with a range", options],
    ["as a proxy-DHCP", { ...options, role: { subnet: "192.0.2.0" } }],
  ])("names no other place than this davit and its own TFTP %s", (_name, given) => {
    const text = dnsmasqConfig(given);
    const urls = [...text.matchAll(/\w+:\/\/([^/\s]+)(\S*)/g)];
    expect(urls.length).toBeGreaterThan(1);
    for (const [, host, path] of urls) {
      expect(host).toBe("192.0.2.10:8080");
      expect(["/chain.ipxe", "/loaders/ipxe.efi"]).toContain(path);
    }
    const files = [...text.matchAll(/^(?:dhcp-boot|pxe-service)=.*,([^,\n]+)$/gm)].map(([, file = ""]) => file);
    expect(files.filter((file) => !file.startsWith("http://"))).toEqual(["snponly.efi", "undionly.kpxe"]);
  });

  it("gives UEFI HTTP Boot a URL only where dnsmasq gives addresses", () => {
    expect(dnsmasqConfig(options)).toContain("dhcp-boot=tag:!ipxe,tag:http16,http://192.0.2.10:8080/loaders/ipxe.efi");
    expect(dnsmasqConfig({ ...options, role: { subnet: "192.0.2.0" } })).not.toContain("/loaders/");
  });

  it.each([
    ["an advertised host", { advertised: "a,192.0.2.66,192.0.2.66:80" }],
    ["an advertised host", { advertised: "a\ndhcp-script=/bin/sh:80" }],
    ["an interface", { interface: "eth1,eth2" }],
    ["an interface", { interface: "eth1\ndhcp-script=/bin/sh" }],
    ["an interface", { interface: "eth*" }],
    ["a range", { role: { ranges: ["192.0.2.1,192.0.2.9\ndhcp-boot=evil"], router: undefined } }],
    ["a router", { role: { ranges: ["192.0.2.1,192.0.2.9"], router: "192.0.2.1,192.0.2.66" } }],
    ["a network", { role: { subnet: "192.0.2.0,192.0.2.9" } }],
    ["a directory", { tftpRoot: "/tmp/a,eth0" }],
    ["a directory", { leaseFile: "/tmp/a\nport=53" }],
    ["a loader", { loaders: { x86PC: "x,192.0.2.66" } }],
    ["a kind of firmware", { loaders: { "x86PC,evil": "undionly.kpxe" } }],
    ["a URL", { httpLoaders: { 16: "http://192.0.2.10/a,b" } }],
    ["a comment", { advertised: "a#b:80" }],
  ])("refuses %s that changes the meaning of a line: %j", (_name, bad) => {
    expect(() => dnsmasqConfig({ ...options, ...bad })).toThrow(StartError);
  });
});
