import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { bootSector, diskGreeting } from "./bootable-disk.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { expectOwnConfigs, linesWith } from "./guest-checks.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { type Machine, quickstartMachine } from "./machine.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const guests = join(import.meta.dirname, "guests");
const isLeftOut = missing("all-firmware", "qemu", "ipxe-rom", "cloud-kernel", "busybox-static");
const grubIsMissing = missing("grub", "grub-bios");
const { mac, uuid } = quickstartMachine;

// A blank is one byte of a value, and a quote is data. An & that iPXE does not encode begins a label.
const oddMachine = {
  ...quickstartMachine,
  firmware: "bios",
  serial: `VM 56  "4d" 'x'&os=installed`,
  hostname: `rack 7, "left"`,
} as const satisfies Omit<Machine, "loader">;

describe.skipIf(isLeftOut)("a machine that no Group selects", () => {
  let server: LinedServer;
  beforeAll(async () => {
    server = await startLinedServer(["--manifests", join(guests, "unknown")]);
    return () => server.stop();
  }, startLimitMs);

  it(
    "is told so by iPXE, and goes on with its disk",
    async () => {
      const screen = await server.boot({ ...machineWithDisk(), loader: server.loader });

      expect(screen).toMatch(/^ipxe\.\.\. No such file or directory/m);
      expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
    },
    bootTestLimitMs,
  );

  it("goes on with its disk by GRUB", { skip: grubIsMissing, timeout: bootTestLimitMs }, async () => {
    const loader = makeGrubLoader(server.makeDirectory(), "bios", server.authoritySeenByMachine);
    const screen = await server.boot({ ...machineWithDisk(), loader });

    expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
    expect(server.line.asked.at(-1)).toEqual({ target: `/grub?uuid=${uuid}&mac=${mac}`, status: 404 });
  });

  function machineWithDisk() {
    const disk = join(server.makeDirectory(), "disk.img");
    writeFileSync(disk, Buffer.concat([bootSector(), Buffer.alloc(1 << 20)]));
    return { ...quickstartMachine, firmware: "bios", disk } as const;
  }
});

describe.skipIf(isLeftOut)("a machine whose serial number and name are full of blanks and quotes", () => {
  let server: LinedServer;
  beforeAll(async () => {
    server = await startLinedServer(["--manifests", join(guests, "unknown"), "--manifests", join(guests, "catch-all")]);
    return () => server.stop();
  }, startLimitMs);

  it(
    "boots what the Group for everybody says, by iPXE",
    async () => {
      const screen = await server.boot({ ...oddMachine, loader: server.loader });

      expectOwnConfigs(screen);
      // iPXE encodes blanks, and nothing else of these.
      const labels = `hostname=rack%207,%20"left"&serial=VM%2056%20%20"4d"%20'x'&os=installed`;
      const target = `/ipxe?uuid=${uuid}&mac=${mac.replaceAll(":", "-")}&domain=&${labels}`;
      expect(server.line.asked).toContainEqual({ target, status: 200 });
      expect(linesWith(screen, "KERNEL-COMMAND-LINE").join()).toContain(` serial=${oddMachine.serial} `);
    },
    bootTestLimitMs,
  );

  it("boots what the Group for everybody says, by GRUB", {
    skip: grubIsMissing,
    timeout: bootTestLimitMs,
  }, async () => {
    const loader = makeGrubLoader(server.makeDirectory(), "bios", server.authoritySeenByMachine);
    const screen = await server.boot({ ...oddMachine, loader });

    expectOwnConfigs(screen);
  });
});
