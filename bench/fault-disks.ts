/** Disks that have faults: file systems in files, on loop devices. They need root. */

import { execFileSync } from "node:child_process";
import { mkdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const mebibyte = 2 ** 20;

export class FaultDisk {
  /** Where it is mounted. */
  readonly path: string;
  readonly #image: string;

  /** Makes an ext4 of so many MiB. @throws {Error} without root, loop devices or mkfs.ext4. */
  constructor(folder: string, sizeMiB: number) {
    this.path = join(folder, "disk");
    this.#image = join(folder, "disk.img");
    writeFileSync(this.#image, Buffer.alloc(sizeMiB * mebibyte));
    mkdirSync(this.path);
    run("mkfs.ext4", "-q", "-F", this.#image);
    this.mount();
  }

  mount(): void {
    run("mount", "-o", "loop", this.#image, this.path);
  }

  unmount(): void {
    run("umount", this.path);
  }

  /** Takes all the room that is left. */
  fill(): void {
    try {
      for (let number = 0; ; number++) writeFileSync(join(this.path, `filler-${number}`), Buffer.alloc(mebibyte, 1));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
    }
  }

  /** Gives back what `fill` took. */
  empty(): void {
    execFileSync("find", [this.path, "-maxdepth", "1", "-name", "filler-*", "-delete"]);
  }

  /** Nothing that is written gets through until `thaw`; whoever writes waits. */
  freeze(): void {
    run("fsfreeze", "--freeze", this.path);
  }

  thaw(): void {
    run("fsfreeze", "--unfreeze", this.path);
  }

  /** As after an error of the device: the file system ends its journal, and takes writes only after a new mount. */
  abort(): void {
    run("mount", "-o", "remount,abort", this.path);
  }

  remove(): void {
    this.unmount();
    rmdirSync(this.path);
    rmSync(this.#image);
  }
}

function run(program: string, ...args: readonly string[]): void {
  execFileSync(program, args, { stdio: "pipe" });
}
