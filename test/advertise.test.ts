import type { NetworkInterfaceInfo } from "node:os";
import { describe, expect, it } from "vitest";
import { advertisedAuthority } from "../src/app/core/advertise.ts";

function entry(address: string, internal = false): NetworkInterfaceInfo {
  const common = { address, internal, mac: "00:00:00:00:00:00", cidr: null };
  return address.includes(":")
    ? { ...common, family: "IPv6", netmask: "ffff::", scopeid: 0 }
    : { ...common, family: "IPv4", netmask: "255.0.0.0" };
}

const wildcard = { host: "::", port: 8080 };
const loopback = [entry("127.0.0.1", true), entry("::1", true)];

describe("the advertised address", () => {
  it("is the one that was told", () => {
    expect(advertisedAuthority({ host: "boot.example", port: 80 }, wildcard, {})).toBe("boot.example:80");
  });

  it("is the boot address where that is one", () => {
    expect(advertisedAuthority(undefined, { host: "192.0.2.7", port: 8080 }, {})).toBe("192.0.2.7:8080");
  });

  it.each([
    ["the first global IPv4 address", [entry("2001:db8::1"), entry("192.0.2.1"), entry("192.0.2.2")], "192.0.2.1:8080"],
    ["a global IPv6 address where there is no other", [entry("2001:db8::1")], "[2001:db8::1]:8080"],
    ["no link-local address", [entry("fe80::1"), entry("169.254.1.1"), entry("192.0.2.3")], "192.0.2.3:8080"],
    ["loopback on a machine without a network", [], "127.0.0.1:8080"],
  ])("is, for a wildcard, %s", (_name, addresses, expected) => {
    expect(advertisedAuthority(undefined, wildcard, { lo: loopback, eth0: addresses })).toBe(expected);
  });
});
