/**
 * `make cluster-tools`: builds the programs of tools.ts, those that are not there yet. It takes about eight minutes on
 * two cores when Go's own caches are empty. Whoever comes second waits for the first; a program appears when it is whole.
 */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { findGo, type Go } from "./go.ts";
import { builtToolsDirectory, givenPath, missingTools, recipes, type ToolName, toolNames, toolPath } from "./tools.ts";

const run = promisify(execFile);

try {
  await buildTools();
} catch (error) {
  tell(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function buildTools(): Promise<void> {
  if (toBuild().length > 0) {
    const directory = builtToolsDirectory(process.env);
    await mkdir(directory, { recursive: true });
    using _lock = lock(directory);
    await buildAll(toBuild(), directory);
  }
  for (const name of toolNames) tell(toolPath(name));
  const lost = missingTools();
  if (lost.length > 0) throw new Error(`Looking for ${lost.join(", ")}: the environment names a place without it`);
}

function toBuild(): readonly ToolName[] {
  return missingTools().filter((name) => givenPath(name, process.env) === undefined);
}

async function buildAll(names: readonly ToolName[], directory: string): Promise<void> {
  if (names.length === 0) return;
  const go = await findGo(tell);
  for (const name of names) await build(name, go, directory);
}

/** One build at a time: a lock that the kernel lets go of when its holder dies. */
function lock(directory: string): Disposable {
  const database = new DatabaseSync(join(directory, "lock.db"), { timeout: 0 });
  const take = () => database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  try {
    take();
  } catch {
    tell("another build is running: waiting for it");
    database.exec("PRAGMA busy_timeout = 3600000");
    take();
  }
  return { [Symbol.dispose]: () => database.close() };
}

async function build(name: ToolName, go: Go, directory: string): Promise<void> {
  const { package: source, linkerFlags } = recipes[name];
  const startedAtMs = performance.now();
  const seconds = () => Math.round((performance.now() - startedAtMs) / 1_000);
  tell(`${name}: fetching what ${source} consists of, and building it with ${go.version}`);
  const total = await packageCount(source, go);
  const unfinished = join(directory, `${name}.unfinished`);
  const args = ["build", "-v", "-trimpath", "-ldflags", linkerFlags, "-o", unfinished, source];
  await runWithProgress(go, args, (count) => {
    if (count % 100 === 0) tell(`${name}: ${count} of at most ${total} packages, ${seconds()} s`);
  });
  await rename(unfinished, join(directory, name));
  tell(`${name}: built in ${seconds()} s`);
}

/** How much a program consists of. Go fetches the modules first, and says nothing for up to a minute. */
async function packageCount(source: string, { command, environment }: Go): Promise<number> {
  const maxBuffer = 16 * 1024 * 1024;
  const options = { cwd: import.meta.dirname, env: environment, maxBuffer };
  const { stdout } = await run(command, ["list", "-deps", source], options);
  return stdout.trimEnd().split("\n").length;
}

/** Runs `go build -v`, which writes a line for each package that it compiles. */
async function runWithProgress(
  { command, environment }: Go,
  args: readonly string[],
  onPackage: (count: number) => void,
): Promise<void> {
  const child = spawn(command, args, {
    cwd: import.meta.dirname,
    env: environment,
    stdio: ["ignore", "inherit", "pipe"],
  });
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

function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}
