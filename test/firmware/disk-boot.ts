/** Machines with a disk that boots, which the network sends on to it, or does not. */

import { expect } from "vitest";
import { type Loader, quickstartMachine } from "../../tools/firmware/machine.ts";
import { diskGreeting, makeBiosDisk, makeUefiDisk } from "./bootable-disk.ts";
import { linesWith } from "./guest-checks.ts";
import type { BootServer } from "./machine-boot.ts";
import { type Kind, kinds, recordOutcome, type Situation } from "./outcome-table.ts";
import type { Onlooker } from "./power-on.ts";

/** `disk`: it boots from its disk. `setup`: its firmware, which is OVMF, shows its menu and waits for somebody. */
type DiskResult = keyof typeof diskResults;

/** In the words of the table. */
export const diskResults = { disk: "its disk", setup: "OVMF's setup, waiting" } as const;

const visitor = { waitsFor: "Select Language", does: ({ switchOff }) => switchOff() } as const satisfies Onlooker;

export interface DiskBoot {
  readonly situation: Situation;
  readonly kind: Kind;
  readonly loader: Loader;
  readonly result: DiskResult;
}

/**
 * Boots the machine, checks where it ends, and puts that into the table of docs/reference/firmware.md.
 * @returns what was on its screen.
 */
export async function expectDiskBoot(
  server: BootServer,
  { situation, kind, loader, result }: DiskBoot,
): Promise<string> {
  const { firmware } = kinds[kind];
  const disk = firmware === "bios" ? makeBiosDisk(server.makeDirectory()) : makeUefiDisk(server.makeDirectory());
  const machine = { ...quickstartMachine, firmware, disk, loader } as const;
  const { screen, seconds } = await server.boot(machine, result === "setup" ? visitor : undefined);
  expect(linesWith(screen, diskGreeting)).toEqual(result === "disk" ? [diskGreeting] : []);
  expect(screen.includes(visitor.waitsFor)).toBe(result === "setup");
  recordOutcome(situation, kind, { result: diskResults[result], seconds });
  return screen;
}
