/** Builds a program of a Go module, and reports how far it is: a big one takes minutes. */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import type { Go } from "./go.ts";
import type { Recipe } from "./tools.ts";

const run = promisify(execFile);

export interface Build {
  readonly name: string;
  readonly recipe: Recipe;
  /** The folder of the Go module. */
  readonly module: string;
  /** Where the program goes. */
  readonly directory: string;
}

/** One build at a time: a lock that the kernel lets go of when its holder dies. */
export function lock(directory: string): Disposable {
  const database = new DatabaseSync(join(directory, "lock.db"), { timeout: 0 });
  const take = () => database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  try {
    take();
  } catch {
    report("another build is running: waiting for it");
    database.exec("PRAGMA busy_timeout = 3600000");
    take();
  }
  return { [Symbol.dispose]: () => database.close() };
}

/**
 * Builds a program. It appears when it is whole.
 * @throws {Error} with what the compiler complains of.
 */
export async function build({ name, recipe, module, directory }: Build, go: Go): Promise<void> {
  const { package: source, linkerFlags } = recipe;
  const startedAtMs = performance.now();
  const seconds = () => Math.round((performance.now() - startedAtMs) / 1_000);
  report(`${name}: fetching what ${source} consists of, and building it with ${go.version}`);
  const total = await packageCount(source, module, go);
  const unfinished = join(directory, `${name}.unfinished`);
  const args = ["build", "-v", "-trimpath", "-ldflags", linkerFlags, "-o", unfinished, source];
  await runWithProgress(go, module, args, (count) => {
    if (count % 100 === 0) report(`${name}: ${count} of at most ${total} packages, ${seconds()} s`);
  });
  await rename(unfinished, join(directory, name));
  report(`${name}: built in ${seconds()} s`);
}

/** How much a program consists of. Go fetches the modules first, and says nothing for up to a minute. */
async function packageCount(source: string, module: string, { command, environment }: Go): Promise<number> {
  const maxBuffer = 16 * 1024 * 1024;
  const { stdout } = await run(command, ["list", "-deps", source], { cwd: module, env: environment, maxBuffer });
  return stdout.trimEnd().split("\n").length;
}

/** Runs `go build -v`, which writes a line for each package that it compiles. */
async function runWithProgress(
  { command, environment }: Go,
  module: string,
  args: readonly string[],
  onPackage: (count: number) => void,
): Promise<void> {
  const child = spawn(command, args, { cwd: module, env: environment, stdio: ["ignore", "inherit", "pipe"] });
  const ended = once(child, "close");
  let count = 0;
  const complaints: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    if (/^[\w.~/-]+$/.test(line)) onPackage(++count);
    else complaints.push(line);
  }
  const [code] = await ended;
  if (code !== 0) throw new Error(`go ${args.at(0)} ended with ${code}:\n${complaints.join("\n")}`);
}

/** A line of progress. */
export function report(line: string): void {
  process.stdout.write(`${line}\n`);
}
