import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { type BootServer, bootTestLimitMs, startBootServer, startLimitMs } from "./machine-boot.ts";

const manifests = join(import.meta.dirname, "../../manifests/quickstart");

describe.skipIf(missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static"))("the quickstart", () => {
  let server: BootServer;

  beforeAll(async () => {
    server = await startBootServer(["--manifests", manifests]);
    return () => server.stop();
  }, startLimitMs);

  it(
    "boots to a shell prompt",
    async () => {
      const url = `http://${server.authoritySeenByMachine}/boot.ipxe`;
      const machine = { ...quickstartMachine, firmware: "bios", loader: { kind: "ipxe", url } } as const;

      const { screen } = await server.boot(machine, {
        waitsFor: "davit:/# ",
        does: ({ type }) => type("uname -o; exit\n"),
      });

      expect(screen).toContain("booted by davit");
      expect(screen).toContain(`  MAC=${quickstartMachine.mac}\n`);
      expect(screen).toContain("davit:/# uname -o; exit\nGNU/Linux\n");
    },
    bootTestLimitMs,
  );
});
