/**
 * Finds and opens files below the assets directory: regular files only, and never anything outside of it. A read
 * returns bytes of the version that was opened, or is refused: a file may be written while it is read.
 */

import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, lstat, open, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { codeOf } from "../../lib/errors.ts";

/** An open asset. All reads use one descriptor, so that a file replaced meanwhile cannot mix with it. */
export interface Asset {
  readonly handle: FileHandle;
  readonly version: FileVersion;
  /** Strong: changes whenever size or modification time do. */
  readonly etag: string;
  /** Last-Modified as HTTP writes it. */
  readonly modified: string;
}

/** What distinguishes one content of a file from another. */
export interface FileVersion {
  /** Device and inode: they stay the same when a file is written in place. */
  readonly file: string;
  readonly sizeBytes: number;
  /** Modification time, which programs may set. */
  readonly mtimeNs: bigint;
  /** Change time, which only the kernel sets: it differs even if a program sets the modification time back. */
  readonly ctimeNs: bigint;
}

/** The requested bytes are gone: the file was written or cut since it was opened. */
export class AssetChanged extends Error {
  override readonly name = "AssetChanged";
}

/**
 * Opens the asset that a path names.
 * @param root the assets directory; itself may be a symbolic link.
 * @param path as sent, percent-encoded: the part after `/assets/`.
 * @returns undefined when there is no such asset. Otherwise the caller closes the handle.
 */
export async function openAsset(root: string, path: string): Promise<Asset | undefined> {
  const segments = path.split("/").map(decodeURIComponent);
  if (!segments.every(isServedName)) return undefined;
  try {
    return await openBelow(root, segments);
  } catch (error) {
    if (absentCodes.has(codeOf(error) ?? "")) return undefined;
    throw error;
  }
}

// The errors for a path without a file to serve: absent, a file instead of a directory, a circle of links, a name too
// long, a file that davit may not read, a link that appeared between two checks.
const absentCodes: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "EACCES", "ENXIO"]);

/** No empty names, no dot files, no way up, and no escaped separator. */
function isServedName(name: string): boolean {
  return name !== "" && !name.startsWith(".") && !/[/\0]/.test(name);
}

async function openBelow(root: string, segments: readonly string[]): Promise<Asset | undefined> {
  const realRoot = await realpath(root);
  const path = await realpath(join(realRoot, ...segments));
  if (!path.startsWith(realRoot + sep)) return undefined;
  // The file is checked before it is opened, because opening a device can have effects. It is opened without blocking
  // and checked again, because a FIFO may have replaced it in between.
  if (!(await lstat(path)).isFile()) return undefined;
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  const stats = await handle.stat({ bigint: true });
  if (!stats.isFile()) {
    await handle.close();
    return undefined;
  }
  return {
    handle,
    version: versionOf(stats),
    etag: etagOf(stats),
    modified: stats.mtime.toUTCString(),
  };
}

function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): FileVersion {
  return { file: `${dev}:${ino}`, sizeBytes: Number(size), mtimeNs, ctimeNs };
}

/**
 * Fills `target` with the asset's bytes from `position` on. The handle must stay open until this is settled.
 * @throws {AssetChanged} when these may not be bytes of the version that was opened.
 */
export async function readAsset({ handle, version }: Asset, target: Buffer, position: number): Promise<void> {
  for (let filled = 0; filled < target.length; ) {
    const { bytesRead } = await handle.read(target, filled, target.length - filled, position + filled);
    if (bytesRead === 0) throw new AssetChanged("Asset shrank while it was sent");
    filled += bytesRead;
  }
  // Checked after the read: later writes cannot be among these bytes.
  const stats = await handle.stat({ bigint: true });
  if (!isStill(version, stats)) throw new AssetChanged("Asset was written while it was sent");
}

/** A replaced file lost its name, which also changes its change time. Its bytes stay, because nobody writes it. */
function isStill({ sizeBytes, mtimeNs, ctimeNs }: FileVersion, stats: BigIntStats): boolean {
  if (Number(stats.size) !== sizeBytes || stats.mtimeNs !== mtimeNs) return false;
  return stats.ctimeNs === ctimeNs || stats.nlink === 0n;
}

/** Time and size are not enough: with rsync, tar and reproducible builds, other bytes may have the same ones. */
function etagOf({ mtimeNs, ctimeNs, size, ino }: BigIntStats): string {
  return `"${[mtimeNs, ctimeNs, size, ino].map((part) => part.toString(16)).join("-")}"`;
}
