/** Disks that say that they were booted, in one line on the serial console, and switch the machine off. */

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";

/** What either disk says. */
export const diskGreeting = "BOOTED FROM DISK";

const loadAddress = 0x7c00;
const codeLength = 38;

/** The 512 bytes that a BIOS loads from a disk and runs. QEMU's machine `pc` is needed to switch off. */
export function bootSector(): Buffer {
  const text = Buffer.from(`\r\n${diskGreeting}\r\n\0`, "latin1");
  const textAddress = loadAddress + codeLength;
  const code = [
    [0x31, 0xc0], //             xor ax, ax
    [0x8e, 0xd8], //             mov ds, ax
    [0xfc], //                   cld
    [0xbe, textAddress & 0xff, textAddress >> 8], // mov si, text
    [0xac], //             next: lodsb
    [0x84, 0xc0], //             test al, al
    [0x74, 0x11], //             jz off
    [0x88, 0xc4], //             mov ah, al
    [0xba, 0xfd, 0x03], //       mov dx, 0x3fd         the serial line's status
    [0xec], //             wait: in al, dx
    [0xa8, 0x20], //             test al, 0x20         may be written to
    [0x74, 0xfb], //             jz wait
    [0x88, 0xe0], //             mov al, ah
    [0xb2, 0xf8], //             mov dl, 0xf8          its data
    [0xee], //                   out dx, al
    [0xeb, 0xea], //             jmp next
    [0xba, 0x04, 0x06], //  off: mov dx, 0x604         power management of PIIX4, as SeaBIOS places it
    [0xb8, 0x00, 0x20], //       mov ax, 0x2000        soft off
    [0xef], //                   out dx, ax
    [0xf4], //                   hlt
  ].flat();
  const sector = Buffer.alloc(512);
  sector.set(code);
  sector.set(text, codeLength);
  sector.writeUInt16BE(0x55aa, 510);
  return sector;
}

/** Writes a disk that a BIOS boots. */
export function makeBiosDisk(directory: string): string {
  const image = join(directory, "disk.img");
  writeFileSync(image, Buffer.concat([bootSector(), Buffer.alloc(1 << 20)]));
  return image;
}

/**
 * Writes a disk that UEFI boots: a FAT file system with the loader where firmware looks for it on any disk.
 * @param directory where the disk's parts are made, too.
 * @param loader another path for it, below `/EFI`, where firmware does not look.
 * @throws {Error} when GRUB for UEFI or mtools are not installed.
 */
export function makeUefiDisk(directory: string, loader = "BOOT/BOOTX64.EFI"): string {
  const at = (name: string) => join(directory, name);
  const run = (program: string, ...args: readonly string[]) => execFileSync(program, args, { stdio: "pipe" });
  writeFileSync(at("disk.cfg"), `serial\nterminal_output serial\necho "${diskGreeting}"\nhalt\n`);
  const grub = ["--format=x86_64-efi", `--config=${at("disk.cfg")}`, "--prefix=/", `--output=${at("disk.efi")}`];
  run("grub-mkimage", ...grub, "echo", "halt", "serial", "terminal");
  writeFileSync(at("disk.img"), Buffer.alloc(4 << 20));
  const image = ["-i", at("disk.img")];
  run("mformat", ...image, "::");
  run("mmd", ...image, "::/EFI", `::/EFI/${loader.split("/")[0]}`);
  run("mcopy", ...image, at("disk.efi"), `::/EFI/${loader}`);
  return at("disk.img");
}

/**
 * Writes a disk as an installer of Debian leaves it: an EFI partition in a GPT, with a loader only below `/EFI/debian`.
 * @throws {Error} as `makeUefiDisk`.
 */
export function makeInstalledUefiDisk(directory: string): string {
  const partition = readFileSync(makeUefiDisk(directory, "debian/shimx64.efi"));
  const image = join(directory, "installed.img");
  writeFileSync(image, inGpt(partition));
  return image;
}

const sectorBytes = 512;
const firstSector = 2048;
const efiPartition = "28732ac11ff8d211ba4b00a0c93ec93b";

/** A disk with one EFI partition, by the layout that UEFI 2.10 gives in section 5.3. */
function inGpt(partition: Buffer): Buffer {
  const end = firstSector + partition.length / sectorBytes;
  const disk = Buffer.alloc((end + firstSector) * sectorBytes);
  const last = disk.length / sectorBytes - 1;
  partition.copy(disk, firstSector * sectorBytes);
  disk.set([0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0], 446);
  disk.writeUInt32LE(last, 458);
  disk.writeUInt16BE(0x55aa, 510);

  const entries = Buffer.alloc(128 * 128);
  entries.write(efiPartition, "hex");
  entries.write("d1".repeat(16), 16, "hex");
  entries.writeBigUInt64LE(BigInt(firstSector), 32);
  entries.writeBigUInt64LE(BigInt(end - 1), 40);
  /** One of the two headers, at the beginning or at the end of the disk. */
  const write = (own: number, other: number, entriesAt: number) => {
    const header = Buffer.alloc(92);
    header.write("EFI PART");
    header.writeUInt32LE(0x00010000, 8);
    header.writeUInt32LE(header.length, 12);
    for (const [at, sector] of [
      [24, own],
      [32, other],
      [40, 34],
      [48, last - 33],
      [72, entriesAt],
    ] as const) {
      header.writeBigUInt64LE(BigInt(sector), at);
    }
    header.write("d0".repeat(16), 56, "hex");
    header.writeUInt32LE(128, 80);
    header.writeUInt32LE(128, 84);
    header.writeUInt32LE(crc32(entries), 88);
    header.writeUInt32LE(crc32(header), 16);
    header.copy(disk, own * sectorBytes);
    entries.copy(disk, entriesAt * sectorBytes);
  };
  write(1, last, 2);
  write(last, 1, last - 32);
  return disk;
}
