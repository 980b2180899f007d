import { describe, expect, it } from "vitest";
import type { Served } from "../../src/app/served.ts";
import { welcome, welcomeOfBoot } from "../../src/commands/server/welcome.ts";

const loopback = (port: number) => ({ host: "127.0.0.1", port });
const addresses = { bootAddress: { host: "::", port: 8080 }, opsAddress: loopback(8081) };

const served: Served = {
  ...addresses,
  version: "1.2.3",
  profiles: 1,
  groups: 2,
  problems: 0,
  source: "namespace lab of https://cluster",
  firstCommand: undefined,
  storeAddress: loopback(2379),
  storeTls: false,
  advertised: "192.0.2.1:8080",
};
const ofStore = { ...addresses, version: "1.2.3", groups: 2, store: "http://store", advertised: "192.0.2.1:8080" };

describe("the welcome text", () => {
  it("has lines to try when machines are answered", () => {
    expect(welcome(served)).toContain("serves 1 profile and 2 groups from namespace lab of https://cluster");
    for (const text of [welcome(served), welcomeOfBoot(ofStore)]) {
      expect(text).toContain("curl 'http://127.0.0.1:8080/boot.ipxe'\n");
      expect(text).toContain("curl 'http://127.0.0.1:8081/preview?mac=");
      expect(text).not.toContain("/ignition");
    }
  });

  it("says that a store without a listener has none", () => {
    expect(welcome(served)).toContain("  store         http://127.0.0.1:2379\n");
    expect(welcome({ ...served, storeAddress: undefined })).toContain("  store         no listener\n");
  });

  it("says what to apply while there is no Group, and offers nothing that would answer 404", () => {
    const firstCommand = "kubectl apply --namespace lab -f manifests/quickstart/";
    const text = welcome({ ...served, profiles: 0, groups: 0, firstCommand });
    expect(text).toContain("No machine has a Group yet");
    expect(text).toContain("\n  kubectl apply --namespace lab -f manifests/quickstart/\n");
    expect(text).not.toContain("curl");
  });

  it("of a boot service says where to add Groups", () => {
    const text = welcomeOfBoot({ ...ofStore, groups: 0 });
    expect(text).toContain(
      "No machine has a Group yet. Add Profiles and Groups where the davit of that store reads them.",
    );
    expect(text).not.toContain("curl");
  });
});
