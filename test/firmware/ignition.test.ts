import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { addIgnitionAssets, expectProvisioned } from "./ignition-guest.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";
import { recordOutcome, situations } from "./outcome-table.ts";

const manifests = join(import.meta.dirname, "guests/ignition");
const { mac, uuid } = quickstartMachine;

describe.skipIf(missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static", "ignition"))("Ignition", () => {
  let server: LinedServer;

  beforeAll(async () => {
    server = await startLinedServer(["--manifests", manifests]);
    addIgnitionAssets(server.assets);
    return () => server.stop();
  }, startLimitMs);

  it(
    "in a booted machine fetches its config and writes files, links, units, users and keys",
    async () => {
      const { screen, seconds } = await server.boot({ ...quickstartMachine, firmware: "bios", loader: server.loader });

      expectProvisioned(screen);
      expect(server.line.asked).toContainEqual({
        target: `/ignition?uuid=${uuid}&mac=${mac.replaceAll(":", "-")}`,
        status: 200,
      });
      recordOutcome(situations.ignition, "biosIpxe", { result: "Linux, provisioned", seconds });
    },
    bootTestLimitMs,
  );

  it("finds nothing to say of the config that the machine gets", async () => {
    const answer = await fetch(`http://${server.authority}/ignition?uuid=${uuid}&mac=${mac}`);
    const input = await answer.text();
    const { status, stdout, stderr } = spawnSync("ignition-validate", ["-"], { input, encoding: "utf8" });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
  });
});
