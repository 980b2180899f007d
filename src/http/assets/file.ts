/**
 * Opens files below the assets directory: regular files only, and nothing outside of it. Another program can write a
 * file while davit reads it. A read returns only bytes of the version that was opened; otherwise it fails.
 */

import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, lstat, open, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { codeOf } from "../../lib/errors.ts";

/** An open asset. All reads use one descriptor, so bytes of a file that replaces it cannot mix in. */
export interface Asset {
  readonly handle: FileHandle;
  readonly version: FileVersion;
  /** A strong tag: it changes with the file's size, modification time, change time or inode. */
  readonly etag: string;
  /** Last-Modified as HTTP writes it. */
  readonly modified: string;
}

/** What distinguishes one content of a file from another. */
export interface FileVersion {
  /** Device and inode: they stay the same when a file is written in place. */
  readonly file: string;
  readonly sizeBytes: number;
  /** Modification time, which programs can set. */
  readonly mtimeNs: bigint;
  /**
   * Change time, which programs cannot set. It changes with every write, even if the program then sets the modification
   * time back.
   */
  readonly ctimeNs: bigint;
}

/**
 * Some file systems record change times in steps of 2 s. Two writes within a step get the same time. So a file whose
 * last change is younger than this could change again unnoticed.
 */
export const settleMs = 2_000;

/** The requested bytes are gone: the file was written or truncated after it was opened. */
export class AssetChanged extends Error {
  override readonly name = "AssetChanged";
}

/**
 * Opens the asset that a path names.
 * @param root the assets directory, which may itself be a symbolic link.
 * @param path as sent, percent-encoded: the part after `/assets/`.
 * @param serveDotfiles see `AssetsOptions`.
 * @returns undefined when there is no such asset. Otherwise the caller must close the handle.
 */
export async function openAsset(root: string, path: string, serveDotfiles = false): Promise<Asset | undefined> {
  const segments = segmentsOf(path);
  const isServed = (name: string, at: number) =>
    isServedName(name) || (serveDotfiles && at > 0 && at === segments.length - 1 && isServedDotfile(name));
  if (!segments.every(isServed)) return undefined;
  try {
    return await openBelow(root, segments);
  } catch (error) {
    if (absentCodes.has(codeOf(error) ?? "")) return undefined;
    throw error;
  }
}

function segmentsOf(path: string): string[] {
  // shim, started by UEFI HTTP Boot from `/assets/shimx64.efi`, asks for `/assets//grubx64.efi`.
  return path.replace(/^\/+/, "").split(/\/+/).map(decodeURIComponent);
}

/**
 * True if a path names a directory that has assets, or may have some.
 * @param root, path as in `openAsset`; slashes at the end are ignored.
 */
export async function hasDirectory(root: string, path: string): Promise<boolean> {
  const segments = path === "" ? [] : segmentsOf(path.replace(/\/+$/, ""));
  if (!segments.every(isServedName)) return false;
  try {
    const realRoot = await realpath(root);
    const place = await realpath(join(realRoot, ...segments));
    return `${place}${sep}`.startsWith(realRoot + sep) && (await lstat(place)).isDirectory();
  } catch (error) {
    if (absentCodes.has(codeOf(error) ?? "")) return false;
    throw error;
  }
}

/** Returns the name that a path means, for a path that `openAsset` took. */
export function decodedPath(path: string): string {
  return segmentsOf(path).join("/");
}

// The errors for a path without a file to serve. ENOENT: it is absent. ENOTDIR: a directory in the path is a file.
// ELOOP: links form a loop, or a link has appeared after the check. ENAMETOOLONG: a name is too long. EACCES: davit has
// no permission to read the file. ENXIO: it is a socket.
const absentCodes: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "EACCES", "ENXIO"]);

/** False for an empty name, a name that begins with a dot (so also `..`), and an escaped slash or NUL. */
function isServedName(name: string): boolean {
  return name !== "" && !name.startsWith(".") && !/[/\0]/.test(name);
}

/** True for a file such as `.treeinfo`: neither an unfinished download of davit nor a usual place of credentials. */
function isServedDotfile(name: string): boolean {
  return /^\.[^./\0][^/\0]*$/.test(name) && !unfinished.test(name) && !credentials.test(name);
}

const unfinished = /\.[0-9a-f]{8}$/;
const credentialNames = [
  ..."authinfo aws bash boto curlrc docker env git gnupg ht kube msmtprc my\\.cnf mylogin\\.cnf netrc npmrc".split(" "),
  ..."pass pgpass pip pypirc rhosts s3cfg ssh terraform vault wgetrc yarnrc".split(" "),
];
const credentialWords = "credential history key password secret token".split(" ");
const credentials = new RegExp(`^\\.(?:${credentialNames.join("|")}|.*(?:${credentialWords.join("|")}))`, "i");

async function openBelow(root: string, segments: readonly string[]): Promise<Asset | undefined> {
  const realRoot = await realpath(root);
  const path = await realpath(join(realRoot, ...segments));
  if (!path.startsWith(realRoot + sep)) return undefined;
  // Opening a device can have effects, so the file is checked first. A FIFO could replace it after that check. So it is
  // opened without blocking, and checked again.
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
 * Fills `target` with the asset's bytes from `position` on. The handle must stay open until the promise settles.
 * @throws {AssetChanged} when some bytes could belong to another version than the one that was opened.
 */
export async function readAsset({ handle, version }: Asset, target: Buffer, position: number): Promise<void> {
  for (let filled = 0; filled < target.length; ) {
    const { bytesRead } = await handle.read(target, filled, target.length - filled, position + filled);
    if (bytesRead === 0) throw new AssetChanged("Asset shrank while it was sent");
    filled += bytesRead;
  }
  // The check comes after the read. So a write that it does not see cannot have changed these bytes.
  await checkUnchanged({ handle, version });
}

/** @throws {AssetChanged} when the file was written after it was opened. */
export async function checkUnchanged({ handle, version }: Pick<Asset, "handle" | "version">): Promise<void> {
  const stats = await handle.stat({ bigint: true });
  if (!isStill(version, stats)) throw new AssetChanged("Asset was written after it was opened");
}

/** True for two versions of a file that have the same bytes. */
export function isSameVersion(one: FileVersion, other: FileVersion): boolean {
  return one.sizeBytes === other.sizeBytes && one.mtimeNs === other.mtimeNs && one.ctimeNs === other.ctimeNs;
}

/**
 * True if the open file still has this version. A file that was replaced has no name left (`nlink` is 0). The loss of
 * the name changed its change time, but not its bytes: nobody can open it by name and write it.
 */
function isStill({ sizeBytes, mtimeNs, ctimeNs }: FileVersion, stats: BigIntStats): boolean {
  if (Number(stats.size) !== sizeBytes || stats.mtimeNs !== mtimeNs) return false;
  return stats.ctimeNs === ctimeNs || stats.nlink === 0n;
}

/** Modification time and size are not enough: rsync, tar and reproducible builds can give both to other bytes. */
function etagOf({ mtimeNs, ctimeNs, size, ino }: BigIntStats): string {
  return `"${[mtimeNs, ctimeNs, size, ino].map((part) => part.toString(16)).join("-")}"`;
}
