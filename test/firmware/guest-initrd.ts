/**
 * A further initrd for the guest: programs of this computer with the libraries that they need, and the script that
 * `davit.check=NAME` runs. The kernel unpacks it over the first one, so that both are one root file system.
 */

import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";

export interface GuestInitrdOptions {
  /** Of the script, which is `guest/NAME.sh`. */
  readonly name: string;
  /** Absolute paths, which are the same in the guest. */
  readonly programs?: readonly string[];
}

/** @throws {Error} when a program is not installed. */
export function guestInitrd({ name, programs = [] }: GuestInitrdOptions): Buffer {
  const script = { path: `/checks/${name}.sh`, content: readFileSync(join(import.meta.dirname, `guest/${name}.sh`)) };
  const paths = new Set(programs.flatMap((program) => [program, ...librariesOf(program)]));
  const files = [...paths].map((path) => ({ path, content: readFileSync(path) }));
  // Hardly smaller when packed better, and packed anew in each run.
  return gzipSync(archive([script, ...files]), { level: 1 });
}

/** As `ldd` tells: `NAME => /PATH (0x...)`, and the loader, which is `/PATH (0x...)`. */
function librariesOf(program: string): readonly string[] {
  if (!statSync(program).isFile()) throw new Error(`Not a program: ${program}`);
  const told = execFileSync("ldd", [program], { encoding: "utf8" });
  return [...told.matchAll(/(?:=>|^)\s+(\/\S+) \(0x/gm)].map(([, path = ""]) => path);
}

interface FileEntry {
  readonly path: string;
  readonly content: Buffer;
}

const directoryMode = 0o040755;
const fileMode = 0o100755;

/** A cpio archive in the format "newc", which the kernel's documentation describes (driver-api/early-userspace). */
function archive(files: readonly FileEntry[]): Buffer {
  const directories = [...new Set(files.flatMap(({ path }) => parentsOf(path)))];
  return Buffer.concat([
    ...directories.map((path) => member(path, directoryMode, Buffer.alloc(0))),
    ...files.map(({ path, content }) => member(path, fileMode, content)),
    member("/TRAILER!!!", 0, Buffer.alloc(0)),
  ]);
}

/** The outermost first: the kernel makes none that is not in the archive. */
function parentsOf(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === "/" ? [] : [...parentsOf(parent), parent];
}

function member(path: string, mode: number, content: Buffer): Buffer {
  const name = `${path.slice(1)}\0`;
  // Inode, owner, group, time, device numbers and checksum mean nothing here.
  const fields = [0, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length, 0];
  const head = `070701${fields.map((field) => field.toString(16).padStart(8, "0")).join("")}${name}`;
  return Buffer.concat([padded(Buffer.from(head, "latin1")), padded(content)]);
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
}
