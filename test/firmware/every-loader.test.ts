import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { Loader } from "../../tools/firmware/machine.ts";
import { readPage } from "../helpers/page-examples.ts";
import { missing } from "../helpers/requirements.ts";
import { expectBoot } from "./checked-boot.ts";
import { type Boot, boots } from "./firmware-table.ts";
import { grubConfig, makeGrubLoader, makeSignedGrubLoader } from "./grub-netboot.ts";
import { ipxeIso, makeIpxeDisk } from "./ipxe-files.ts";
import { type BootServer, bootTestLimitMs, startBootServer, startLimitMs } from "./machine-boot.ts";

const guestIsMissing = missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static");
const isNotAskedFor = missing("all-firmware");

interface Row {
  readonly name: string;
  readonly isMissing: boolean;
  readonly boot: Boot;
  readonly loader: (server: BootServer) => Loader;
}

const rows: readonly Row[] = [
  { name: "BIOS and iPXE", isMissing: false, boot: boots.biosIpxeRom, loader: ipxe },
  { name: "UEFI and iPXE", isMissing: missing("ovmf"), boot: boots.uefiIpxeRom, loader: ipxe },
  {
    name: "BIOS and GRUB",
    isMissing: missing("grub", "grub-bios"),
    boot: boots.biosGrub,
    loader: (server) => makeGrubLoader(server.makeDirectory(), "bios", server.authoritySeenByMachine),
  },
  {
    name: "UEFI and GRUB",
    isMissing: missing("ovmf", "grub", "grub-uefi"),
    boot: boots.uefiGrub,
    loader: (server) => makeGrubLoader(server.makeDirectory(), "uefi", server.authoritySeenByMachine),
  },
  {
    name: "UEFI and the GRUB that Debian has signed",
    isMissing: isNotAskedFor || missing("ovmf", "grub", "grub-uefi", "grub-signed"),
    boot: boots.uefiGrubSigned,
    loader: (server) => makeSignedGrubLoader(server.makeDirectory(), server.authoritySeenByMachine),
  },
  {
    name: "BIOS and a CD with iPXE",
    isMissing: isNotAskedFor || missing("ipxe"),
    boot: boots.biosIpxeIso,
    loader: (server) => ({ kind: "medium", image: ipxeIso, medium: "cd", url: bootUrl(server) }),
  },
  {
    name: "UEFI and a disk with iPXE",
    isMissing: isNotAskedFor || missing("ovmf", "ipxe", "mtools"),
    boot: boots.uefiIpxeEsp,
    loader: (server) => ({
      kind: "medium",
      image: makeIpxeDisk(server.makeDirectory()),
      medium: "disk",
      url: bootUrl(server),
    }),
  },
];

describe.skipIf(guestIsMissing)("one Profile boots Linux, which finds its own configs,", () => {
  let server: BootServer;

  beforeAll(async () => {
    server = await startBootServer(["--manifests", join(import.meta.dirname, "manifests")]);
    return () => server.stop();
  }, startLimitMs);

  for (const { name, isMissing, boot, loader } of rows) {
    it.skipIf(isMissing)(`on a machine with ${name}`, () => expectBoot(server, boot, loader(server)), bootTestLimitMs);
  }
});

it("docs/reference/firmware.md shows the GRUB config that is booted here", () => {
  const shown = grubConfig("DAVIT:8080").replaceAll(/^(?=.)/gm, "    ");
  expect(readPage("reference/firmware.md")).toContain(shown);
});

function ipxe(server: BootServer): Loader {
  return { kind: "ipxe", url: bootUrl(server) };
}

function bootUrl({ authoritySeenByMachine }: BootServer): string {
  return `http://${authoritySeenByMachine}/boot.ipxe`;
}
