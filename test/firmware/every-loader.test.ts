import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { grubConfig, makeGrubLoader } from "./grub-netboot.ts";
import { checkArguments, expectCommandLine, expectOwnConfigs } from "./guest-checks.ts";
import { type Firmware, type Loader, quickstartMachine } from "./machine.ts";
import { type BootServer, bootTestLimitMs, startBootServer, startLimitMs } from "./machine-boot.ts";

const guestIsMissing = missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static");

interface Row {
  readonly name: string;
  readonly isMissing: boolean;
  readonly firmware: Firmware;
  readonly loader: (server: BootServer) => Loader;
  /** The kernel's command line, made of the Profile's arguments in the spelling of the loader. */
  readonly commandLine: (args: string) => string;
}

// iPXE hands arguments on as they are. GRUB quotes a whole word again; the kernel reads both alike.
const ipxeNote = `note="two words"`;
const grubNote = `"note=two words"`;

const rows: readonly Row[] = [
  {
    name: "BIOS and iPXE",
    isMissing: false,
    firmware: "bios",
    loader: ipxe,
    commandLine: (args) => `${args} ${ipxeNote} price=$5 list=1&2;3 initrd=initrd.gz`,
  },
  {
    name: "UEFI and iPXE",
    isMissing: missing("ovmf"),
    firmware: "uefi",
    loader: ipxe,
    commandLine: (args) => `vmlinuz ${args} ${ipxeNote} price=$5 list=1&2;3 initrd=initrd.gz`,
  },
  {
    name: "BIOS and GRUB",
    isMissing: missing("grub", "grub-bios"),
    firmware: "bios",
    loader: (server) => makeGrubLoader(server.makeDirectory(), "bios", server.authoritySeenByMachine),
    commandLine: (args) => `BOOT_IMAGE=/assets/quickstart/vmlinuz ${args} ${grubNote} price=$5 list=1&2;3`,
  },
  {
    name: "UEFI and GRUB",
    isMissing: missing("ovmf", "grub", "grub-uefi"),
    firmware: "uefi",
    loader: (server) => makeGrubLoader(server.makeDirectory(), "uefi", server.authoritySeenByMachine),
    commandLine: (args) => `BOOT_IMAGE=/assets/quickstart/vmlinuz ${args} ${grubNote} price=$5 list=1&2;3`,
  },
];

describe.skipIf(guestIsMissing)("one Profile boots Linux, which finds its own configs,", () => {
  let server: BootServer;

  beforeAll(async () => {
    server = await startBootServer(["--manifests", join(import.meta.dirname, "manifests")]);
    return () => server.stop();
  }, startLimitMs);

  for (const { name, isMissing, firmware, loader, commandLine } of rows) {
    it.skipIf(isMissing)(
      `on a machine with ${name}`,
      async () => {
        const transcript = await server.boot({ ...quickstartMachine, firmware, loader: loader(server) });

        expectCommandLine(transcript, commandLine(checkArguments(server.authority)));
        expectOwnConfigs(transcript);
      },
      bootTestLimitMs,
    );
  }
});

it("docs/firmware.md shows the GRUB config that is booted here", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/firmware.md"), "utf8");
  const shown = grubConfig("DAVIT:8080").replaceAll(/^(?=.)/gm, "    ");
  expect(page).toContain(shown);
});

function ipxe({ authoritySeenByMachine }: BootServer): Loader {
  return { kind: "ipxe", url: `http://${authoritySeenByMachine}/boot.ipxe` };
}
