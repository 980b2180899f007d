/** Disks that say that they were booted, in one line on the serial console, and switch the machine off. */

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

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
 * @throws {Error} when GRUB for UEFI or mtools are not installed.
 */
export function makeUefiDisk(directory: string): string {
  const at = (name: string) => join(directory, name);
  const run = (program: string, ...args: readonly string[]) => execFileSync(program, args, { stdio: "pipe" });
  writeFileSync(at("disk.cfg"), `serial\nterminal_output serial\necho "${diskGreeting}"\nhalt\n`);
  const grub = ["--format=x86_64-efi", `--config=${at("disk.cfg")}`, "--prefix=/", `--output=${at("disk.efi")}`];
  run("grub-mkimage", ...grub, "echo", "halt", "serial", "terminal");
  writeFileSync(at("disk.img"), Buffer.alloc(4 << 20));
  const image = ["-i", at("disk.img")];
  run("mformat", ...image, "::");
  run("mmd", ...image, "::/EFI", "::/EFI/BOOT");
  run("mcopy", ...image, at("disk.efi"), "::/EFI/BOOT/BOOTX64.EFI");
  return at("disk.img");
}
