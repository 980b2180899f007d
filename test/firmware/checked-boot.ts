/** A machine that boots `manifests/check.yaml`, whatever its firmware and loader are: the one Profile of all suites. */

import { unreachable } from "../../src/lib/errors.ts";
import { type Loader, type Machine, quickstartMachine } from "../../tools/firmware/machine.ts";
import { type Boot, loaderTitle, recordBoot } from "./firmware-table.ts";
import { checkArguments, expectCommandLine, expectOwnConfigs } from "./guest-checks.ts";
import type { BootServer } from "./machine-boot.ts";

/**
 * Boots the machine, checks the kernel's command line, word for word, and the configs that its Linux fetched, and puts
 * the boot into the table of docs/reference/firmware.md.
 * @param more what the machine has beside.
 * @returns its screen.
 */
export async function expectBoot(
  server: BootServer,
  boot: Boot,
  loader: Loader,
  more: Partial<Machine> = {},
): Promise<string> {
  const { screen } = await server.boot({ ...quickstartMachine, firmware: boot.firmware, loader, ...more });
  expectCommandLine(screen, commandLine(boot, checkArguments(server.authority)));
  expectOwnConfigs(screen);
  recordBoot(boot);
  return screen;
}

/** The Profile's arguments in the spelling of the loader. */
function commandLine(boot: Boot, args: string): string {
  const title = loaderTitle(boot);
  switch (title) {
    case "iPXE": {
      // iPXE hands arguments on as they are. To UEFI the first word is the program's name.
      const name = boot.firmware === "bios" ? "" : "vmlinuz ";
      return `${name}${args} note="two words" price=$5 list=1&2;3 initrd=initrd.gz`;
    }
    case "GRUB":
    case "shim, GRUB":
      // GRUB quotes a whole word again; the kernel reads both alike.
      return `BOOT_IMAGE=/assets/quickstart/vmlinuz ${args} "note=two words" price=$5 list=1&2;3`;
    default:
      return unreachable(title);
  }
}
