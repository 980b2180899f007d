/**
 * Machines that install themselves to a disk image by a permit, and boot it from then on by the same URL, whatever
 * happens in between. One way is in every run, and all ways are in `make test-machines`.
 */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import type { LocalBoot } from "../../src/model/permits/permit.ts";
import { type Machine, quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { diskGreeting, makeBiosDisk, makeUefiDisk } from "./bootable-disk.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { linesWith } from "./guest-checks.ts";
import { InstallObjects } from "./install-objects.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";
import { type Kind, kinds } from "./outcome-table.ts";

const isLeftOut = missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static");
const isShort = isLeftOut || missing("all-firmware");
const uefiIsMissing = isShort || missing("ovmf", "mtools", "grub", "grub-uefi");
const grubIsMissing = isShort || missing("grub", "grub-bios");

interface Way {
  readonly kind: Kind;
  readonly way: LocalBoot;
  readonly skip: boolean;
}

// The GRUB of a UEFI machine leaves to its disk by sanboot alone (docs/reference/firmware.md).
const ways: readonly Way[] = [
  { kind: "biosIpxe", way: "exit", skip: isLeftOut },
  { kind: "biosIpxe", way: "sanboot", skip: isShort },
  { kind: "biosIpxe", way: "notFound", skip: isShort },
  { kind: "biosGrub", way: "exit", skip: grubIsMissing },
  { kind: "uefiIpxe", way: "exit", skip: uefiIsMissing },
  { kind: "uefiIpxe", way: "sanboot", skip: uefiIsMissing },
  { kind: "uefiGrub", way: "sanboot", skip: uefiIsMissing },
];

type DiskMachine = Machine & { readonly disk: string };

const kernel = "/assets/quickstart/vmlinuz";
const images = { bios: "bios.img", uefi: "uefi.img" } as const;
const patienceMs = 30_000;
/** How often an installed machine boots again. */
const laterBoots = isShort ? 1 : 3;

describe.skipIf(isLeftOut)("a machine with a disk", () => {
  let server: LinedServer;
  let objects: InstallObjects;
  let ledger: string;
  let count = 0;

  beforeAll(async () => {
    objects = new InstallObjects();
    server = await startLinedServer(["--manifests", objects.directory]);
    writeImages(server);
    ledger = String((await ledgerOf(server)).id);
    return async () => {
      await server.stop();
      objects.remove();
    };
  }, startLimitMs);

  for (const { kind, way, skip } of ways) {
    it(`waits for a permit, installs once, and boots its disk from then on, by ${kind} and ${way}`, {
      skip,
      timeout: 3 * bootTestLimitMs,
    }, async () => {
      const machine = newMachine(kind);
      const install = { mac: machine.mac, image: imageOf(machine), way };
      objects.set(install);
      const allow = async () => objects.set({ ...install, grant: { generation: 1, ledger } });
      server.line.expect({ path: scriptPath(kind), status: 503, when: "delivered", does: allow });

      // One run, in which the machine restarts.
      const { screen } = await server.boot({ ...machine, isPersistent: true });

      expect(linesWith(screen, "REPORTED")).toEqual(["REPORTED state=installing", "REPORTED state=installed"]);
      expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
      // GRUB may go on within the file by another request, which is answered 206.
      expect(kernelRequests().filter(({ status }) => status === 200)).toHaveLength(1);
      const installed = hashOf(machine);
      for (let boot = 1; boot <= laterBoots; boot++) await expectDisk(machine, installed);
    });
  }

  it("never installs again after a power cut in the middle", { timeout: 3 * bootTestLimitMs }, async () => {
    const machine = newMachine("biosIpxe");
    const { mac } = machine;
    const install = { mac, image: imageOf(machine), way: "exit", pauseSeconds: 3_600 } as const;
    objects.set({ ...install, grant: { generation: 1, ledger } });
    server.line.expect();

    const { screen } = await server.boot(machine, { waitsFor: "HALF WRITTEN", does: ({ cutPower }) => cutPower() });

    expect(linesWith(screen, "REPORTED")).toEqual(["REPORTED state=installing"]);
    const half = hashOf(machine);
    for (let boot = 1; boot <= laterBoots; boot++) await expectDisk(machine, half);
    // Somebody raises the generation.
    objects.set({ ...install, pauseSeconds: 0, grant: { generation: 2, ledger } });
    await expect.poll(() => generationOf(objects.groupOf(mac)), { timeout: patienceMs }).toBe(2);
    const again = await server.boot({ ...machine, isPersistent: true });
    expect(linesWith(again.screen, "REPORTED")).toEqual(["REPORTED state=installing", "REPORTED state=installed"]);
    expect(linesWith(again.screen, diskGreeting)).toEqual([diskGreeting]);
  });

  /** The generation of a Group's grant as davit has read it. */
  async function generationOf(group: string): Promise<unknown> {
    const { grant } = await ledgerOf(server, `?grant=group/default/${group}`);
    return isJsonObject(grant) && isJsonObject(grant.object) ? grant.object.generation : undefined;
  }

  function newMachine(kind: Kind): DiskMachine {
    count += 1;
    const last = count.toString(16).padStart(2, "0");
    const { firmware } = kinds[kind];
    const directory = server.makeDirectory();
    const disk = join(directory, "machine.img");
    writeFileSync(disk, Buffer.alloc(diskBytes));
    const isGrub = kind === "biosGrub" || kind === "uefiGrub";
    const loader = isGrub ? makeGrubLoader(directory, firmware, server.authoritySeenByMachine) : server.loader;
    return { mac: `52:54:00:a1:9d:${last}`, uuid: `${uuidStart}${last}`, firmware, disk, loader };
  }

  /** Boots the machine, which must find davit's answer to boot its disk, and leave the disk alone. */
  async function expectDisk(machine: DiskMachine, hash: string): Promise<void> {
    server.line.expect();
    const { screen } = await server.boot(machine);
    expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
    expect(kernelRequests()).toEqual([]);
    expect(hashOf(machine)).toBe(hash);
  }

  function kernelRequests() {
    return server.line.asked.filter(({ target }) => target === kernel);
  }
});

const uuidStart = quickstartMachine.uuid.slice(0, -2);
const diskBytes = 4 << 20;

function writeImages({ assets, makeDirectory }: LinedServer): void {
  const folder = join(assets, "images");
  mkdirSync(folder);
  writeFileSync(join(folder, images.bios), readFileSync(makeBiosDisk(makeDirectory())));
  if (!uefiIsMissing) writeFileSync(join(folder, images.uefi), readFileSync(makeUefiDisk(makeDirectory())));
}

function imageOf({ firmware }: Machine): string {
  return firmware === "bios" ? images.bios : images.uefi;
}

function scriptPath(kind: Kind): string {
  return kind === "biosGrub" || kind === "uefiGrub" ? "/grub" : "/ipxe";
}

async function ledgerOf({ opsUrl }: LinedServer, query = ""): Promise<JsonObject> {
  return parseJsonObject(await (await fetch(`${opsUrl}/ledger${query}`)).text()) ?? {};
}

function hashOf({ disk }: DiskMachine): string {
  return createHash("sha256").update(readFileSync(disk)).digest("hex");
}
