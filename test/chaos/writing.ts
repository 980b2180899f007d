/** Writes files in every way that people and programs do: whole or in pieces, in place or as another file. */

import { execFile } from "node:child_process";
import { appendFile, copyFile, open, readFile, rename, utimes, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { systemClock } from "../../src/lib/clock.ts";
import type { Pick } from "../helpers/fault-files.ts";

// Below the time for which a file has to rest: a writer that pauses longer is a documented limit.
const longestPauseMs = 1_500;
const oldSeconds = 1e9;

const run = promisify(execFile);

export interface WritingOptions {
  /** Outside of the directory that davit reads, on the same file system. */
  readonly folder: string;
  readonly pick: Pick;
}

export class Writing {
  /** How often each way was taken. */
  readonly counts = new Map<string, number>();
  readonly #options: WritingOptions;

  constructor(options: WritingOptions) {
    this.#options = options;
  }

  /** Gives a file this text, in one of the ways. */
  async write(path: string, text: string): Promise<void> {
    const before = await readFile(path, "utf8").catch(() => undefined);
    const next = join(this.#options.folder, basename(path));
    await writeFile(next, text);
    const ways: Record<string, (() => Promise<unknown>) | undefined> = {
      renamed: () => rename(next, path),
      "renamed, old": () => this.#aged(next, () => rename(next, path)),
      cp: () => copyFile(next, path),
      "in pieces": () => this.#inPieces(path, this.#cut(text)),
      "cut off": () => this.#corrected(path, next, [this.#cut(text)[0] ?? ""]),
      "rubbish at its end": () => this.#corrected(path, next, [this.#cut(text)[0] ?? "", "\n\t}{ no: [yaml\n"]),
      // `-c`: it would leave a file of the same size and time as it is.
      rsync: () => run("rsync", ["-ac", next, path]),
      "rsync, in place": () => run("rsync", ["-ac", "--inplace", next, path]),
      git: () => this.#checkout(next, path),
      ...(before !== undefined && {
        // sed replaces the file by another one. `r` adds the new text after line 1, and `d` deletes the old lines.
        "sed -i": () => run("sed", ["-i", "-e", `1r ${next}`, "-e", "d", path]),
        vim: () => run("vim", ["-es", "-u", "NONE", "-c", "%d", "-c", `0r ${next}`, "-c", "wq", path]),
      }),
      ...(before !== undefined &&
        text.startsWith(before) && { appended: () => appendFile(path, text.slice(before.length)) }),
    };
    const names = Object.keys(ways);
    const name = names[this.#options.pick(names.length)] ?? "renamed";
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    await ways[name]?.();
    // What a program of this machine made of it must be what it was given.
    const written = await readFile(path, "utf8");
    if (written !== text) throw new Error(`${name} has written another text to ${basename(path)}`);
  }

  /** A file that was finished long ago, as `rsync -t` and `mv` leave it. */
  async #aged(path: string, move: () => Promise<unknown>): Promise<void> {
    await utimes(path, oldSeconds, oldSeconds);
    await move();
  }

  #cut(text: string): readonly [string, string] {
    const at = 1 + this.#options.pick(text.length - 1);
    return [text.slice(0, at), text.slice(at)];
  }

  /** A writer that fails, and then a whole file. */
  async #corrected(path: string, next: string, pieces: readonly string[]): Promise<void> {
    await this.#inPieces(path, pieces);
    await rename(next, path);
  }

  /** Each piece comes a while after the one before it, and the file stays a while as it is. */
  async #inPieces(path: string, pieces: readonly string[]): Promise<void> {
    const file = await open(path, "w");
    try {
      for (const piece of pieces) {
        await file.writeFile(piece);
        await systemClock.sleep(this.#options.pick(longestPauseMs));
      }
    } finally {
      await file.close();
    }
  }

  /** As `git checkout` and `git pull`: the old file is removed, and another one is written in its place. */
  async #checkout(next: string, path: string): Promise<void> {
    const { folder } = this.#options;
    const repository = ["-c", "user.name=davit", "-c", "user.email=davit@localhost", "--git-dir", join(folder, "git")];
    const git = (...words: readonly string[]) => run("git", [...repository, ...words]);
    await git("init", "-q");
    const { stdout: id } = await git("hash-object", "-w", "--", next);
    const name = basename(path);
    await git("update-index", "--add", "--cacheinfo", `100644,${id.trim()},${name}`);
    await git("--work-tree", join(path, ".."), "checkout-index", "-f", "--", name);
  }
}
