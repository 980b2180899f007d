/**
 * A disk in memory that fails on purpose. Two kinds of trouble:
 * - `failAt`: one call, counted from 1, is refused with a code; the process goes on.
 * - `crashAt`: that call and every later one is refused: the power is gone. `afterCrash` is what the disk then holds.
 *
 * What a crash keeps: everything synced; of unsynced bytes any prefix, which may be garbled; a truncation or a directory
 * entry that was not synced may or may not be there, so a rename is done, or not, or half of it. A write that fails may
 * have written any part of its bytes.
 */

import { basename, dirname } from "node:path";
import type { AppendFile, Files } from "../../src/lib/files/files.ts";

/** Picks from 0 to `count` - 1. */
export type Pick = (count: number) => number;

interface Inode {
  content: Buffer;
  synced: Buffer;
  /** What the file was since the last sync: any of it may have reached the disk. */
  versions: Buffer[];
}

export interface FaultPlan {
  readonly failAt?: number;
  /** How many calls are refused from there on; 1 unless given. */
  readonly failFor?: number;
  /** Only calls of this kind are counted by `failAt`. */
  readonly failOnly?: FileCall;
  readonly code?: string;
  readonly crashAt?: number;
  /** After a crash unsynced bytes may be zeros, or anything. */
  readonly garbles?: boolean;
}

export type FileCall =
  | "append"
  | "sync"
  | "truncate"
  | "open"
  | "close"
  | "makeDirectory"
  | "rename"
  | "remove"
  | "syncDirectory"
  | "read"
  | "sizeOf"
  | "list";

// So small that a batch has several.
const garbledBlockBytes = 16;

export class FaultFiles implements Files {
  #names = new Map<string, Inode>();
  #syncedNames = new Map<string, Inode>();
  readonly #pick: Pick;
  readonly #plan: FaultPlan;
  #calls = 0;
  #counted = 0;
  /** How often the planned fault struck; a run with 0 was clean. */
  faults = 0;
  /** What all files together may take: an append beyond it writes a part and fails with ENOSPC. */
  capacityBytes = Number.POSITIVE_INFINITY;
  /** Numbers of bytes and of syncs, for tests of group commit. */
  readonly log: FileCall[] = [];

  constructor(pick: Pick, plan: FaultPlan = {}) {
    this.#pick = pick;
    this.#plan = plan;
  }

  /** The disk as the next start finds it. */
  afterCrash(plan: FaultPlan = {}): FaultFiles {
    const next = new FaultFiles(this.#pick, plan);
    for (const path of new Set([...this.#names.keys(), ...this.#syncedNames.keys()])) {
      const now = this.#names.get(path);
      const before = this.#syncedNames.get(path);
      const inode = now === before || this.#pick(2) === 0 ? now : before;
      if (inode !== undefined) next.#put(path, this.#surviving(inode));
    }
    return next;
  }

  /** The disk after a clean end: nothing is lost. */
  reopened(plan: FaultPlan = {}): FaultFiles {
    const next = new FaultFiles(this.#pick, plan);
    for (const [path, { content }] of this.#names) next.#put(path, content);
    return next;
  }

  /** Changes a file, or makes it, behind everyone's back, as damage does. */
  damage(path: string, change: (content: Buffer) => Buffer): void {
    this.#put(path, change(this.contentOf(path)));
  }

  /** What all files take. */
  get usedBytes(): number {
    return [...this.#names.values()].reduce((sum, { content }) => sum + content.length, 0);
  }

  contentOf(path: string): Buffer {
    return Buffer.from(this.#names.get(path)?.content ?? []);
  }

  async makeDirectory(): Promise<void> {
    this.#call("makeDirectory");
  }

  async list(directory: string): Promise<readonly string[]> {
    this.#call("list");
    const paths = [...this.#names.keys()].filter((path) => dirname(path) === directory);
    return paths.map((path) => basename(path)).toSorted();
  }

  async read(path: string): Promise<Buffer> {
    this.#call("read");
    const inode = this.#names.get(path);
    if (inode === undefined) throw failure("ENOENT");
    return Buffer.from(inode.content);
  }

  async sizeOf(path: string): Promise<number> {
    this.#call("sizeOf");
    const inode = this.#names.get(path);
    if (inode === undefined) throw failure("ENOENT");
    return inode.content.length;
  }

  /** In small and uneven pieces. The disk may also fail after the last one. */
  async *readPieces(path: string): AsyncIterable<Buffer> {
    const content = await this.read(path);
    for (let at = 0, size = 1; at < content.length; at += size, size = (size * 7) % 101) {
      yield content.subarray(at, at + size);
    }
    this.#call("read");
  }

  async openAppend(path: string): Promise<AppendFile> {
    this.#call("open");
    const inode = this.#names.get(path) ?? newInode(Buffer.alloc(0));
    this.#names.set(path, inode);
    const change = (content: Buffer) => {
      inode.content = content;
      inode.versions.push(content);
    };
    return {
      append: async (bytes) => {
        try {
          this.#call("append");
        } catch (error) {
          const part = bytes.subarray(0, this.#pick(bytes.length + 1));
          change(Buffer.concat([inode.content, part]));
          throw error;
        }
        const room = this.capacityBytes - this.usedBytes;
        change(Buffer.concat([inode.content, bytes.subarray(0, Math.max(0, room))]));
        if (bytes.length > room) throw failure("ENOSPC");
      },
      sync: async () => {
        this.#call("sync");
        inode.synced = inode.content;
        inode.versions = [];
      },
      truncate: async (size) => {
        this.#call("truncate");
        change(inode.content.subarray(0, size));
      },
      close: async () => this.#call("close"),
    };
  }

  async rename(from: string, to: string): Promise<void> {
    this.#call("rename");
    const inode = this.#names.get(from);
    if (inode === undefined) throw failure("ENOENT");
    this.#names.delete(from);
    this.#names.set(to, inode);
  }

  async remove(path: string): Promise<void> {
    this.#call("remove");
    if (!this.#names.delete(path)) throw failure("ENOENT");
  }

  async syncDirectory(directory: string): Promise<void> {
    this.#call("syncDirectory");
    for (const path of [...this.#syncedNames.keys()]) if (dirname(path) === directory) this.#syncedNames.delete(path);
    for (const [path, inode] of this.#names) if (dirname(path) === directory) this.#syncedNames.set(path, inode);
  }

  #put(path: string, content: Buffer): void {
    const inode = newInode(content);
    this.#names.set(path, inode);
    this.#syncedNames.set(path, inode);
  }

  #surviving({ synced, versions }: Inode): Buffer {
    const version = versions[this.#pick(versions.length + 1)] ?? synced;
    if (!version.subarray(0, synced.length).equals(synced)) return version;
    const kept = version.subarray(0, synced.length + this.#pick(version.length - synced.length + 1));
    return this.#plan.garbles === true ? this.#garbled(kept, synced.length) : kept;
  }

  /** Some blocks of what is behind `from` are as they were written, some are zeros, and some are anything. */
  #garbled(content: Buffer, from: number): Buffer {
    const bytes = Buffer.from(content);
    for (let at = from; at < bytes.length; at += garbledBlockBytes) {
      const block = bytes.subarray(at, at + garbledBlockBytes);
      const kind = this.#pick(4);
      if (kind === 0) block.fill(0);
      if (kind === 1) for (const position of block.keys()) block[position] = this.#pick(256);
    }
    return bytes;
  }

  #call(kind: FileCall): void {
    this.#calls += 1;
    this.log.push(kind);
    const { failAt = Number.POSITIVE_INFINITY, failFor = 1, failOnly, crashAt, code = "EIO" } = this.#plan;
    if (crashAt !== undefined && this.#calls >= crashAt) {
      this.faults += 1;
      throw failure("EIO");
    }
    if (failOnly !== undefined && failOnly !== kind) return;
    this.#counted += 1;
    if (this.#counted < failAt || this.#counted >= failAt + failFor) return;
    this.faults += 1;
    throw failure(code);
  }
}

/** A sequence of picks that a seed repeats (mulberry32). */
export function seededPick(seed: number): Pick {
  let state = seed;
  return (count) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % count;
  };
}

function newInode(content: Buffer): Inode {
  return { content, synced: content, versions: [] };
}

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: planned fault`), { code });
}
