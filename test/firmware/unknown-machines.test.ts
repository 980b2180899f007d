import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Firmware, type Loader, type Machine, quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { expectDiskBoot } from "./disk-boot.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { expectOwnConfigs, linesWith } from "./guest-checks.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";
import { type Kind, kinds, recordOutcome, situations } from "./outcome-table.ts";

const guests = join(import.meta.dirname, "guests");
const isLeftOut = missing("all-firmware") || missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static");
const uefiIsMissing = isLeftOut || missing("ovmf", "mtools", "grub", "grub-uefi");
const grubIsMissing = isLeftOut || missing("grub", "grub-bios");
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
      const screen = await expectUnknown("biosIpxe");
      expect(screen).toMatch(/^ipxe\.\.\. No such file or directory/m);
    },
    bootTestLimitMs,
  );

  it("goes on with its disk by UEFI and iPXE", { skip: uefiIsMissing, timeout: bootTestLimitMs }, async () => {
    const screen = await expectUnknown("uefiIpxe");
    expect(screen).toMatch(/^ipxe\.\.\. No such file or directory/m);
  });

  it("goes on with its disk by GRUB", { skip: grubIsMissing, timeout: bootTestLimitMs }, async () => {
    await expectUnknown("biosGrub");
    expect(server.line.asked.at(-1)).toEqual({ target: `/grub?uuid=${uuid}&mac=${mac}`, status: 404 });
  });

  it("ends in its setup by UEFI and GRUB", { skip: uefiIsMissing, timeout: bootTestLimitMs }, async () => {
    await expectUnknown("uefiGrub");
    expect(server.line.asked.at(-1)).toEqual({ target: `/grub?uuid=${uuid}&mac=${mac}`, status: 404 });
  });

  function expectUnknown(kind: Kind): Promise<string> {
    const isGrub = kind === "biosGrub" || kind === "uefiGrub";
    const loader = isGrub ? grub(server, kinds[kind].firmware) : server.loader;
    const result = kind === "uefiGrub" ? "setup" : "disk";
    return expectDiskBoot(server, { situation: situations.unknown, kind, loader, result });
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
      const { screen, seconds } = await server.boot({ ...oddMachine, loader: server.loader });

      expectOwnConfigs(screen);
      // iPXE encodes blanks, and nothing else of these.
      const labels = `hostname=rack%207,%20"left"&serial=VM%2056%20%20"4d"%20'x'&os=installed`;
      const target = `/ipxe?uuid=${uuid}&mac=${mac.replaceAll(":", "-")}&domain=&${labels}`;
      expect(server.line.asked).toContainEqual({ target, status: 200 });
      expect(linesWith(screen, "KERNEL-COMMAND-LINE").join()).toContain(` serial=${oddMachine.serial} `);
      recordOutcome(situations.odd, "biosIpxe", { result: "the Group for everybody", seconds });
    },
    bootTestLimitMs,
  );

  it("boots what the Group for everybody says, by GRUB", {
    skip: grubIsMissing,
    timeout: bootTestLimitMs,
  }, async () => {
    const { screen, seconds } = await server.boot({ ...oddMachine, loader: grub(server, "bios") });

    expectOwnConfigs(screen);
    recordOutcome(situations.odd, "biosGrub", { result: "the Group for everybody", seconds });
  });
});

function grub(server: LinedServer, firmware: Firmware): Loader {
  return makeGrubLoader(server.makeDirectory(), firmware, server.authoritySeenByMachine);
}
