import { describe, expect, it } from "vitest";
import { ConfigError } from "../../src/options/parsing.ts";
import { readServeConfig } from "../../src/options/serve.ts";

const paths = { isDirectory: () => true, isFile: () => true };
const read = (args: readonly string[], environment = {}) =>
  readServeConfig(["--manifests", "objects", ...args], environment, paths);

function problemsOf(args: readonly string[]): string {
  try {
    read(args);
    return "";
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.join("\n");
  }
}

describe("--dhcp", () => {
  it("takes a proxy, a range, and a range with a router", () => {
    const on = ["--dhcp-interface", "eth1", "--dhcp"];
    expect(read([...on, "proxy"]).dhcp).toBe("proxy");
    const range = { from: "192.0.2.100", to: "192.0.2.199" };
    expect(read([...on, "192.0.2.100,192.0.2.199"]).dhcp).toEqual({ ...range, router: undefined });
    expect(read([...on, "192.0.2.100,192.0.2.199,192.0.2.1"]).dhcp).toEqual({ ...range, router: "192.0.2.1" });
  });

  it("can be set by variables", () => {
    const { dhcp, dhcpInterface } = read([], { DAVIT_DHCP: "192.0.2.1,192.0.2.9", DAVIT_DHCP_INTERFACE: "eth1" });
    expect(dhcp).toMatchObject({ from: "192.0.2.1", to: "192.0.2.9" });
    expect(dhcpInterface).toBe("eth1");
  });

  it.each(["range", "192.0.2.1", "192.0.2.1,", "192.0.2.1,192.0.2.9,x", "192.0.2.1,192.0.2.9,192.0.2.1,12h"])(
    "refuses %j",
    (text) => {
      expect(problemsOf(["--dhcp-interface", "eth1", "--dhcp", text])).toContain("must be proxy, or addresses such as");
    },
  );

  it("refuses a range that ends before it begins", () => {
    const problem = problemsOf(["--dhcp-interface", "eth1", "--dhcp", "192.0.2.9,192.0.2.1"]);
    expect(problem).toContain("the first address must not be above the last one");
  });

  it.each(["eth1,eth2", "eth*", "eth1\nport=53", "eth1#", "..", "a name", "longer-than-fifteen"])(
    "refuses the interface %j",
    (name) => {
      expect(problemsOf(["--dhcp", "proxy", "--dhcp-interface", name])).toContain("must be a network interface");
    },
  );

  it("needs an interface, and its other options need it", () => {
    expect(problemsOf(["--dhcp", "proxy"])).toContain("No network for --dhcp: give --dhcp-interface NAME");
    expect(problemsOf(["--dhcp-interface", "eth1"])).toContain("No DHCP for --dhcp-interface");
    expect(problemsOf(["--loaders-dir", "x"])).toContain("No DHCP for --loaders-dir");
  });
});
