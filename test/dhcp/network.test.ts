import { describe, expect, it } from "vitest";
import { assertInNetwork, networkOf } from "../../src/dhcp/network.ts";

const interfaces = [
  { device: "eth0", address: "192.0.2.10", prefix: 24 },
  { device: "eth1", address: "10.1.130.7", prefix: 17 },
];

describe("the network of --dhcp-interface", () => {
  it("is that of the interface's address", () => {
    expect(networkOf("eth1", "--dhcp-interface", interfaces)).toMatchObject({ subnet: "10.1.128.0", prefix: 17 });
  });

  it("is refused without an address, with the interfaces that have one", () => {
    const find = () => networkOf("eth7", "--dhcp-interface", interfaces);
    expect(find).toThrow(/"eth7": give --dhcp-interface one of eth0 \(192\.0\.2\.10\), eth1 \(10\.1\.130\.7\)/);
  });

  it.each([
    ["192.0.2.1", "192.0.2.254", undefined, true],
    ["192.0.2.1", "192.0.3.1", undefined, false],
    ["192.0.1.200", "192.0.2.9", undefined, false],
    ["192.0.2.0", "192.0.2.9", undefined, false],
    ["192.0.2.1", "192.0.2.255", undefined, false],
    ["192.0.2.1", "192.0.2.9", "198.51.100.1", false],
  ])("has %s to %s with the router %s: %s", (from, to, router, isInside) => {
    const network = networkOf("eth0", "--dhcp-interface", interfaces);
    const check = () => assertInNetwork({ from, to, router }, network);
    if (isInside) expect(check).not.toThrow();
    else expect(check).toThrow("it is not in the network 192.0.2.0/24");
  });
});
