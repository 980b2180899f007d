import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { checkArguments, expectCommandLine, expectOwnConfigs } from "./guest-checks.ts";
import { type BootServer, bootTestLimitMs, startBootServer, startLimitMs } from "./machine-boot.ts";

const manifests = join(import.meta.dirname, "manifests");
const guestIsMissing = missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static");

describe.skipIf(guestIsMissing || missing("kube-apiserver", "kubectl"))("objects that kubectl applies", () => {
  let cluster: Cluster;
  let server: BootServer;

  beforeAll(async () => {
    cluster = await startCluster();
    server = await startBootServer(["--kubernetes", "--kubeconfig", cluster.kubeconfig]);
  }, 2 * startLimitMs);
  afterAll(async () => {
    await server?.stop();
    await cluster?.stop();
  });

  it(
    "boot Linux, which finds its own configs",
    async () => {
      expect(await cluster.kubectl(["apply", "-f", manifests])).toMatchObject({ code: 0 });
      const ready = ["wait", "--for=condition=Ready", "groups.davit.dev/this-machine", "--timeout=60s"];
      expect(await cluster.kubectl(ready)).toMatchObject({ code: 0 });

      const url = `http://${server.authoritySeenByMachine}/boot.ipxe`;
      const { screen } = await server.boot({ ...quickstartMachine, firmware: "bios", loader: { kind: "ipxe", url } });

      const args = `${checkArguments(server.authority)} note="two words" price=$5 list=1&2;3`;
      expectCommandLine(screen, `${args} initrd=initrd.gz`);
      expectOwnConfigs(screen);
    },
    bootTestLimitMs,
  );
});
