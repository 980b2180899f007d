import type { IncomingMessage } from "node:http";
import { BlockList } from "node:net";
import { describe, expect, it } from "vitest";
import { Clients } from "../../src/http/client-shares.ts";

function networks(
  ...lists: readonly (readonly [address: string, prefix: number, family: "ipv4" | "ipv6"])[]
): BlockList {
  const list = new BlockList();
  for (const [address, prefix, family] of lists) list.addSubnet(address, prefix, family);
  return list;
}

function request(remoteAddress: string, forwarded?: string): IncomingMessage {
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  return Object.assign(Object.create(null), { socket: { remoteAddress }, headers });
}

describe("a connection is counted", () => {
  it.each([
    { address: "192.0.2.7", holder: "192.0.2.7" },
    { address: "::ffff:192.0.2.7", holder: "192.0.2.7" },
    { address: "2001:db8:1:2:3:4:5:6", holder: "2001:db8:1:2::/64" },
    { address: "2001:db8:1:2::9", holder: "2001:db8:1:2::/64" },
    { address: "2001:db8::9", holder: "2001:db8:0:0::/64" },
    { address: "::1", holder: "0:0:0:0::/64" },
    { address: "fe80::1", holder: "fe80:0:0:0::/64" },
  ])("for $holder when it comes from $address", ({ address, holder }) => {
    expect(new Clients().ofConnection(address)).toBe(holder);
  });

  it("for nobody when it comes from an exempt network or a trusted proxy", () => {
    const exempt = networks(["192.0.2.0", 24, "ipv4"], ["2001:db8::", 32, "ipv6"]);
    const trustedProxies = networks(["198.51.100.1", 32, "ipv4"]);
    const clients = new Clients({ exempt, trustedProxies });
    const addresses = ["192.0.2.9", "::ffff:192.0.2.9", "2001:db8:9::1", "198.51.100.1"];
    expect(addresses.map((address) => clients.ofConnection(address))).toEqual(addresses.map(() => undefined));
    expect(clients.ofConnection("198.51.100.2")).toBe("198.51.100.2");
  });
});

describe("a request is counted", () => {
  const clients = new Clients({ trustedProxies: networks(["198.51.100.0", 24, "ipv4"]) });

  it("for its peer, whatever it says of others", () => {
    expect(clients.ofRequest(request("192.0.2.7", "203.0.113.1"))).toBe("192.0.2.7");
  });

  it.each([
    { what: "one client", forwarded: "203.0.113.1", holder: "203.0.113.1" },
    { what: "what a client made up before it", forwarded: "10.0.0.1, 203.0.113.1", holder: "203.0.113.1" },
    { what: "another trusted proxy behind it", forwarded: "203.0.113.1, 198.51.100.9", holder: "203.0.113.1" },
    { what: "nothing", forwarded: undefined, holder: "198.51.100.1" },
  ])("for the last address that is no trusted proxy's: $what", ({ forwarded, holder }) => {
    expect(clients.ofRequest(request("198.51.100.1", forwarded))).toBe(holder);
  });
});

describe("the address of a machine", () => {
  const clients = new Clients({ trustedProxies: networks(["198.51.100.0", 24, "ipv4"], ["2001:db8::", 32, "ipv6"]) });

  it.each([
    ["the peer", "192.0.2.7", undefined, "192.0.2.7"],
    ["the peer, whatever it says", "192.0.2.7", "203.0.113.1", "192.0.2.7"],
    ["what the proxy names", "198.51.100.1", "203.0.113.1", "203.0.113.1"],
    ["what the proxy names, as IPv4 in IPv6", "::ffff:198.51.100.1", "::ffff:203.0.113.1", "203.0.113.1"],
    ["unknown if the proxy names nobody", "198.51.100.1", undefined, undefined],
    ["unknown if the proxy names nobody over IPv6", "2001:db8::1", "", undefined],
    ["unknown if the proxy names only proxies", "198.51.100.1", "198.51.100.2, 198.51.100.3", undefined],
    ["unknown if the proxy names no address", "198.51.100.1", "unknown", undefined],
    ["unknown if the proxy adds a name behind an address", "198.51.100.1", "203.0.113.1, _hidden", undefined],
  ])("is %s", (_what, peer, forwarded, address) => {
    expect(clients.addressOf(request(peer, forwarded))).toBe(address);
  });
});
